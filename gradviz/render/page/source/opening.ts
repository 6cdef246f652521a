/* Which boxes of a graph are open: at first, and after a click. */

import { rowsOf } from "./chains.ts";
import type { Page } from "./data.ts";
import { around, openable, type Parts } from "./parts.ts";

/** More boxes are not shown at first, unless the whole graph has more by itself. */
const MANY = 60;

/** The boxes that are open in all passes until a reader opens others. */
export function openedFirst(parts: Parts): number[] {
  return [...parts.roots.keys()].flatMap((task) => {
    const levels = levelsOf(parts, task);
    const suits = levels.findLast(({ numBoxes }) => numBoxes <= MANY) ?? levels[0];
    return [...suits.open];
  });
}

export interface Level {
  readonly open: readonly number[];
  /** How many boxes are then shown. */
  readonly numBoxes: number;
}

/** All that a reader can open at once: nothing, the boxes outside, those in them too. */
export function levelsOf(parts: Parts, task: number): Level[] {
  const root = parts.roots.get(task);
  if (root === undefined) return [];
  const numIn = (part: number) => [...rowsOf(parts.boxes, part)].length;
  let numBoxes = numIn(root);
  const levels: Level[] = [{ open: [], numBoxes }];
  const open: number[] = [];
  let depth = 0;
  for (const box of openable(parts, task)) {
    if (parts.depth[box] > depth) {
      levels.push({ open: [...open], numBoxes });
      depth = parts.depth[box];
    }
    open.push(box);
    numBoxes += numIn(parts.inside[box]) - 1;
  }
  if (open.length) levels.push({ open, numBoxes });
  return levels;
}

/** With a box opened, or closed if it is open. */
export function toggled(open: readonly number[], box: number): number[] {
  return open.includes(box) ? open.filter((one) => one !== box) : [...open, box];
}

/** With all boxes around one opened, so that it is seen. */
export function opened(page: Page, open: readonly number[], box: number): number[] {
  const found = new Set(open);
  for (let at = around(page, box); at >= 0; at = around(page, at)) found.add(at);
  return [...found];
}
