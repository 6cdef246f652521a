/* What has begun and has not ended: found for any moment without replaying what was before.

The same idea as `analysis/spans.py`. Each block of 256 spans knows when the last of its
own ends, and so does each block of 256 blocks: a look passes over all that is long gone. */

import { firstAbove } from "./sorted.ts";

const BLOCK = 256;

export interface Spans {
  /** The events at which things began, sorted. */
  readonly begin: Uint32Array;
  /** The events at which they ended; `NEVER` where none did. */
  readonly end: Uint32Array;
  readonly latest: Uint32Array;
  readonly latestOfBlocks: Uint32Array;
}

/** The end of what does not end. */
export const NEVER = 0xffffffff;

export function indexed(begin: Uint32Array, end: Uint32Array): Spans {
  const latest = latestOf(end);
  return { begin, end, latest, latestOfBlocks: latestOf(latest) };
}

/** The places of what is there right after an event, in the order in which it began. */
export function openAt(spans: Spans, seq: number): number[] {
  const begun = firstAbove(spans.begin, seq);
  const found: number[] = [];
  for (let big = 0; big * BLOCK * BLOCK < begun; big++) {
    if (spans.latestOfBlocks[big] <= seq) continue;
    const lastBlock = Math.min((big + 1) * BLOCK, Math.ceil(begun / BLOCK));
    for (let block = big * BLOCK; block < lastBlock; block++) {
      if (spans.latest[block] <= seq) continue;
      const last = Math.min((block + 1) * BLOCK, begun);
      for (let i = block * BLOCK; i < last; i++) if (spans.end[i] > seq) found.push(i);
    }
  }
  return found;
}

function latestOf(end: Uint32Array): Uint32Array {
  const latest = new Uint32Array(Math.ceil(end.length / BLOCK));
  for (let i = 0; i < end.length; i++) {
    const block = (i / BLOCK) | 0;
    if (end[i] > latest[block]) latest[block] = end[i];
  }
  return latest;
}
