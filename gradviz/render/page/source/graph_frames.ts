/* Opened boxes of a graph: a frame around what is in them, and a title to close them. */

import type { Frame } from "./camera.ts";
import { type Page, passName } from "./data.ts";
import { FONT, type Look, TEXT } from "./graph_look.ts";
import { type Parts, taskOf } from "./parts.ts";
import { frameOf, type Plan, TITLE_HEIGHT } from "./plan.ts";
import { shorten } from "./words.ts";

const CORNER = 8;
/** From far away titles are as large as this on the screen, where there is room. */
const FAR_SIZE = 12;

export function drawFrames(
  context: CanvasRenderingContext2D,
  page: Page,
  parts: Parts,
  plan: Plan,
  look: Look,
  scale: number,
  isSeen: (frame: Frame) => boolean,
): void {
  const { colors } = look;
  for (const box of plan.opened) {
    const frame = frameOf(plan, box);
    if (!isSeen(frame)) continue;
    context.beginPath();
    context.roundRect(frame.left, frame.top, plan.width[box], plan.height[box], CORNER);
    context.fillStyle = colors.panel;
    context.globalAlpha = 0.55;
    context.fill();
    context.globalAlpha = 1;
    const isChosen =
      look.node >= 0 &&
      page.boxes.num_nodes[box] === 1 &&
      page.boxes.node[box] === look.node;
    const isHovered = isChosen || look.hovered === box;
    context.strokeStyle = isHovered ? colors.accent : colors.line;
    context.lineWidth = (isHovered ? 2 : 1) * Math.max(1, 0.6 / scale);
    context.setLineDash([]);
    context.stroke();
    if (scale >= TEXT) drawTitle(context, page, parts, plan, look, box, frame);
  }
}

/** A sign that it can be closed, its name, and the numbers of its nodes. */
function drawTitle(
  context: CanvasRenderingContext2D,
  page: Page,
  parts: Parts,
  plan: Plan,
  { colors, hovered }: Look,
  box: number,
  frame: Frame,
): void {
  const { boxes } = page;
  const middle = frame.top + TITLE_HEIGHT / 2;
  drawSign(
    context,
    frame.left + 12,
    middle,
    hovered === box ? colors.accent : colors.faintInk,
    true,
  );
  context.textAlign = "left";
  context.font = `600 11px ${FONT}`;
  context.fillStyle = hovered === box ? colors.accent : colors.faintInk;
  const title = page.text(boxes.title[box]);
  const room = plan.width[box] - 32;
  context.fillText(title, frame.left + 22, middle + 4, room);
  const wide = Math.min(context.measureText(title).width, room);
  const badge = numbersOf(page, parts, box);
  context.font = `10px ${FONT}`;
  if (badge && wide + 40 + context.measureText(badge).width < plan.width[box])
    context.fillText(badge, frame.left + 22 + wide + 8, middle + 4);
}

/** The numbers of the nodes of a frame; of a node that called a pass also of that. */
function numbersOf(page: Page, parts: Parts, box: number): string {
  const numbers = page.text(page.boxes.badge[box]);
  const called = page.parts.task[parts.inside[box]];
  if (called === taskOf(page, box)) return numbers;
  return `${numbers} · ${passName(page.header, called)}`;
}

/** A triangle: it points down at what is opened, and to the right at what can be. */
export function drawSign(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  color: string,
  isOpen: boolean,
): void {
  const size = 4;
  context.fillStyle = color;
  context.beginPath();
  if (isOpen) {
    context.moveTo(x - size, y - size / 2);
    context.lineTo(x + size, y - size / 2);
    context.lineTo(x, y + size);
  } else {
    context.moveTo(x - size / 2, y - size);
    context.lineTo(x - size / 2, y + size);
    context.lineTo(x + size, y);
  }
  context.fill();
}

/** From far away, where boxes have no texts: what the frames that are large are called. */
export function drawFarTitles(
  context: CanvasRenderingContext2D,
  page: Page,
  plan: Plan,
  { colors }: Look,
  scale: number,
  isSeen: (frame: Frame) => boolean,
): void {
  if (scale >= TEXT) return;
  context.textAlign = "left";
  context.font = `600 ${FAR_SIZE / scale}px ${FONT}`;
  context.lineWidth = 4 / scale;
  context.lineJoin = "round";
  context.strokeStyle = colors.background;
  context.fillStyle = colors.ink;
  const taken: Frame[] = [];
  for (const box of plan.opened) {
    const frame = frameOf(plan, box);
    if (!isSeen(frame) || plan.height[box] * scale < 3 * FAR_SIZE) continue;
    const title = shorten(page.text(page.boxes.title[box]), 40);
    const wide = context.measureText(title).width;
    const place: Frame = {
      left: frame.left,
      top: frame.top,
      right: frame.left + wide + 12 / scale,
      bottom: frame.top + (1.6 * FAR_SIZE) / scale,
    };
    if (wide > plan.width[box] || taken.some((one) => meet(one, place))) continue;
    taken.push(place);
    const [x, y] = [frame.left + 4 / scale, frame.top + (1.2 * FAR_SIZE) / scale];
    context.strokeText(title, x, y);
    context.fillText(title, x, y);
  }
}

function meet(one: Frame, other: Frame): boolean {
  return (
    one.left < other.right &&
    other.left < one.right &&
    one.top < other.bottom &&
    other.top < one.bottom
  );
}
