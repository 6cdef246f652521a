/* The number that a node has in a pass: its place in the order of execution there.

A leaf runs in every pass, and has another number in each. */

import { chained, rowsOf } from "./chains.ts";
import type { Page } from "./data.ts";
import { operation } from "./operations.ts";

export interface Numbering {
  /** Of each run. */
  readonly ofRun: Int32Array;
  /** Of a node in a pass, on whichever worker; -1 where it did not run. */
  of(node: number, task: number): number;
}

const known = new WeakMap<Page, Numbering>();

export function numberingOf(page: Page): Numbering {
  const found = known.get(page) ?? numbered(page);
  known.set(page, found);
  return found;
}

/** `5 Mul`: what a node is called in a pass; without a number where it did not run. */
export function calledIn(page: Page, node: number, task: number): string {
  const number = numberingOf(page).of(node, task);
  const name = operation(page.text(page.nodes.name[node])) || "?";
  return number < 0 ? name : `${number} ${name}`;
}

function numbered({ runs, nodes, header }: Page): Numbering {
  // All workers' parts of a pass are numbered together.
  const next = new Map<number, number>();
  const ofRun = Int32Array.from(runs.task, (task) => {
    if (task < 0) return -1;
    const number = next.get(header.passes[task].whole) ?? 0;
    next.set(header.passes[task].whole, number + 1);
    return number;
  });
  const runsOf = chained(runs.node, nodes.length);
  const wholeOf = (task: number) => header.passes[task]?.whole;
  return {
    ofRun,
    of(node, task) {
      for (const run of rowsOf(runsOf, node)) {
        if (wholeOf(runs.task[run]) === wholeOf(task)) return ofRun[run];
      }
      return -1;
    },
  };
}
