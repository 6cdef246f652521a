/* The number that a node has in a pass: its place in the order of execution there.

A leaf runs in every pass, and has another number in each. */

import { chained, rowsOf } from "./chains.ts";
import type { Page } from "./data.ts";
import { operation } from "./operations.ts";

export interface Numbering {
  /** Of each run. */
  readonly ofRun: Int32Array;
  /** Of a node in a pass, -1 where it did not run. */
  of(node: number, task: number): number;
}

const known = new WeakMap<Page, Numbering>();

export function numberingOf(page: Page): Numbering {
  let found = known.get(page);
  if (found === undefined) known.set(page, (found = numbered(page)));
  return found;
}

/** `5 Mul`: what a node is called in a pass; without a number where it did not run. */
export function calledIn(page: Page, node: number, task: number): string {
  const number = numberingOf(page).of(node, task);
  const name = operation(page.text(page.nodes.name[node])) || "?";
  return number < 0 ? name : `${number} ${name}`;
}

function numbered({ runs, nodes, header }: Page): Numbering {
  const next = new Int32Array(header.passes.length);
  const ofRun = Int32Array.from(runs.task, (task) => (task < 0 ? -1 : next[task]++));
  const runsOf = chained(runs.node, nodes.length);
  return {
    ofRun,
    of(node, task) {
      for (const run of rowsOf(runsOf, node)) {
        if (runs.task[run] === task) return ofRun[run];
      }
      return -1;
    },
  };
}
