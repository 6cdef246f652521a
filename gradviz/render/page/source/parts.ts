/* The graphs of a page as trees: what is inside of which box.

See Note [Parts of a drawing] of `drawings.py`. */

import { type Chains, chained, rowsOf } from "./chains.ts";
import type { Page } from "./data.ts";

export interface Parts {
  /** The part that is inside of a box, -1 of those that cannot be opened. */
  readonly inside: Int32Array;
  /** The boxes and the ways of each part. */
  readonly boxes: Chains;
  readonly ways: Chains;
  /** The part of a pass that holds all others, by the place of the pass. */
  readonly roots: ReadonlyMap<number, number>;
  /** The pass whose part holds that of a pass, by their places: itself, or what called it. */
  readonly outermost: ReadonlyMap<number, number>;
  /** How many boxes are around each. */
  readonly depth: Int32Array;
}

export function partsOf({ parts, boxes, ways }: Page): Parts {
  const inside = new Int32Array(boxes.length).fill(-1);
  const roots = new Map<number, number>();
  const outermost = new Map<number, number>();
  for (let part = 0; part < parts.length; part++) {
    if (parts.box[part] >= 0) inside[parts.box[part]] = part;
    else roots.set(parts.task[part], part);
    const around = parts.box[part] < 0 ? -1 : parts.task[boxes.part[parts.box[part]]];
    if (!outermost.has(parts.task[part]))
      outermost.set(parts.task[part], outermost.get(around) ?? parts.task[part]);
  }
  const depth = new Int32Array(boxes.length);
  for (let box = 0; box < boxes.length; box++) {
    const around = parts.box[boxes.part[box]]; // comes before what is in it
    depth[box] = around < 0 ? 0 : depth[around] + 1;
  }
  return {
    inside,
    roots,
    outermost,
    depth,
    boxes: chained(boxes.part, parts.length),
    ways: chained(ways.part, parts.length),
  };
}

/** The box around a box, -1 of the outermost. */
export function around({ parts, boxes }: Page, box: number): number {
  return parts.box[boxes.part[box]];
}

/** The pass of what a box shows. */
export function taskOf({ parts, boxes }: Page, box: number): number {
  return parts.task[boxes.part[box]];
}

/** A pass, and those called from inside it that are drawn in it. */
export function tasksIn({ outermost }: Parts, task: number): number[] {
  const all = [...outermost.keys()].filter((one) => outermost.get(one) === task);
  return all.length ? all : [task];
}

/** All boxes of a pass that can be opened, those outside before those inside. */
export function openable({ inside, boxes, roots }: Parts, task: number): number[] {
  const found: number[] = [];
  const pending = [roots.get(task) ?? -1];
  for (const part of pending) {
    for (const box of part < 0 ? [] : rowsOf(boxes, part)) {
      if (inside[box] < 0) continue;
      found.push(box);
      pending.push(inside[box]);
    }
  }
  return found;
}
