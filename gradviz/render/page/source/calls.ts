/* Passes that nodes called while they ran, and who called a pass. */

import type { Page } from "./data.ts";

/** The places of the passes that were called in a run. */
export function calledIn(page: Page, run: number): number[] {
  const { header, runs } = page;
  const task = header.passes[runs.task[run]]?.task;
  return [...header.passes.keys()].filter((place) => {
    const one = header.passes[place];
    return (
      one.parent === task &&
      one.thread === runs.thread[run] &&
      one.begin_ns >= runs.start_ns[run] &&
      one.begin_ns <= runs.end_ns[run]
    );
  });
}

/** The node that called a pass, and the place of its own pass. */
export function callerOf(
  page: Page,
  pass: number,
): { node: number; task: number } | null {
  const { header, runs } = page;
  const called = header.passes[pass];
  const task = header.passes.findIndex((one) => one.task === called?.parent);
  if (task < 0) return null;
  for (let run = runs.length - 1; run >= 0; run--) {
    const isIn =
      runs.start_ns[run] <= called.begin_ns && called.begin_ns <= runs.end_ns[run];
    if (isIn && runs.task[run] === task && runs.thread[run] === called.thread)
      return { node: runs.node[run], task };
  }
  return null;
}
