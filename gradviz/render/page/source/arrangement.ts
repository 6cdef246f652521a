/* The inside of a part when some of its boxes have grown, because they are opened.

Boxes stand in rows, and ways pass the rows vertically. Where a box grows, its row gets
higher, and all that is below moves down; what stands beside it moves aside, no farther
than it must. The order of everything stays as it was laid out, so nothing meets that
did not meet before, and readers find again what they have seen. */

import { rowsOf } from "./chains.ts";
import type { Page } from "./data.ts";
import type { Parts } from "./parts.ts";

/** What moves aside comes no nearer to its neighbor, unless it was nearer before. */
const GAP = 16;
/** Places are rounded: by so much a stop may miss its row. */
const ROUNDED = 1.5;

/** The size of a box, and where ways meet its upper and its lower side, from its left.
 *
 * Where they meet the upper one is where the middle of the box was: so what came straight
 * down still does. */
export interface Opened {
  readonly width: number;
  readonly height: number;
  readonly entry: number;
  readonly exit: number;
}

export interface Arrangement {
  /** Of each box of the part: its center, or of one that has grown where its entry is. */
  readonly at: ReadonlyMap<number, { x: number; y: number }>;
  /** Of each way of the part: the places that it leads through. */
  readonly routes: ReadonlyMap<number, Point[]>;
  readonly left: number;
  readonly right: number;
  readonly height: number;
}

export type Point = [x: number, y: number];

interface Row {
  readonly y: number;
  readonly boxes: number[];
  half: number;
  grownHalf: number;
  grownY: number;
  /** Where what was at some x is now: boxes by their centers, and ways that pass. */
  readonly moved: Map<number, number>;
  readonly passing: Set<number>;
}

export function arranged(
  page: Page,
  parts: Parts,
  part: number,
  grown: ReadonlyMap<number, Opened>,
): Arrangement {
  const { boxes } = page;
  const rows = rowsOfPart(page, parts, part, grown);
  const ways = [...rowsOf(parts.ways, part)].map((way) => ({
    way,
    stops: withPasses(rows, stopsOf(page, way)),
  }));
  for (const { way, stops } of ways) {
    for (const stop of stops.slice(1, -1)) {
      const row = rowAt(rows, stop[1]);
      if (row && !isBeside(page, way, row, stop)) row.passing.add(stop[0]);
    }
  }
  for (const row of rows) moveAside(page, row, grown);
  const at = new Map<number, { x: number; y: number }>();
  for (const row of rows) {
    for (const box of row.boxes)
      at.set(box, { x: row.moved.get(boxes.x[box])!, y: row.grownY });
  }
  const routes = new Map<number, Point[]>();
  for (const { way, stops } of ways)
    routes.set(way, movedRoute(page, rows, way, stops, at, grown));
  return { at, routes, ...extent(page, rows, routes, grown) };
}

function rowsOfPart(
  { boxes }: Page,
  parts: Parts,
  part: number,
  grown: ReadonlyMap<number, Opened>,
): Row[] {
  const rows = new Map<number, Row>();
  for (const box of rowsOf(parts.boxes, part)) {
    const y = boxes.y[box];
    const row: Row = rows.get(y) ?? {
      ...{ y, boxes: [], half: 0, grownHalf: 0, grownY: 0 },
      ...{ moved: new Map(), passing: new Set() },
    };
    rows.set(y, row);
    row.boxes.push(box);
    row.half = Math.max(row.half, boxes.height[box] / 2);
    const high = grown.get(box)?.height ?? boxes.height[box];
    row.grownHalf = Math.max(row.grownHalf, high / 2);
  }
  const sorted = [...rows.values()].sort((one, other) => one.y - other.y);
  let shift = 0;
  for (const row of sorted) {
    const more = row.grownHalf - row.half;
    row.grownY = row.y + shift + more;
    shift += 2 * more;
  }
  return sorted;
}

function stopsOf({ ways, stops }: Page, way: number): Point[] {
  const found: Point[] = [];
  for (let at = way ? ways.end[way - 1] : 0; at < ways.end[way]; at++)
    found.push([stops.x[at], stops.y[at]]);
  return found;
}

/** With stops at the borders of each row that a vertical line passes without one. */
function withPasses(rows: readonly Row[], stops: Point[]): Point[] {
  const found: Point[] = [stops[0]];
  for (let at = 1; at < stops.length; at++) {
    const [[x, y], next] = [stops[at - 1], stops[at]];
    if (x === next[0]) {
      for (const { y: middle, half } of rows) {
        for (const border of half ? [middle - half, middle + half] : [middle]) {
          if (border > y + ROUNDED && border < next[1] - ROUNDED)
            found.push([x, border]);
        }
      }
    }
    found.push(next);
  }
  return found;
}

