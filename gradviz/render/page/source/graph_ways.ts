/* The ways between the boxes of a graph: curves, vertical where they meet a box. */

import type { Frame } from "./camera.ts";
import type { Page } from "./data.ts";
import { CURVES, type Look, SMALL_TEXT, TEXT } from "./graph_look.ts";
import type { Plan, Ways } from "./plan.ts";

/** Those that are marked come last, over all others. */
export function drawWays(
  context: CanvasRenderingContext2D,
  page: Page,
  plan: Plan,
  look: Look,
  scale: number,
  view: Frame,
): void {
  const { ways } = plan;
  const marked: number[] = [];
  const seen: number[] = [];
  const thin = Math.max(1, 0.7 / scale);
  context.strokeStyle = look.colors.line;
  context.lineWidth = thin;
  context.globalAlpha = look.selected < 0 ? 0.85 : 0.5;
  context.beginPath();
  for (let way = 0; way < ways.length; way++) {
    if (!isWaySeen(ways, way, view)) continue;
    seen.push(way);
    if (look.nearWays.has(way) || look.criticalWays.has(way)) marked.push(way);
    else trace(context, ways, way, scale);
  }
  context.stroke();
  context.globalAlpha = 1;
  const isArrow = (way: number) => ends(page, plan, way);
  if (scale > SMALL_TEXT) {
    for (const way of seen) {
      if (isArrow(way)) arrow(context, ways, way, look.colors.line);
    }
  }
  for (const way of marked) {
    const isCritical = look.criticalWays.has(way);
    const isNear = look.nearWays.has(way);
    const color = isCritical ? look.colors.critical : look.colors.accent;
    context.strokeStyle = color;
    context.lineWidth = (isCritical ? 3 : 2) * (isNear && isCritical ? 1.4 : 1) * thin;
    context.beginPath();
    trace(context, ways, way, scale);
    context.stroke();
    if (scale > TEXT && isArrow(way)) arrow(context, ways, way, color);
  }
}

/** Whether a way ends at a closed box, and not at the border of a part. */
function ends({ ways }: Page, plan: Plan, way: number): boolean {
  const consumer = ways.consumer[plan.ways.row[way]];
  return consumer >= 0 && plan.shownAs[consumer] === consumer;
}

function isWaySeen({ around }: Ways, way: number, view: Frame): boolean {
  const at = 4 * way;
  return (
    around[at] <= view.right &&
    around[at + 1] <= view.bottom &&
    around[at + 2] >= view.left &&
    around[at + 3] >= view.top
  );
}

function trace(
  context: CanvasRenderingContext2D,
  { x, y, end }: Ways,
  way: number,
  scale: number,
): void {
  let at = way ? end[way - 1] : 0;
  context.moveTo(x[at], y[at]);
  for (at++; at < end[way]; at++) {
    if (scale < CURVES || x[at] === x[at - 1]) context.lineTo(x[at], y[at]);
    else {
      const middle = (y[at - 1] + y[at]) / 2;
      context.bezierCurveTo(x[at - 1], middle, x[at], middle, x[at], y[at]);
    }
  }
}

/** The end of a way, which comes from above, or in a cycle from below. */
function arrow(
  context: CanvasRenderingContext2D,
  { x, y, end }: Ways,
  way: number,
  color: string,
): void {
  const last = end[way] - 1;
  const [tipX, tipY] = [x[last], y[last]];
  const sign = y[last - 1] > tipY ? -1 : 1;
  context.fillStyle = color;
  context.beginPath();
  context.moveTo(tipX, tipY);
  context.lineTo(tipX - 3.5, tipY - 7 * sign);
  context.lineTo(tipX + 3.5, tipY - 7 * sign);
  context.fill();
}
