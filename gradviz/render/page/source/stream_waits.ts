/* Arrows of streams: from the end of the work that one waited for to what it then did. */

import type { Context } from "./axis.ts";
import type { Page } from "./data.ts";
import { firstAbove, firstAtLeast } from "./sorted.ts";
import { type Drawn, rowTop } from "./timeline.ts";
import { nsPerPixel, pixelOf } from "./viewport.ts";

/** More would hide the bars, and each other. */
const MAX_DRAWN = 300;
/** Of more on the screen only each so manieth is looked at. */
const MAX_LOOKED = 5_000;
const HEAD = 7;

/** By the time at which what waited began. */
export interface StreamWaits {
  readonly ready: Float64Array;
  readonly began: Float64Array;
  readonly from: Int32Array;
  readonly to: Int32Array;
}

/** @param laneOf The lane of each kernel. */
export function streamWaitsOf(
  { kernels, kernel_waits }: Pick<Page, "kernels" | "kernel_waits">,
  laneOf: (kernel: number) => number,
): StreamWaits {
  const { kernel, awaited } = kernel_waits;
  const rows = Array.from(kernel, (_, row) => row).sort(
    (one, other) => kernels.begin_ns[kernel[one]] - kernels.begin_ns[kernel[other]],
  );
  return {
    ready: Float64Array.from(rows, (row) => kernels.end_ns[awaited[row]]),
    began: Float64Array.from(rows, (row) => kernels.begin_ns[kernel[row]]),
    from: Int32Array.from(rows, (row) => laneOf(awaited[row])),
    to: Int32Array.from(rows, (row) => laneOf(kernel[row])),
  };
}

/**
 * Which of them are drawn: those that are wholly within a time, of those whose ends lie
 * in the same pixels of the same lanes the first.
 *
 * @param pixel How long a pixel is.
 */
export function drawnOf(
  { ready, began, from, to }: StreamWaits,
  begin: number,
  end: number,
  pixel: number,
): number[] {
  const [first, last] = [firstAtLeast(began, begin), firstAbove(began, end)];
  const step = Math.max(Math.ceil((last - first) / MAX_LOOKED), 1);
  const found = new Map<string, number>();
  for (let at = first; at < last && found.size < MAX_DRAWN; at += step) {
    if (ready[at] < begin) continue;
    const pixels = [ready[at], began[at]].map((time) => Math.floor(time / pixel / 3));
    const name = `${from[at]} ${to[at]} ${pixels}`;
    if (!found.has(name)) found.set(name, at);
  }
  return [...found.values()];
}

export function drawStreamWaits(context: Context, drawn: Drawn): void {
  const { view, place, scrolled, colors, streamWaits: waits } = drawn;
  const some = drawnOf(waits, view.from, view.until, nsPerPixel(view));
  context.strokeStyle = context.fillStyle = colors.ink;
  context.lineWidth = 1.4;
  for (const at of some) {
    const isBelow = waits.to[at] > waits.from[at];
    const edge = (lane: number, isLower: boolean) =>
      rowTop(place, lane, 0, scrolled) + (isLower ? place.barHeight : 0);
    const [x, y] = [
      place.gutter + pixelOf(view, waits.ready[at]),
      edge(waits.from[at], isBelow),
    ];
    const [toX, toY] = [
      place.gutter + pixelOf(view, waits.began[at]),
      edge(waits.to[at], !isBelow),
    ];
    context.setLineDash([4, 2]);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(toX, toY);
    context.stroke();
    context.setLineDash([]);
    const angle = Math.atan2(toY - y, toX - x);
    context.beginPath();
    context.moveTo(toX, toY);
    for (const turn of [-0.4, 0.4])
      context.lineTo(
        toX - HEAD * Math.cos(angle + turn),
        toY - HEAD * Math.sin(angle + turn),
      );
    context.fill();
  }
}
