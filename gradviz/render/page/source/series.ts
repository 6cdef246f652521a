/* A number that changes from time to time: what it was, and the most it was in a slice. */

import { firstAbove, firstAtLeast } from "./sorted.ts";

const FAN = 16;

export interface Series {
  /** When it changed, sorted. */
  readonly time: Float64Array;
  /** What it was from then on. */
  readonly value: Float64Array;
  /** Of each block of 16, of 256 ... changes the place of the largest. */
  readonly largest: readonly Uint32Array[];
}

export function series(time: Float64Array, value: Float64Array): Series {
  const largest: Uint32Array[] = [];
  let below = Uint32Array.from({ length: value.length }, (_, i) => i);
  while (below.length > FAN) {
    const above = new Uint32Array(Math.ceil(below.length / FAN));
    for (let block = 0; block < above.length; block++) {
      const end = Math.min((block + 1) * FAN, below.length);
      let best = below[block * FAN];
      for (let i = block * FAN + 1; i < end; i++)
        if (value[below[i]] > value[best]) best = below[i];
      above[block] = best;
    }
    largest.push(above);
    below = above;
  }
  return { time, value, largest };
}

/** The last change until then, -1 before the first. */
export function changeAt(some: Series, time: number): number {
  return firstAbove(some.time, time) - 1;
}

/** The change after which it was largest of those from one place to before another. */
export function largestOf(some: Series, from: number, until: number): number {
  let best = from;
  for (let place = from; place < until; ) {
    let level = -1;
    let size = 1;
    while (
      level + 1 < some.largest.length &&
      place % (size * FAN) === 0 &&
      place + size * FAN <= until
    ) {
      level++;
      size *= FAN;
    }
    const one = level < 0 ? place : some.largest[level][place / size];
    if (some.value[one] > some.value[best]) best = one;
    place += size;
  }
  return best;
}

/** Receives steps from left to right: from when until when it was as after `place`. */
export type DrawStep = (place: number, from: number, until: number) => void;

/** What was between two times; changes within one `slice` are told as the largest. */
export function steps(
  some: Series,
  from: number,
  until: number,
  slice: number,
  draw: DrawStep,
): void {
  let place = changeAt(some, from);
  while (place < some.time.length) {
    const start = place < 0 ? -Infinity : some.time[place];
    if (start >= until) return;
    const next = place + 1 < some.time.length ? some.time[place + 1] : Infinity;
    if (place < 0 || next - start >= slice) {
      if (place >= 0) draw(place, start, next);
      place++;
      continue;
    }
    const edge = (Math.floor(start / slice) + 1) * slice;
    const last = firstAtLeast(some.time, edge, place + 1);
    const end = last < some.time.length ? some.time[last] : Infinity;
    // The last change goes on beyond the slice, the larger ones before it do not.
    draw(largestOf(some, place, last), start, edge);
    if (end > edge) draw(last - 1, edge, end);
    place = last;
  }
}

/** How many there were, of things that came and went; both sorted. */
export function lengths(came: Float64Array, went: Float64Array): Series {
  const time = new Float64Array(came.length + went.length);
  const value = new Float64Array(time.length);
  let [i, j] = [0, 0];
  while (i + j < time.length) {
    const isComing = j === went.length || (i < came.length && came[i] <= went[j]);
    time[i + j] = isComing ? came[i] : went[j];
    if (isComing) i++;
    else j++;
    value[i + j - 1] = i - j;
  }
  return series(time, value);
}
