/* How far the nodes of a pass are at a moment: done, running, queued, waiting. */

import type { Page } from "./data.ts";

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

/** Tells how far the nodes of a pass are right after an event; -1: after all of them. */
export function progressOf(page: Page, task: number): (moment: number) => Progress {
  const { nodes, gradients, stays, runs } = page;
  const given = rowsWith(gradients.task, task);
  const queued = rowsWith(stays.task, task);
  const ran = rowsWith(runs.task, task);
  const stage = new Uint8Array(nodes.length);
  const remaining = new Int32Array(nodes.length);
  const failed = page.header.statuses.indexOf("failed");

  return (wanted) => {
    const moment = wanted < 0 ? Infinity : wanted;
    stage.fill(Stage.None);
    remaining.fill(0);
    const isOver = (end: number) => end >= 0 && end <= moment;
    for (const row of given) {
      if (gradients.at[row] > moment || isOver(gradients.until[row])) continue;
      remaining[gradients.node[row]] = gradients.remaining[row];
      stage[gradients.node[row]] = Stage.Waits;
    }
    for (const row of queued) {
      const node = stays.node[row];
      if (node >= 0 && stays.pushed[row] <= moment && !isOver(stays.popped[row]))
        stage[node] = Stage.Queued;
    }
    for (const row of ran) {
      if (runs.begin[row] > moment) continue;
      const isDone = isOver(runs.end[row]) || (runs.end[row] < 0 && wanted < 0);
      stage[runs.node[row]] = !isDone
        ? Stage.Runs
        : runs.status[row] === failed
          ? Stage.Failed
          : Stage.Done;
    }
    return { stage, remaining };
  };
}

function rowsWith(column: ArrayLike<number>, value: number): Int32Array {
  const found: number[] = [];
  for (let row = 0; row < column.length; row++) if (column[row] === value) found.push(row);
  return Int32Array.from(found);
}

/** Of each node the stage in which it ended in a pass, and whether it was captured. */
export function outcomesOf(page: Page, task: number) {
  const { runs, header, nodes } = page;
  const capturing = header.statuses.indexOf("captured");
  const captured = new Uint8Array(nodes.length);
  for (let run = 0; run < runs.length; run++) {
    if (runs.task[run] === task && runs.status[run] === capturing)
      captured[runs.node[run]] = 1;
  }
  return { outcome: progressOf(page, task)(-1).stage, captured };
}
