/* The graph on a canvas: boxes, ways between them, and how far each is at a moment. */

import { type Camera, type Frame, seen } from "./camera.ts";
import { rowsOf } from "./chains.ts";
import { type Colours, textOn } from "./colours.ts";
import type { Page } from "./data.ts";
import { CHIP_HEIGHT, chipFrame, frameOf, type Plan } from "./drawing.ts";
import { type Progress, Stage } from "./progress.ts";
import { shorten } from "./words.ts";

/** Below these scales there are no small texts, no texts, no curves. */
const SMALL_TEXT = 0.6;
const TEXT = 0.36;
const CURVES = 0.2;

const FONT = 'Helvetica, Arial, "Liberation Sans", "DejaVu Sans", sans-serif';

/** What of a drawing is marked, and how. */
export interface Look {
  readonly colours: Colours;
  /** The colour of each node: a place in `Colours.operations`. */
  readonly colour: Uint8Array;
  readonly progress: Progress;
  /** Whether a moment is shown, and not the whole pass. */
  readonly isReplay: boolean;
  readonly meant: Uint8Array | null;
  /** Of each node whether it ran in this pass, and how that ended: see `Stage`. */
  readonly outcome: Uint8Array;
  readonly criticalBoxes: ReadonlySet<number>;
  readonly criticalWays: ReadonlySet<number>;
  readonly selected: number;
  readonly hovered: number;
}

export function drawGraph(
  context: CanvasRenderingContext2D,
  page: Page,
  plan: Plan,
  look: Look,
  camera: Camera,
  width: number,
  height: number,
): void {
  const view = seen(camera, width, height);
  context.save();
  context.scale(camera.scale, camera.scale);
  context.translate(-camera.x, -camera.y);
  drawWays(context, plan, look, camera.scale, view);
  const { boxes } = plan.drawing;
  for (let box = 0; box < boxes.length; box++) {
    if (!isSeen(frameOf(plan, box), view)) continue;
    context.globalAlpha = isFaint(plan, look, box) ? 0.22 : 1;
    drawBox(context, page, plan, look, box, camera.scale);
  }
  context.restore();
}

/** Those of the selected and of the pointed-at box come last, over all others. */
function drawWays(
  context: CanvasRenderingContext2D,
  plan: Plan,
  look: Look,
  scale: number,
  view: Frame,
): void {
  const { ways, points } = plan.drawing;
  const marked: number[] = [];
  const selected = look.selected < 0 ? -1 : plan.boxOf[look.selected];
  const hovered = look.hovered < 0 ? -1 : plan.boxOf[look.hovered];
  const thin = Math.max(1, 0.7 / scale);
  context.strokeStyle = look.colours.line;
  context.lineWidth = thin;
  context.globalAlpha = selected < 0 ? 0.85 : 0.5;
  context.beginPath();
  for (let way = 0; way < ways.length; way++) {
    const [from, until] = [way ? ways.end[way - 1] : 0, ways.end[way]];
    if (!isWaySeen(plan, way, view)) continue;
    const [producer, consumer] = [ways.producer[way], ways.consumer[way]];
    const isNear =
      (selected >= 0 && (producer === selected || consumer === selected)) ||
      (hovered >= 0 && (producer === hovered || consumer === hovered));
    if (isNear || look.criticalWays.has(way)) marked.push(way);
    else trace(context, points, from, until, scale);
  }
  context.stroke();
  context.globalAlpha = 1;
  for (const way of marked) {
    const [from, until] = [way ? ways.end[way - 1] : 0, ways.end[way]];
    const isCritical = look.criticalWays.has(way);
    const isNear = [ways.producer[way], ways.consumer[way]].some(
      (box) => box === selected || box === hovered,
    );
    context.strokeStyle = isCritical ? look.colours.critical : look.colours.accent;
    context.lineWidth = (isCritical ? 3 : 2) * (isNear && isCritical ? 1.4 : 1) * thin;
    context.beginPath();
    trace(context, points, from, until, scale);
    context.stroke();
    if (scale > TEXT) arrow(context, points, until, context.strokeStyle);
  }
  if (scale > SMALL_TEXT) {
    for (let way = 0; way < ways.length; way++) {
      if (isWaySeen(plan, way, view) && !look.criticalWays.has(way))
        arrow(context, points, ways.end[way], look.colours.line);
    }
  }
}

type Points = Plan["drawing"]["points"];

function isWaySeen({ around }: Plan, way: number, view: Frame): boolean {
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
  { x, y }: Points,
  from: number,
  until: number,
  scale: number,
): void {
  context.moveTo(x[from], y[from]);
  for (let at = from + 1; at + 2 < until; at += 3) {
    if (scale < CURVES) context.lineTo(x[at + 2], y[at + 2]);
    else
      context.bezierCurveTo(
        x[at], y[at], x[at + 1], y[at + 1], x[at + 2], y[at + 2], // prettier-ignore
      );
  }
}

