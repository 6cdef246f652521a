/* In which row of its lane each span lies: one row below those that it lies in. */
import type { Numbers } from "./data.ts";

/** Spans of one row that do not overlap, in the order of time. */
export interface Row {
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** Of each span its number in the table that it comes from. */
  readonly item: Uint32Array;
}

/** Deeper nesting is not drawn, but counted. */
export const MAX_ROWS = 50;

export interface Rows {
  readonly rows: readonly Row[];
  /** Spans that lie deeper than can be drawn. */
  readonly omitted: number;
}

/**
 * The rows of some spans of one lane.
 *
 * @param items Which spans of the table, in the order of their start; of two that start
 *   together the one that ends last comes first.
 */
export function nested(start: Numbers, end: Numbers, items: ArrayLike<number>): Rows {
  const depth = new Uint8Array(items.length);
  const sizes: number[] = [];
  const open: number[] = [];
  let omitted = 0;
  for (let i = 0; i < items.length; i++) {
    const begin = start[items[i]];
    while (open.length > 0 && open[open.length - 1] <= begin) open.pop();
    const row = Math.min(open.length, MAX_ROWS);
    if (row === MAX_ROWS) omitted++;
    else sizes[row] = (sizes[row] ?? 0) + 1;
    depth[i] = row;
    open.push(end[items[i]]);
  }
  const rows = sizes.map((size) => ({
    start: new Float64Array(size),
    end: new Float64Array(size),
    item: new Uint32Array(size),
  }));
  const filled = sizes.map(() => 0);
  for (let i = 0; i < items.length; i++) {
    const row = rows[depth[i]];
    if (row === undefined) continue;
    const at = filled[depth[i]]++;
    row.item[at] = items[i];
    row.start[at] = start[items[i]];
    row.end[at] = end[items[i]];
  }
  return { rows, omitted };
}

/** The numbers of all spans, lane by lane, each in the order that `nested` wants. */
export function byLane(
  start: Numbers,
  end: Numbers,
  lane: Numbers,
  numLanes: number,
): Uint32Array[] {
  const sizes = new Uint32Array(numLanes);
  for (let i = 0; i < lane.length; i++) sizes[lane[i]]++;
  const found = Array.from(sizes, (size) => new Uint32Array(size));
  const filled = new Uint32Array(numLanes);
  for (let i = 0; i < lane.length; i++) found[lane[i]][filled[lane[i]]++] = i;
  for (const items of found) {
    if (!isInOrder(start, end, items)) {
      items.sort((a, b) => start[a] - start[b] || end[b] - end[a] || a - b);
    }
  }
  return found;
}

function isInOrder(start: Numbers, end: Numbers, items: Uint32Array): boolean {
  for (let i = 1; i < items.length; i++) {
    const [one, other] = [items[i - 1], items[i]];
    const apart = start[other] - start[one];
    if (apart < 0 || (apart === 0 && end[other] > end[one])) return false;
  }
  return true;
}
