/* Arrows of the selected node: who made it ready, whom it made ready, how long it lay. */

import { type Context, hatched } from "./axis.ts";
import type { Drawn } from "./timeline.ts";
import { rowTop } from "./timeline.ts";
import { pixelOf } from "./viewport.ts";

/** A task that was pushed from one lane and ran in another, or the same. */
export interface Arrow {
  readonly fromLane: number;
  readonly fromRow: number;
  readonly pushed: number;
  readonly toLane: number;
  readonly toRow: number;
  readonly started: number;
  /** Whether the selected node is the one that was pushed. */
  readonly isIncoming: boolean;
}

const HEAD = 6;

export function drawArrows(
  context: Context,
  drawn: Drawn,
  arrows: readonly Arrow[],
): void {
  const { colors, place, scrolled, view } = drawn;
  for (const one of arrows) {
    const x = place.gutter + pixelOf(view, one.pushed);
    const until = place.gutter + pixelOf(view, one.started);
    const y = rowTop(place, one.fromLane, one.fromRow, scrolled) + place.barHeight / 2;
    const end = rowTop(place, one.toLane, one.toRow, scrolled) + place.barHeight / 2;
    // It lies in a queue from here on: a thin line beside its lane, up to its start.
    context.fillStyle = hatched(colors.ink);
    context.fillRect(x, end - 2.5, Math.max(until - x - HEAD, 0), 5);
    context.strokeStyle = context.fillStyle = one.isIncoming
      ? colors.accent
      : colors.ink;
    context.lineWidth = one.isIncoming ? 2 : 1.25;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x, end);
    context.lineTo(Math.max(until - HEAD, x), end);
    context.stroke();
    context.beginPath();
    context.arc(x, y, 3, 0, 7);
    context.fill();
    context.beginPath();
    context.moveTo(until, end);
    context.lineTo(until - HEAD, end - HEAD / 1.6);
    context.lineTo(until - HEAD, end + HEAD / 1.6);
    context.fill();
  }
}
