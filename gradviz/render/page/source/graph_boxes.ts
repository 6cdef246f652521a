/* The closed boxes of a graph: what they are, how far they are, what is marked. */

import { hatched } from "./axis.ts";
import type { Frame } from "./camera.ts";
import { rowsOf } from "./chains.ts";
import { textOn } from "./colors.ts";
import type { Page } from "./data.ts";
import { drawChip } from "./graph_chips.ts";
import { drawSign } from "./graph_frames.ts";
import { CURVES, FONT, type Look, SMALL_TEXT, TEXT } from "./graph_look.ts";
import { chipFrame, frameOf, type Plan } from "./plan.ts";

export function drawBox(
  context: CanvasRenderingContext2D,
  page: Page,
  plan: Plan,
  look: Look,
  box: number,
  scale: number,
  isOpenable: boolean,
): void {
  const { boxes } = page;
  const { colors } = look;
  const frame = frameOf(plan, box);
  const wide = boxes.width[box];
  const high = boxes.height[box];
  const node = boxes.node[box];
  const color = look.coloring.of(box, colors) ?? colors.line;
  const { done, total, runs, queued, failed, ended } = tally(page, plan, look, box);
  const isSelected = look.selected === box;
  const { isNever, isCaptured } = ended;

  if (scale < CURVES) {
    drawFar(
      context,
      look,
      box,
      frame,
      failed ? colors.alarm : isNever ? colors.faintLine : color,
      done / total,
    );
    if (isSelected) ring(context, frame, colors.accent, 3, false, scale);
    return;
  }
  context.beginPath();
  context.roundRect(frame.left, frame.top, wide, high, 6);
  context.fillStyle = colors.background;
  context.fill();
  fill(context, frame, color, isNever ? 0 : look.isReplay ? 0.06 : 0.15, 1);
  if (look.coloring.isUnknown?.(box)) fill(context, frame, hatched(colors.line), 1, 1);
  if (look.isReplay && done > 0) fill(context, frame, color, 0.32, done / total);
  const isFar = look.isReplay && done === 0;
  if (boxes.badge_width[box] > 0)
    fill(context, frame, isFar ? colors.line : color, 1, boxes.badge_width[box] / wide);
  const isCritical = look.criticalBoxes.has(box);
  context.strokeStyle = failed ? colors.alarm : isNever ? colors.line : color;
  context.lineWidth =
    (failed ? 4 : isCritical ? 2.6 : isCaptured ? 2 : 1.1) * Math.max(1, 0.5 / scale);
  context.setLineDash(isNever ? [4, 3] : isCaptured ? [1.5, 3] : []);
  context.stroke();
  context.setLineDash([]);
  if (look.isReplay && (runs || queued))
    ring(context, frame, runs ? colors.accent : colors.ink, runs ? 4 : 2, !runs, scale);
  if (isSelected) ring(context, frame, colors.accent, 3, false, scale);
  else if (look.hovered === box) ring(context, frame, colors.ink, 1.5, false, scale);
  if (scale < TEXT) return;

  const badge = boxes.badge_width[box];
  const sign = isOpenable ? 14 : 0;
  const middle = frame.left + (badge + wide + sign) / 2;
  const subtitle = page.text(boxes.subtitle[box]);
  let number = 0;
  for (const row of rowsOf(plan.chips, box)) {
    drawChip(context, page, plan, look, box, number++, row, scale);
  }
  const textHeight = number ? chipFrame(page, plan, box, 0).top - frame.top : high;
  const top = frame.top + (subtitle ? 15.5 : textHeight / 2 + 4);
  if (isOpenable)
    drawSign(
      context,
      frame.left + badge + 10,
      top - 4,
      look.hovered === box ? colors.accent : colors.faintInk,
      false,
    );
  context.textAlign = "center";
  context.fillStyle = colors.ink;
  context.font = `12px ${FONT}`;
  context.fillText(page.text(boxes.title[box]), middle, top, wide - badge - sign - 6);
  if (subtitle && scale >= SMALL_TEXT) {
    context.fillStyle = failed ? colors.alarm : colors.faintInk;
    context.font = `10px ${FONT}`;
    context.fillText(subtitle, middle - sign / 2, frame.top + 29, wide - badge - 6);
  }
  if (badge > 0) {
    context.fillStyle = textOn(isFar ? colors.line : color);
    context.font = `600 12px ${FONT}`;
    context.fillText(
      page.text(boxes.badge[box]),
      frame.left + badge / 2 + 0.5,
      frame.top + high / 2 + 4,
      badge - 3,
    );
  }
  const waits =
    node >= 0 && boxes.num_nodes[box] === 1 ? look.progress.remaining[node] : 0;
  if (look.isReplay && waits > 0) countdown(context, look, frame, waits);
}

