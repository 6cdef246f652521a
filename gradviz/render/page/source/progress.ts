/* How far the nodes of a pass are at a moment: done, running, queued, waiting.

Note [Going to a moment]
~~~~~~~~~~~~~~~~~~~~~~~~
Each event begins or ends something: a gradient is given, a task is pushed, a node begins.
Of each node it is counted what has begun and what has ended, and its stage follows from
that. Who knows a moment gets to another one by counting what lies between, up or, going
back, down: the next frame of a replay takes as long as that frame has events, however
many the pass has. */

import type { Numbers, Page } from "./data.ts";

export enum Stage {
  /** It was given nothing so far. */
  None,
  /** It waits for more gradients. */
  Waits,
  Queued,
  Runs,
  Done,
  Failed,
}

export interface Progress {
  /** The stage of each node. */
  readonly stage: Uint8Array;
  /** For how many more gradients each waits; 0 of those that wait for none. */
  readonly remaining: Int32Array;
}

/** What can happen to a node at an event. */
enum Change {
  Given,
  Taken,
  Pushed,
  Popped,
  Begun,
  Ended,
}

/** The changes of a pass in the order of their events. */
interface Changes {
  /** Of each event its first change; one more for those after all events. */
  readonly first: Int32Array;
  readonly what: Uint8Array;
  /** The row that says so, in the table that has such changes. */
  readonly row: Int32Array;
}

/** Goes to the state of a pass right after an event; -1: after all of them.
 *
 * What it gives is the same value every time, with other numbers in it. */
export function progressOf(page: Page, task: number): (moment: number) => Progress {
  const { nodes, gradients, stays, runs } = page;
  const last = page.events.length;
  const failing = page.header.statuses.indexOf("failed");
  const stage = new Uint8Array(nodes.length);
  const remaining = new Int32Array(nodes.length);
  const [given, queued, begun, ended, failed] = Array.from(
    { length: 5 },
    () => new Int32Array(nodes.length),
  );
  /** The last gradient that a node was given, and the one before that. */
  const latest = new Int32Array(nodes.length).fill(-1);
  const before = new Int32Array(gradients.length);
  let changes: Changes | undefined;
  let reached = -1;

  function change(at: number, step: 1 | -1): void {
    const { what, row } = changes!;
    const one = row[at];
    const table = what[at] <= Change.Taken ? gradients : what[at] <= Change.Popped ? stays : runs;
    const node = table.node[one];
    if (node < 0) return;
    switch (what[at] as Change) {
      case Change.Given:
        given[node] += step;
        if (step > 0) before[one] = latest[node];
        latest[node] = step > 0 ? one : before[one];
        break;
      case Change.Taken:
        given[node] -= step;
        break;
      case Change.Pushed:
        queued[node] += step;
        break;
      case Change.Popped:
        queued[node] -= step;
        break;
      case Change.Begun:
        begun[node] += step;
        break;
      case Change.Ended:
        ended[node] += step;
        if (runs.status[one] === failing) failed[node] += step;
        break;
    }
    remaining[node] = given[node] > 0 ? gradients.remaining[latest[node]] : 0;
    stage[node] = stageOf(node);
  }

  function stageOf(node: number): Stage {
    if (failed[node] > 0) return Stage.Failed;
    if (ended[node] > 0) return Stage.Done;
    if (begun[node] > 0) return Stage.Runs;
    if (queued[node] > 0) return Stage.Queued;
    return given[node] > 0 ? Stage.Waits : Stage.None;
  }

  return (moment) => {
    changes ??= changesOf(page, task);
    const { first } = changes;
    const wanted = moment < 0 ? last : Math.min(moment, last - 1);
    const [from, to] = [first[reached + 1], first[wanted + 1]];
    for (let at = from; at < to; at++) change(at, 1);
    for (let at = from - 1; at >= to; at--) change(at, -1);
    reached = wanted;
    return { stage, remaining };
  };
}

function changesOf({ events, gradients, stays, runs }: Page, task: number): Changes {
  const last = events.length;
  const NEVER = last + 1;
  const from = (event: number) => Math.max(event, 0);
  const until = (event: number) => (event < 0 ? NEVER : event);
  const tables: [Change, { task: Numbers; length: number }, Numbers, (event: number) => number][] = [
    [Change.Given, gradients, gradients.at, from],
    [Change.Taken, gradients, gradients.until, until],
    [Change.Pushed, stays, stays.pushed, from],
    [Change.Popped, stays, stays.popped, until],
    [Change.Begun, runs, runs.begin, from],
    // What has no end is over when the pass is, if that is.
    [Change.Ended, runs, runs.end, (event) => (event < 0 ? last : event)],
  ];
  const first = new Int32Array(last + 3);
  function each(tell: (event: number, change: Change, row: number) => void): void {
    for (const [change, of, column, eventOf] of tables) {
      for (let row = 0; row < of.length; row++) {
        if (of.task[row] === task) tell(eventOf(column[row]), change, row);
      }
    }
  }
  each((event) => first[event + 1]++);
  for (let event = 0; event < first.length - 1; event++) first[event + 1] += first[event];
  const what = new Uint8Array(first[NEVER]);
  const row = new Int32Array(what.length);
  const filled = first.slice();
  each((event, change, one) => {
    if (event === NEVER) return;
    what[filled[event]] = change;
    row[filled[event]++] = one;
  });
  return { first, what, row };
}

/** Of each node whether it was captured in a pass. */
export function capturedIn({ runs, header, nodes }: Page, task: number): Uint8Array {
  const capturing = header.statuses.indexOf("captured");
  const captured = new Uint8Array(nodes.length);
  for (let run = 0; run < runs.length; run++) {
    if (runs.task[run] === task && runs.status[run] === capturing)
      captured[runs.node[run]] = 1;
  }
  return captured;
}