function rowAt(rows: readonly Row[], y: number): Row | undefined {
  return rows.find((row) => Math.abs(y - row.y) <= row.half + ROUNDED);
}

/** Whether a stop is beside the box that its way begins or ends at, in the same row. */
function isBeside({ boxes, ways }: Page, way: number, row: Row, [x]: Point): boolean {
  return [ways.producer[way], ways.consumer[way]].some(
    (box) =>
      box >= 0 &&
      boxes.y[box] === row.y &&
      Math.abs(x - boxes.x[box]) <= boxes.width[box] / 2,
  );
}

/** Moves what stands in a row beside boxes that have grown; the widest of them stays. */
function moveAside(
  { boxes }: Page,
  row: Row,
  grown: ReadonlyMap<number, Opened>,
): void {
  const items = row.boxes.map((box) => ({
    ...{ x: boxes.x[box], half: boxes.width[box] / 2 },
    ...sides(boxes.width[box], grown.get(box)),
  }));
  for (const x of row.passing) items.push({ x, half: 0, left: 0, right: 0 });
  items.sort((one, other) => one.x - other.x);
  const more = items.map(({ half, left, right }) => left + right - 2 * half);
  const still = more.indexOf(Math.max(...more));
  const place = items.map(({ x }) => x);
  for (const step of [1, -1]) {
    for (let at = still + step; at >= 0 && at < items.length; at += step) {
      const [before, item] = [items[at - step], items[at]];
      const gap = Math.abs(item.x - before.x) - before.half - item.half;
      const reach = step > 0 ? before.right + item.left : before.left + item.right;
      const nearest =
        place[at - step] + step * (reach + Math.min(Math.max(gap, 0), GAP));
      place[at] = step > 0 ? Math.max(item.x, nearest) : Math.min(item.x, nearest);
    }
  }
  for (const [at, { x }] of items.entries()) row.moved.set(x, place[at]);
}

/** How far a box reaches to the left and to the right of its place. */
export function sides(width: number, grown: Opened | undefined) {
  return grown
    ? { left: grown.entry, right: grown.width - grown.entry }
    : { left: width / 2, right: width / 2 };
}

function movedRoute(
  page: Page,
  rows: readonly Row[],
  way: number,
  stops: readonly Point[],
  at: ReadonlyMap<number, { x: number; y: number }>,
  grown: ReadonlyMap<number, Opened>,
): Point[] {
  const { boxes, ways } = page;
  /** Where a way meets one of its boxes. */
  const meets = (box: number, x: number, isBelow: boolean): Point => {
    const [place, now] = [at.get(box)!, grown.get(box)];
    const half = (now?.height ?? boxes.height[box]) / 2;
    const shift = !now ? x - boxes.x[box] : isBelow ? now.exit - now.entry : 0;
    return [place.x + shift, place.y + (isBelow ? half : -half)];
  };
  const ends = [ways.producer[way], ways.consumer[way]];
  return stops.map(([x, y], number): Point => {
    const row = rowAt(rows, y);
    const isEnd = number === 0 || number === stops.length - 1;
    if (isEnd) {
      const box = ends[number === 0 ? 0 : 1];
      if (box >= 0) return meets(box, x, number === 0);
    } else if (row && isBeside(page, way, row, [x, y])) {
      const isBelow = y > row.y;
      const own = ends.find((box) => box >= 0 && boxes.y[box] === row.y)!;
      return [
        meets(own, x, isBelow)[0],
        row.grownY + (isBelow ? 1 : -1) * row.grownHalf,
      ];
    }
    if (!row) return [x, y + shiftAt(rows, y)];
    const side = Math.sign(Math.round(y - row.y));
    return [row.moved.get(x) ?? x, row.grownY + side * row.grownHalf];
  });
}

/** How far what is between rows has moved down. */
function shiftAt(rows: readonly Row[], y: number): number {
  const above = rows.findLast((row) => row.y <= y);
  return above ? above.grownY + above.grownHalf - above.y - above.half : 0;
}

function extent(
  { boxes }: Page,
  rows: readonly Row[],
  routes: ReadonlyMap<number, Point[]>,
  grown: ReadonlyMap<number, Opened>,
) {
  let [left, right, height] = [Infinity, -Infinity, 0];
  for (const row of rows) {
    for (const box of row.boxes) {
      const reach = sides(boxes.width[box], grown.get(box));
      const x = row.moved.get(boxes.x[box])!;
      [left, right] = [
        Math.min(left, x - reach.left),
        Math.max(right, x + reach.right),
      ];
    }
    height = Math.max(height, row.grownY + row.grownHalf);
  }
  for (const route of routes.values()) {
    for (const [x, y] of route) {
      [left, right] = [Math.min(left, x), Math.max(right, x)];
      height = Math.max(height, y);
    }
  }
  return { left, right, height };
}
