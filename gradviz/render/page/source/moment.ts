/* What the engine was doing right after an event, as `gradviz.analysis.moments` tells it.

A test compares the two, event by event. */

import { openAt, type Spans } from "./spans.ts";

/** Tasks in ready queues, from push to pop. */
export interface Queued extends Spans {
  readonly task: Int32Array;
  readonly node: Int32Array;
  readonly queue: Int32Array;
  readonly what: Uint8Array;
  /** Of two that lie in a queue the one with the lower turn is popped first. */
  readonly turn: Int32Array;
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

export function momentAt(history: History, seq: number): Moment {
  const { queued, running, asleep } = history;
  const queues = grouped(openAt(queued, seq), queued.queue);
  for (const places of queues.values())
    places.sort((a, b) => queued.turn[a] - queued.turn[b]);
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

function countdownsAt(gradients: Gradients, seq: number): Countdown[] {
  const { task, node, remaining } = gradients;
  const found = new Map<number, { remaining: number; gradients: number[] }>();
  for (const place of openAt(gradients, seq)) {
    // Nodes and passes are places: their pair is one number, and exact.
    const key = task[place] * 2 ** 32 + node[place];
    let one = found.get(key);
    if (one === undefined) {
      one = { remaining: 0, gradients: [] };
      found.set(key, one);
    }
    one.remaining = remaining[place];
    one.gradients.push(place);
  }
  return [...found.values()]
    .map((one) => ({
      task: task[one.gradients[0]],
      node: node[one.gradients[0]],
      ...one,
    }))
    .sort((a, b) => Number(a.remaining === 0) - Number(b.remaining === 0));
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
