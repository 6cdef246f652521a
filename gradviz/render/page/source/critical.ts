/* The critical path over the lanes: a line above each, and where it goes to another one. */

import type { Context } from "./axis.ts";
import type { Numbers } from "./data.ts";
import { marks } from "./levels.ts";
import { firstAtLeast } from "./sorted.ts";
import { CRITICAL_HEIGHT, type Drawn, extent, rowTop } from "./timeline.ts";
import { nsPerPixel, pixelOf } from "./viewport.ts";

/** Moments at which the path goes from one lane to another, in the order of time. */
export interface Crossings {
  readonly time: Float64Array;
  readonly from: Int32Array;
  readonly to: Int32Array;
}

/** Of segments that lie end to end; those whose lane is not below `numLanes` have none. */
export function crossingsOf(
  end_ns: Numbers,
  lane: ArrayLike<number>,
  numLanes: number,
): Crossings {
  const found: number[] = [];
  for (let next = 1; next < lane.length; next++) {
    const [from, to] = [lane[next - 1], lane[next]];
    if (from !== to && from < numLanes && to < numLanes) found.push(next - 1);
  }
  return {
    time: Float64Array.from(found, (one) => end_ns[one]),
    from: Int32Array.from(found, (one) => lane[one]),
    to: Int32Array.from(found, (one) => lane[one + 1]),
  };
}

export function drawCritical(
  context: Context,
  drawn: Drawn,
  lanes: readonly number[],
): void {
  const { view, colors, crossings } = drawn;
  const slice = nsPerPixel(view);
  context.fillStyle = colors.critical;
  for (const lane of lanes) {
    const y = lineTop(drawn, lane);
    marks(drawn.lanes[lane].critical, view.from, view.until, slice, (_, start, end) => {
      const [x, wide] = extent(drawn, start, end);
      context.fillRect(x, y, wide, CRITICAL_HEIGHT - 1);
    });
  }
  // Of those between the same lanes one a pixel is enough.
  const last = new Map<number, number>();
  let at = firstAtLeast(crossings.time, view.from);
  for (; at < crossings.time.length && crossings.time[at] <= view.until; at++) {
    const [from, to] = [crossings.from[at], crossings.to[at]];
    const pair = Math.min(from, to) * drawn.lanes.length + Math.max(from, to);
    const x = Math.round(pixelOf(view, crossings.time[at]));
    if (last.get(pair) === x) continue;
    last.set(pair, x);
    const [one, other] = [lineTop(drawn, from), lineTop(drawn, to)].sort(
      (a, b) => a - b,
    );
    context.fillRect(drawn.place.gutter + x - 0.75, one, 1.5, other - one);
  }
}

function lineTop({ place, scrolled }: Drawn, lane: number): number {
  return rowTop(place, lane, 0, scrolled) - CRITICAL_HEIGHT - 2;
}