/** Fills the path of the box, as far as some part of its width. */
function fill(
  context: CanvasRenderingContext2D,
  { left, top, right, bottom }: Frame,
  color: string | CanvasPattern,
  alpha: number,
  part: number,
): void {
  if (!alpha) return;
  context.save();
  context.clip();
  context.fillStyle = color;
  context.globalAlpha *= alpha;
  context.fillRect(left, top, (right - left) * part, bottom - top);
  context.restore();
}

/** From far away: no more than a color, and in a replay how far it is. */
function drawFar(
  context: CanvasRenderingContext2D,
  look: Look,
  box: number,
  { left, top, right, bottom }: Frame,
  color: string,
  done: number,
): void {
  const faint = context.globalAlpha;
  context.fillStyle = color;
  context.globalAlpha = faint * (look.isReplay ? 0.2 : 0.75);
  context.fillRect(left, top, right - left, bottom - top);
  context.globalAlpha = faint;
  if (look.isReplay) context.fillRect(left, top, (right - left) * done, bottom - top);
  if (!look.criticalBoxes.has(box)) return;
  context.fillStyle = look.colors.critical;
  context.fillRect(left, top, 14, bottom - top);
}

/** How many of the nodes of a box have been done, whether one is at work, what failed. */
function tally({ members, boxes }: Page, plan: Plan, look: Look, box: number) {
  const { stages, outcome } = look;
  const { stage } = look.progress;
  const single = boxes.num_nodes[box] > 1 ? -1 : boxes.node[box];
  let [done, total, runs, queued, failed] = [0, 0, false, false, false];
  const ended = { isNever: true, isCaptured: false };
  for (const row of rowsOf(plan.members, box)) {
    const node = members.node[row];
    // The chips of a node show by themselves how far they are.
    if (node < 0 || (single >= 0 && node !== single) || plan.boxOf[node] !== box)
      continue;
    total++;
    if (stages.isDone[stage[node]]) done++;
    if (stage[node] === stages.running) runs = true;
    if (stage[node] === stages.queued) queued = true;
    if (outcome[node] === stages.failed) failed = true;
    if (stages.hasRun[outcome[node]]) ended.isNever = false;
    if (single >= 0 && outcome[node] === stages.captured) ended.isCaptured = true;
  }
  return { done, total: Math.max(total, 1), runs, queued, failed, ended };
}

function ring(
  context: CanvasRenderingContext2D,
  frame: Frame,
  color: string,
  wide: number,
  isDashed: boolean,
  scale: number,
): void {
  const gap = 3;
  context.beginPath();
  context.roundRect(
    frame.left - gap,
    frame.top - gap,
    frame.right - frame.left + 2 * gap,
    frame.bottom - frame.top + 2 * gap,
    8,
  );
  context.strokeStyle = color;
  context.lineWidth = wide * Math.max(1, 0.6 / scale);
  context.setLineDash(isDashed ? [3, 3] : []);
  context.stroke();
  context.setLineDash([]);
}

/** For how many more gradients a node waits. */
function countdown(
  context: CanvasRenderingContext2D,
  { colors }: Look,
  frame: Frame,
  waits: number,
): void {
  const text = String(waits);
  context.font = `600 11px ${FONT}`;
  const wide = Math.max(18, context.measureText(text).width + 9);
  context.beginPath();
  context.roundRect(frame.right - wide / 2, frame.top - 9, wide, 18, 9);
  context.fillStyle = colors.ink;
  context.fill();
  context.fillStyle = colors.background;
  context.fillText(text, frame.right, frame.top + 4);
}
