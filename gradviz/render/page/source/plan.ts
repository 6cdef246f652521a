/* A graph as it is shown: which boxes, where, and what ways lead from one to another. */

import type { Frame } from "./camera.ts";
import { type Chains, rowsOf } from "./chains.ts";
import type { Page } from "./data.ts";

/** The size of chips, as `chips.py` has them. */
export const CHIP_HEIGHT = 16;
export const CHIP_GAP = 3;
const INDENT = 6;

/** The height of the title of an opened box, which can be clicked. */
export const TITLE_HEIGHT = 22;

export interface Plan {
  /** Boxes that are shown closed, and those that are opened, outside before inside. */
  readonly closed: readonly number[];
  readonly opened: readonly number[];
  /** Of all boxes that are shown: the center, and the size. */
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly width: Float64Array;
  readonly height: Float64Array;
  /** The closed box that each box is or is in, -1 of those around. */
  readonly shownAs: Int32Array;
  /** The closed box that each node is in, -1 for none. */
  readonly boxOf: Int32Array;
  /** The rows of `chips` of a box; those of `members` of a closed box. */
  readonly chips: Chains;
  readonly members: Chains;
  readonly numChips: Int32Array;
  readonly ways: Ways;
  readonly wide: number;
  readonly high: number;
}

/** Ways that are shown, by number; see `WayTable`. */
export interface Ways {
  readonly length: number;
  /** Their rows in the table. */
  readonly row: Int32Array;
  /** Where the stops of each end. */
  readonly end: Int32Array;
  readonly x: Float64Array;
  readonly y: Float64Array;
  /** What is around the stops of each: left, top, right, bottom. */
  readonly around: Float64Array;
}

/** What is at a place: a box, and which of its nodes; or the title of an opened box. */
export interface Hit {
  readonly box: number;
  readonly node: number;
  readonly isTitle: boolean;
}

export function frameOf({ x, y, width, height }: Plan, box: number): Frame {
  const [wide, high] = [width[box] / 2, height[box] / 2];
  return {
    left: x[box] - wide,
    top: y[box] - high,
    right: x[box] + wide,
    bottom: y[box] + high,
  };
}

/** The frame of the chip that is the `number`th of a box. */
export function chipFrame(page: Page, plan: Plan, box: number, number: number): Frame {
  const { left, right, bottom } = frameOf(plan, box);
  const step = CHIP_HEIGHT + CHIP_GAP;
  const top = bottom - (plan.numChips[box] - number) * step - CHIP_GAP / 2;
  return {
    left: left + page.boxes.badge_width[box] + INDENT,
    top,
    right: right - INDENT,
    bottom: top + CHIP_HEIGHT,
  };
}

/** What is at a place; titles are as high as `reach` at the least. */
export function hitAt(
  page: Page,
  plan: Plan,
  x: number,
  y: number,
  reach = 0,
): Hit | null {
  const isIn = ({ left, top, right, bottom }: Frame) =>
    x >= left && x <= right && y >= top && y <= bottom;
  for (const box of plan.closed) {
    if (!isIn(frameOf(plan, box))) continue;
    let number = 0;
    for (const row of rowsOf(plan.chips, box)) {
      if (isIn(chipFrame(page, plan, box, number++)))
        return { box, node: page.chips.node[row], isTitle: false };
    }
    return { box, node: page.boxes.node[box], isTitle: false };
  }
  for (const box of [...plan.opened].reverse()) {
    const frame = frameOf(plan, box);
    if (isIn({ ...frame, bottom: frame.top + Math.max(TITLE_HEIGHT, reach) }))
      return { box, node: -1, isTitle: true };
  }
  return null;
}

/** All of a graph. */
export function whole({ wide, high }: Plan): Frame {
  return { left: 0, top: 0, right: wide, bottom: high };
}
