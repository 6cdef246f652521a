/* Moments: places in the table of events. */

import type { Page } from "./data.ts";
import { firstAbove } from "./sorted.ts";

/** The last event until a time, the first of all if there is none. */
export function eventAt({ events }: Page, time: number): number {
  return Math.max(firstAbove(events.at_ns, time) - 1, 0);
}

/** The next event of a kind after a moment, or the one before it; -1 if there is none. */
export function nextOf(
  { events, header }: Page,
  kind: string,
  moment: number,
  step: 1 | -1,
): number {
  const wanted = header.kinds.indexOf(kind);
  for (let at = moment + step; at >= 0 && at < events.kind.length; at += step) {
    if (events.kind[at] === wanted) return at;
  }
  return -1;
}

/** Whether a pass goes on after the last event that the page has. */
export function goesOn({ events, header }: Page, task: number): boolean {
  const end_ns = header.passes[task]?.end_ns ?? Infinity;
  return header.is_cut && end_ns > events.at_ns[events.length - 1];
}
