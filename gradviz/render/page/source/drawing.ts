/* A drawing with what is asked of it often: which box a node is in, what is where. */

import type { Frame } from "./camera.ts";
import { type Chains, chained, rowsOf } from "./chains.ts";
import type { Drawing, Page } from "./data.ts";

/** The size of chips, as `chips.py` has them. */
export const CHIP_HEIGHT = 16;
export const CHIP_GAP = 3;
const INDENT = 6;

export interface Plan {
  readonly drawing: Drawing;
  /** The first box that a node is in, -1 for none. */
  readonly boxOf: Int32Array;
  /** The rows of `chips` of a box, in order. */
  readonly chips: Chains;
  /** The rows of `members` of a box. */
  readonly members: Chains;
  readonly numChips: Int32Array;
  /** Of each way what is around its points: left, top, right, bottom. */
  readonly around: Int32Array;
  readonly width: number;
  readonly height: number;
}

/** What is at a place: a box, and which of its nodes. */
export interface Hit {
  readonly box: number;
  readonly node: number;
}

export function planOf(page: Page, drawing: Drawing): Plan {
  const { boxes, chips, members } = drawing;
  const boxOf = new Int32Array(page.nodes.length).fill(-1);
  for (let row = members.length - 1; row >= 0; row--) {
    if (members.node[row] >= 0) boxOf[members.node[row]] = members.box[row];
  }
  const numChips = new Int32Array(boxes.length);
  for (let row = 0; row < chips.length; row++) numChips[chips.box[row]]++;
  return {
    drawing,
    boxOf,
    numChips,
    around: aroundWays(drawing),
    chips: chained(chips.box, boxes.length),
    members: chained(members.box, boxes.length),
    width: drawing.header.width,
    height: drawing.header.height,
  };
}

function aroundWays({ ways, points }: Drawing): Int32Array {
  const around = new Int32Array(4 * ways.length);
  for (let way = 0, at = 0; way < ways.length; way++) {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (; at < ways.end[way]; at++) {
      left = Math.min(left, points.x[at]);
      right = Math.max(right, points.x[at]);
      top = Math.min(top, points.y[at]);
      bottom = Math.max(bottom, points.y[at]);
    }
    around.set([left, top, right, bottom], 4 * way);
  }
  return around;
}

export function frameOf({ drawing: { boxes } }: Plan, box: number): Frame {
  const [wide, high] = [boxes.width[box] / 2, boxes.height[box] / 2];
  const [x, y] = [boxes.x[box], boxes.y[box]];
  return { left: x - wide, top: y - high, right: x + wide, bottom: y + high };
}

/** The frame of the chip that is the `number`th of a box. */
export function chipFrame(plan: Plan, box: number, number: number): Frame {
  const { left, right, bottom } = frameOf(plan, box);
  const step = CHIP_HEIGHT + CHIP_GAP;
  const top = bottom - (plan.numChips[box] - number) * step - CHIP_GAP / 2;
  return {
    left: left + plan.drawing.boxes.badge_width[box] + INDENT,
    top,
    right: right - INDENT,
    bottom: top + CHIP_HEIGHT,
  };
}

export function hitAt(plan: Plan, x: number, y: number): Hit | null {
  const { boxes, chips } = plan.drawing;
  for (let box = boxes.length - 1; box >= 0; box--) {
    if (
      Math.abs(x - boxes.x[box]) > boxes.width[box] / 2 ||
      Math.abs(y - boxes.y[box]) > boxes.height[box] / 2
    )
      continue;
    let number = 0;
    for (const row of rowsOf(plan.chips, box)) {
      const frame = chipFrame(plan, box, number++);
      if (x >= frame.left && x <= frame.right && y >= frame.top && y <= frame.bottom)
        return { box, node: chips.node[row] };
    }
    return { box, node: boxes.node[box] };
  }
  return null;
}

/** All of a drawing. */
export function whole({ width, height }: Plan): Frame {
  return { left: 0, top: 0, right: width, bottom: height };
}