/** The end of a way, which comes from above. */
function arrow(
  context: CanvasRenderingContext2D,
  { x, y }: Points,
  until: number,
  colour: string | CanvasGradient | CanvasPattern,
): void {
  const [tipX, tipY] = [x[until - 1], y[until - 1]];
  const sign = y[until - 2] > tipY ? -1 : 1;
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(tipX, tipY);
  context.lineTo(tipX - 3.5, tipY - 7 * sign);
  context.lineTo(tipX + 3.5, tipY - 7 * sign);
  context.fill();
}

function drawBox(
  context: CanvasRenderingContext2D,
  page: Page,
  plan: Plan,
  look: Look,
  box: number,
  scale: number,
): void {
  const { boxes, chips } = plan.drawing;
  const { colours } = look;
  const frame = frameOf(plan, box);
  const wide = boxes.width[box];
  const high = boxes.height[box];
  const node = boxes.node[box];
  const colour = colours.operations[node < 0 ? colours.operations.length - 1 : look.colour[node]];
  const outcome = node < 0 ? Stage.None : look.outcome[node];
  const { done, total, runs, queued, failed } = tally(plan, look.progress, box);

  if (scale < CURVES) {
    drawFar(context, look, box, frame, failed || outcome === Stage.Failed ? colours.alarm : colour, done / total);
    if (look.selected >= 0 && plan.boxOf[look.selected] === box)
      ring(context, frame, colours.accent, 3, false, scale);
    return;
  }
  context.fillStyle = colours.background;
  context.beginPath();
  context.roundRect(frame.left, frame.top, wide, high, 6);
  context.fill();
  context.save();
  context.clip();
  context.fillStyle = colour;
  context.globalAlpha *= outcome === Stage.None ? 0 : look.isReplay ? 0.06 : 0.15;
  context.fillRect(frame.left, frame.top, wide, high);
  context.restore();
  if (look.isReplay && done > 0) {
    context.save();
    context.clip();
    context.fillStyle = colour;
    context.globalAlpha *= 0.32;
    context.fillRect(frame.left, frame.top, (wide * done) / total, high);
    context.restore();
  }
  if (boxes.badge[box] >= 0) {
    const isFar = look.isReplay && done === 0;
    context.save();
    context.clip();
    context.fillStyle = isFar ? colours.line : colour;
    context.fillRect(frame.left, frame.top, boxes.badge_width[box], high);
    context.restore();
  }
  const isCritical = look.criticalBoxes.has(box);
  const isAlarm = failed || outcome === Stage.Failed;
  context.strokeStyle = isAlarm ? colours.alarm : isCritical ? colours.critical : colour;
  context.lineWidth = (isAlarm ? 4 : isCritical ? 2.2 : 1.1) * Math.max(1, 0.5 / scale);
  context.setLineDash(outcome === Stage.None ? [4, 3] : []);
  context.stroke();
  context.setLineDash([]);
  if (look.isReplay && (runs || queued)) {
    ring(context, frame, runs ? colours.accent : colours.ink, runs ? 4 : 2, !runs, scale);
  }
  if (node >= 0 && plan.boxOf[node] >= 0) {
    if (look.selected >= 0 && plan.boxOf[look.selected] === box)
      ring(context, frame, colours.accent, 3, false, scale);
    else if (look.hovered >= 0 && plan.boxOf[look.hovered] === box)
      ring(context, frame, colours.ink, 1.5, false, scale);
  }
  if (scale < TEXT) return;

  const badge = boxes.badge_width[box];
  const middle = frame.left + (badge + wide) / 2;
  const subtitle = page.text(boxes.subtitle[box]);
  let number = 0;
  for (const row of rowsOf(plan.chips, box)) {
    drawChip(context, page, plan, look, box, number++, chips.node[row], chips.text[row], scale);
  }
  const textHeight = number ? chipFrame(plan, box, 0).top - frame.top : high;
  context.textAlign = "center";
  context.fillStyle = colours.ink;
  context.font = `12px ${FONT}`;
  context.fillText(
    page.text(boxes.title[box]),
    middle,
    frame.top + (subtitle ? 15.5 : textHeight / 2 + 4),
    wide - badge - 6,
  );
  if (subtitle && scale >= SMALL_TEXT) {
    context.fillStyle = outcome === Stage.Failed ? colours.alarm : colours.faintInk;
    context.font = `10px ${FONT}`;
    context.fillText(subtitle, middle, frame.top + 29, wide - badge - 6);
  }
  if (badge > 0) {
    context.fillStyle = textOn(look.isReplay && done === 0 ? colours.line : colour);
    context.font = `600 12px ${FONT}`;
    context.fillText(
      page.text(boxes.badge[box]),
      frame.left + badge / 2 + 0.5,
      frame.top + high / 2 + 4,
      badge - 3,
    );
  }
  const waits = node >= 0 && total === 1 ? look.progress.remaining[node] : 0;
  if (look.isReplay && waits > 0) countdown(context, look, frame, waits);
}

