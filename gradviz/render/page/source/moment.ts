/* What the engine was doing right after an event, as `analysis/state.py` tells it.

A test compares the two, event by event. */

import { openAt, type Spans } from "./spans.ts";

/** Tasks in ready queues, from push to pop. */
export interface Queued extends Spans {
  readonly task: Int32Array;
  readonly node: Int32Array;
  readonly queue: Int32Array;
  readonly what: Uint8Array;
  readonly reentrantDepth: Int32Array;
  readonly sequenceNr: Float64Array;
}

/** Nodes, from when a thread began to evaluate them until it was done. */
export interface Running extends Spans {
  readonly task: Int32Array;
  readonly node: Int32Array;
  readonly thread: Int32Array;
}

/** Threads asleep on a queue that is empty. */
export interface Asleep extends Spans {
  readonly thread: Int32Array;
  readonly queue: Int32Array;
}

/** Gradients of nodes, from when they came until the node began. */
export interface Gradients extends Spans {
  readonly task: Int32Array;
  readonly node: Int32Array;
  readonly producer: Int32Array;
  readonly inputNr: Int32Array;
  readonly remaining: Int32Array;
}

export interface History {
  readonly queued: Queued;
  readonly running: Running;
  readonly asleep: Asleep;
  readonly gradients: Gradients;
}

/** A node that has got gradients, and how many it still waits for. */
export interface Countdown {
  readonly task: number;
  readonly node: number;
  readonly remaining: number;
  /** Places in `Gradients`, in the order in which they came. */
  readonly gradients: readonly number[];
}

export interface Moment {
  readonly seq: number;
  /** Queue -> places in `Queued`, in the order in which they would be popped. */
  readonly queues: ReadonlyMap<number, readonly number[]>;
  /** Thread -> places in `Running`, the innermost last. */
  readonly running: ReadonlyMap<number, readonly number[]>;
  /** Thread -> the queue that it sleeps on. */
  readonly asleep: ReadonlyMap<number, number>;
  /** Those that wait for more first, each in the order in which they got the first. */
  readonly countdowns: readonly Countdown[];
}

const WAKE_UP = 2;

export function momentAt(history: History, seq: number): Moment {
  const { queued, running, asleep } = history;
  const queues = grouped(openAt(queued, seq), queued.queue);
  for (const places of queues.values()) places.sort((a, b) => inTurn(queued, a, b));
  return {
    seq,
    queues,
    running: grouped(openAt(running, seq), running.thread),
    asleep: new Map(
      openAt(asleep, seq).map((place) => [asleep.thread[place], asleep.queue[place]]),
    ),
    countdowns: countdownsAt(history.gradients, seq),
  };
}

/** Below zero where `a` is popped before `b`, if nothing else comes. */
function inTurn(queued: Queued, a: number, b: number): number {
  const [isFirst, isSecond] = [a, b].map((one) => queued.what[one] === WAKE_UP);
  // Of wake-ups none goes first, however deep their passes are.
  const deeper = isFirst ? 0 : queued.reentrantDepth[b] - queued.reentrantDepth[a];
  return (
    Number(isSecond) - Number(isFirst) ||
    deeper ||
    rank(queued.sequenceNr[b]) - rank(queued.sequenceNr[a]) ||
    // Of equals, whose order is that of a heap, what was indeed popped first.
    queued.end[a] - queued.end[b] ||
    a - b
  );
}

/** The sequence number of every AccumulateGrad is -1, which is the largest. */
function rank(sequenceNr: number): number {
  return sequenceNr < 0 ? Number.MAX_VALUE : sequenceNr;
}

function countdownsAt(gradients: Gradients, seq: number): Countdown[] {
  const found = new Map<
    string,
    { task: number; node: number; remaining: number; gradients: number[] }
  >();
  for (const place of openAt(gradients, seq)) {
    const [task, node] = [gradients.task[place], gradients.node[place]];
    const key = `${task} ${node}`;
    const one = found.get(key) ?? { task, node, remaining: 0, gradients: [] };
    one.remaining = gradients.remaining[place];
    one.gradients.push(place);
    found.set(key, one);
  }
  return [...found.values()].sort(
    (a, b) => Number(a.remaining === 0) - Number(b.remaining === 0),
  );
}

function grouped(places: readonly number[], key: Int32Array): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (const place of places) {
    const some = found.get(key[place]);
    if (some === undefined) found.set(key[place], [place]);
    else some.push(place);
  }
  return found;
}
