/* The graph on a canvas: frames, the ways between boxes, and over them the boxes. */

import { type Camera, type Frame, seen } from "./camera.ts";
import { rowsOf } from "./chains.ts";
import type { Page } from "./data.ts";
import { drawBox } from "./graph_boxes.ts";
import { drawFarTitles, drawFrames } from "./graph_frames.ts";
import type { Look } from "./graph_look.ts";
import { drawWays } from "./graph_ways.ts";
import type { Parts } from "./parts.ts";
import { frameOf, type Plan } from "./plan.ts";

export function drawGraph(
  context: CanvasRenderingContext2D,
  page: Page,
  parts: Parts,
  plan: Plan,
  look: Look,
  camera: Camera,
  width: number,
  height: number,
): void {
  const view = seen(camera, width, height);
  const { scale } = camera;
  const isSeen = ({ left, top, right, bottom }: Frame) =>
    right >= view.left &&
    left <= view.right &&
    bottom >= view.top &&
    top <= view.bottom;
  context.save();
  context.scale(scale, scale);
  context.translate(-camera.x, -camera.y);
  drawFrames(context, page, parts, plan, look, scale, isSeen);
  drawWays(context, page, plan, look, scale, view);
  for (const box of plan.closed) {
    if (!isSeen(frameOf(plan, box))) continue;
    context.globalAlpha = isFaint(page, plan, look, box) ? 0.22 : 1;
    drawBox(context, page, plan, look, box, scale, parts.inside[box] >= 0);
  }
  context.globalAlpha = 1;
  drawFarTitles(context, page, plan, look, scale, isSeen);
  context.restore();
}

/** Whether none of the nodes of a box is meant by what is searched for. */
function isFaint({ members }: Page, plan: Plan, { meant }: Look, box: number): boolean {
  if (!meant) return false;
  for (const row of rowsOf(plan.members, box)) {
    if (meant[members.node[row]]) return false;
  }
  return true;
}