/** From far away: no more than a colour, and in a replay how far it is. */
function drawFar(
  context: CanvasRenderingContext2D,
  look: Look,
  box: number,
  { left, top, right, bottom }: Frame,
  colour: string,
  done: number,
): void {
  const faint = context.globalAlpha;
  context.fillStyle = colour;
  context.globalAlpha = faint * (look.isReplay ? 0.2 : 0.75);
  context.fillRect(left, top, right - left, bottom - top);
  context.globalAlpha = faint;
  if (look.isReplay) context.fillRect(left, top, (right - left) * done, bottom - top);
  if (!look.criticalBoxes.has(box)) return;
  context.fillStyle = look.colours.critical;
  context.fillRect(left, top, 14, bottom - top);
}

function drawChip(
  context: CanvasRenderingContext2D,
  page: Page,
  plan: Plan,
  look: Look,
  box: number,
  number: number,
  node: number,
  text: number,
  scale: number,
): void {
  const { colours } = look;
  const frame = chipFrame(plan, box, number);
  const stage = node < 0 ? Stage.Done : look.progress.stage[node];
  const isDone = stage === Stage.Done || stage === Stage.Failed;
  context.beginPath();
  context.roundRect(
    frame.left,
    frame.top,
    frame.right - frame.left,
    CHIP_HEIGHT,
    CHIP_HEIGHT / 2,
  );
  context.fillStyle = isDone && look.isReplay ? colours.faintLine : colours.background;
  context.fill();
  const isChosen = node >= 0 && node === look.selected;
  const isRunning = look.isReplay && (stage === Stage.Runs || stage === Stage.Queued);
  context.strokeStyle =
    stage === Stage.Failed
      ? colours.alarm
      : isChosen || isRunning
        ? colours.accent
        : colours.line;
  context.lineWidth = isChosen ? 2.5 : isRunning ? 2 : 1;
  context.stroke();
  if (scale < SMALL_TEXT) return;
  context.fillStyle = colours.ink;
  context.font = `10px ${FONT}`;
  context.textAlign = "center";
  const wide = frame.right - frame.left;
  context.fillText(
    shorten(page.text(text), 60),
    (frame.left + frame.right) / 2,
    frame.top + 11.5,
    wide - 10,
  );
}

/** How many of the nodes of a box have been done, and whether one is at work. */
function tally(plan: Plan, { stage }: Progress, box: number) {
  let [done, total, runs, queued, failed] = [0, 0, false, false, false];
  const isSingle = plan.drawing.boxes.num_nodes[box] <= 1;
  for (const row of rowsOf(plan.members, box)) {
    const node = plan.drawing.members.node[row];
    // The chips of a node show by themselves how far they are.
    if (node < 0 || (isSingle && node !== plan.drawing.boxes.node[box])) continue;
    total++;
    if (stage[node] === Stage.Done || stage[node] === Stage.Failed) done++;
    if (stage[node] === Stage.Runs) runs = true;
    if (stage[node] === Stage.Queued) queued = true;
    if (stage[node] === Stage.Failed) failed = true;
  }
  return { done, total: Math.max(total, 1), runs, queued, failed };
}

function ring(
  context: CanvasRenderingContext2D,
  frame: Frame,
  colour: string,
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
  context.strokeStyle = colour;
  context.lineWidth = wide * Math.max(1, 0.6 / scale);
  context.setLineDash(isDashed ? [3, 3] : []);
  context.stroke();
  context.setLineDash([]);
}

/** For how many more gradients a node waits. */
function countdown(
  context: CanvasRenderingContext2D,
  { colours }: Look,
  frame: Frame,
  waits: number,
): void {
  const text = String(waits);
  context.font = `600 11px ${FONT}`;
  const wide = Math.max(18, context.measureText(text).width + 9);
  context.beginPath();
  context.roundRect(frame.right - wide / 2, frame.top - 9, wide, 18, 9);
  context.fillStyle = colours.ink;
  context.fill();
  context.fillStyle = colours.background;
  context.fillText(text, frame.right, frame.top + 4);
}

function isFaint(plan: Plan, { meant }: Look, box: number): boolean {
  if (!meant) return false;
  for (const row of rowsOf(plan.members, box)) {
    if (meant[plan.drawing.members.node[row]]) return false;
  }
  return true;
}

function isSeen(frame: Frame, view: Frame): boolean {
  return (
    frame.right >= view.left &&
    frame.left <= view.right &&
    frame.bottom >= view.top &&
    frame.top <= view.bottom
  );
}
