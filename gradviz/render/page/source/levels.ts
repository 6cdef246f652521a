/* What a row of spans looks like at some zoom: never more marks than pixels.

Note [Level of detail]
~~~~~~~~~~~~~~~~~~~~~~
A span that is wide enough is drawn as itself. Narrower ones share a mark with all that
begin in the same slice of the time, about a pixel wide: it has the color of the longest
of them, and says how many they are. Slices are counted from time 0 and not from the edge
of the screen, so nothing flickers while one pans. The first span of a slice is found by
binary search, the longest by a pyramid in which each block knows the longest of the
sixteen below it: the work of a frame grows with the screen, and hardly with the trace. */

import type { Row } from "./lanes.ts";
import { firstAbove, firstAtLeast } from "./sorted.ts";

const FAN = 16;

/** A row, with what is needed to draw it at any zoom. */
export interface LeveledRow extends Row {
  /** Of each block of 16, of 256 ... spans the place of the longest. */
  readonly longest: readonly Uint32Array[];
}

/** Receives the marks of a row from left to right. `num` of spans are drawn as one. */
export type DrawMark = (place: number, start: number, end: number, num: number) => void;

export function leveled(row: Row): LeveledRow {
  const size = row.start.length;
  const longest: Uint32Array[] = [];
  let below = Uint32Array.from({ length: size }, (_, i) => i);
  while (below.length > FAN) {
    const above = new Uint32Array(Math.ceil(below.length / FAN));
    for (let block = 0; block < above.length; block++) {
      const end = Math.min((block + 1) * FAN, below.length);
      let best = below[block * FAN];
      for (let i = block * FAN + 1; i < end; i++) best = longer(row, best, below[i]);
      above[block] = best;
    }
    longest.push(above);
    below = above;
  }
  return { ...row, longest };
}

/**
 * The marks of a row between two times.
 *
 * @param slice The length of time within which spans become one mark: that of a pixel.
 */
export function marks(
  row: LeveledRow,
  from: number,
  until: number,
  slice: number,
  draw: DrawMark,
): void {
  let place = firstAbove(row.end, from);
  while (place < row.start.length && row.start[place] < until) {
    const start = row.start[place];
    const end = row.end[place];
    if (end - start >= slice) {
      draw(place, start, end, 1);
      place++;
      continue;
    }
    const edge = (Math.floor(start / slice) + 1) * slice;
    // The next ones are mostly near: to look there first is much quicker.
    let reach = 8;
    while (place + reach < row.start.length && row.start[place + reach] < edge)
      reach *= 2;
    let next = firstAtLeast(
      row.start,
      edge,
      place + 1,
      Math.min(place + reach, row.start.length),
    );
    // A long one that begins in this slice is not hidden by the short ones before it.
    if (next - 1 > place && row.end[next - 1] - row.start[next - 1] >= slice) next--;
    const num = next - place;
    draw(
      num === 1 ? place : longestOf(row, place, next),
      start,
      row.end[next - 1],
      num,
    );
    place = next;
  }
}

/** The longest span of some that follow each other; of equals the first. */
export function longestOf(row: LeveledRow, from: number, until: number): number {
  let best = from;
  let place = from;
  while (place < until) {
    let level = -1;
    let size = 1;
    while (
      level + 1 < row.longest.length &&
      place % (size * FAN) === 0 &&
      place + size * FAN <= until
    ) {
      level++;
      size *= FAN;
    }
    best = longer(row, best, level < 0 ? place : row.longest[level][place / size]);
    place += size;
  }
  return best;
}

/** The span at a moment, or the one nearest within `slack`; -1 if there is none. */
export function placeAt(row: Row, time: number, slack = 0): number {
  const next = firstAbove(row.start, time);
  if (next > 0 && row.end[next - 1] >= time) return next - 1;
  const after = next < row.start.length ? row.start[next] - time : Infinity;
  const before = next > 0 ? time - row.end[next - 1] : Infinity;
  if (Math.min(after, before) > slack) return -1;
  return before <= after ? next - 1 : next;
}

function longer(row: Row, one: number, other: number): number {
  return row.end[other] - row.start[other] > row.end[one] - row.start[one]
    ? other
    : one;
}
