/* Bytes that were held, over time, stacked by what they were held for. */

import { AXIS_HEIGHT, BOLD, type Context, drawAxis, FONT, hatched } from "./axis.ts";
import { type Colors, colors } from "./colors.ts";
import { mountCursor } from "./cursor.ts";
import type { Page } from "./data.ts";
import { canvas, el } from "./elements.ts";
import { eventAt } from "./events.ts";
import { listen } from "./gestures.ts";
import { offer } from "./paper.ts";
import { changeAt, largestOf, type Series, series, steps } from "./series.ts";
import type { Store } from "./store.ts";
import { gutterOf, PAPER_WIDTH, show, viewOf } from "./time_axis.ts";
import { hideTooltip, showTooltip } from "./tooltip.ts";
import {
  nsPerPixel,
  panned,
  pixelOf,
  timeOf,
  type Viewport,
  zoomed,
} from "./viewport.ts";
import { duration, size } from "./words.ts";

/** A stack: at each change how much was held for each purpose. */
export interface Stack {
  readonly purposes: readonly string[];
  readonly held: readonly Float64Array[];
  /** All but what is unclaimed: that may be there, and may be gone. */
  readonly total: Series;
  /** The highest that the picture must have room for. */
  readonly most: number;
  /** The purposes of which nothing is known: the total is at least so much, then. */
  readonly unknown: readonly string[];
  /** Whether anything is known. */
  readonly isKnown: boolean;
}

/** How high a picture is that is saved or printed. */
const PAPER_HEIGHT = 180;

const UNCLAIMED = "perhaps besides";

/** Of the curves of a page, whose changes need not be at the same times, one stack. */
export function stackOf({ memory, header }: Page): Stack {
  const time = Float64Array.from(new Set(memory.at_ns)).sort();
  const [total, ...held] = header.purposes.map((_, wanted) => {
    const column = new Float64Array(time.length);
    let at = 0;
    let now = 0;
    for (let row = 0; row < memory.length; row++) {
      if (memory.purpose[row] !== wanted) continue;
      while (at < time.length && time[at] < memory.at_ns[row]) column[at++] = now;
      now = memory.size_bytes[row];
    }
    while (at < time.length) column[at++] = now;
    return column;
  });
  const purposes = header.purposes.slice(1);
  const unclaimed = held[purposes.indexOf(UNCLAIMED)];
  const most = total.reduce((sum, one, at) => Math.max(sum, one + unclaimed[at]), 0);
  const unknown = header.unknown_purposes;
  const isKnown = purposes.some(
    (name) => name !== UNCLAIMED && !unknown.includes(name),
  );
  return { purposes, held, total: series(time, total), most, unknown, isKnown };
}

/** What was held for each purpose, so that together it is the total.
 *
 * A long curve has the most of each slice of the time. That of one purpose need not be
 * at the same moment as that of another, so together they can be more than the total. */
export function partsAt({ purposes, held, total }: Stack, place: number): number[] {
  const parts = held.map((one) => one[place]);
  const unclaimed = parts[purposes.indexOf(UNCLAIMED)];
  const sum = parts.reduce((one, other) => one + other, 0) - unclaimed;
  const scale = sum > total.value[place] ? total.value[place] / sum : 1;
  return parts.map((one, at) => (purposes[at] === UNCLAIMED ? one : one * scale));
}

export function mountMemory(element: HTMLElement, page: Page, store: Store): void {
  const stack = stackOf(page);
  const { time, value } = stack.total;
  const top = time.length > 0 ? largestOf(stack.total, 0, time.length) : -1;
  const told =
    top < 0 || !stack.isKnown
      ? "unknown"
      : `${peakWords(stack, value[top])} after ${duration(time[top])}`;
  let [wide, high] = [1000, 150];
  function view(): Viewport {
    return viewOf(page, store, wide - gutterOf(wide));
  }
  const picture = canvas(`Memory over time: ${told}`, (context, width, height) => {
    [wide, high] = [width, height];
    drawMemory(context, stack, view(), wide, high, top);
  });
  const box = picture.element;
  const framed = el("div", { class: "picture" }, box);
  element.append(legendOf(stack), framed);
  mountCursor(framed, page, store);
  offer(element, "Memory", () => {
    const view = viewOf(page, store, PAPER_WIDTH - gutterOf(PAPER_WIDTH));
    return {
      ...{ width: PAPER_WIDTH, height: PAPER_HEIGHT, kept: [] },
      draw: (context) =>
        drawMemory(context, stack, view, PAPER_WIDTH, PAPER_HEIGHT, top),
    };
  });
  listen(box, {
    zoom: (factor, x) =>
      show(store, zoomed(view(), factor, Math.max(x - gutterOf(wide), 0))),
    pan: (x) => show(store, panned(view(), -x)),
    click: (x) =>
      store.set({ moment: eventAt(page, timeOf(view(), x - gutterOf(wide))) }),
    hover: (x, y) => {
      const place = changeAt(stack.total, timeOf(view(), x - gutterOf(wide)));
      if (place < 0 || x < gutterOf(wide)) return hideTooltip();
      const parts = partsAt(stack, place);
      const lines = stack.purposes.flatMap((name, at) => {
        const held = stack.held[at][place];
        const most = held > parts[at] ? "at most " : "";
        return held > 0 ? [`${name} ${most}${size(held)}`] : [];
      });
      const unknown = stack.unknown.map((name) => `${name} unknown`);
      const most = unknown.length ? "at least " : "";
      const head = stack.isKnown ? [`${most}${size(value[place])} held`] : [];
      showTooltip(box, [...head, ...lines, ...unknown], x, y);
    },
    leave: hideTooltip,
    scrolls: () => false,
  });
  store.subscribe(picture.again, "from_ns", "until_ns");
}

function legendOf(stack: Stack): HTMLElement {
  const legend = el("ul", { class: "legend", "aria-label": "What memory is held for" });
  stack.purposes.forEach((name, at) => {
    if (!stack.held[at].some((held) => held > 0)) return;
    const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = `var(--purpose-${at})`;
    legend.append(el("li", {}, swatch, name));
  });
  for (const name of stack.unknown) {
    const swatch = el("span", { class: "swatch hatched", "aria-hidden": "true" });
    legend.append(el("li", {}, swatch, `${name}: unknown`));
  }
  return legend;
}

function drawMemory(
  context: Context,
  stack: Stack,
  view: Viewport,
  wide: number,
  high: number,
  top: number,
): void {
  const look = colors();
  const left = gutterOf(wide);
  drawAxis(context, view, left, high, look);
  if (stack.unknown.length) drawUnknown(context, stack, view, left, high, look);
  if (top >= 0 && stack.isKnown) drawStack(context, stack, view, left, high, look, top);
}

/** Hatched is what may have been held besides: as high as the picture is. */
function drawUnknown(
  context: Context,
  { isKnown }: Stack,
  view: Viewport,
  left: number,
  high: number,
  look: Colors,
): void {
  const [begin, end] = [view.from, view.until].map((time) => pixelOf(view, time));
  context.fillStyle = hatched(look.line);
  context.fillRect(left + begin, AXIS_HEIGHT, end - begin, high - AXIS_HEIGHT);
  if (isKnown) return;
  context.font = BOLD;
  context.textBaseline = "middle";
  context.textAlign = left > 0 ? "left" : "center";
  context.fillStyle = look.ink;
  const x = left > 0 ? 8 : view.width / 2;
  context.fillText("unknown", x, (AXIS_HEIGHT + high) / 2);
}

function peakWords({ unknown }: Stack, peak: number): string {
  return unknown.length ? `peak at least ${size(peak)}` : `peak ${size(peak)}`;
}

function drawStack(
  context: Context,
  stack: Stack,
  view: Viewport,
  left: number,
  high: number,
  look: Colors,
  top: number,
): void {
  const peak = stack.total.value[top];
  const unit = (high - AXIS_HEIGHT - 14) / Math.max(stack.most, 1);
  context.save();
  context.beginPath();
  context.rect(left, AXIS_HEIGHT, view.width, high - AXIS_HEIGHT);
  context.clip();
  const seen: [number, number, number][] = [];
  steps(stack.total, view.from, view.until, nsPerPixel(view), (place, from, until) => {
    // On whole pixels, for between halves of them the background would shine through.
    const x = Math.round(Math.max(pixelOf(view, from), 0));
    seen.push([
      place,
      x,
      Math.max(Math.round(Math.min(pixelOf(view, until), view.width)), x + 1),
    ]);
  });
  const base = new Float64Array(seen.length).fill(high);
  const parts = seen.map(([place]) => partsAt(stack, place));
  stack.purposes.forEach((_, purpose) => {
    context.fillStyle = look.purposes[purpose];
    seen.forEach(([, from, until], at) => {
      const tall = parts[at][purpose] * unit;
      base[at] -= tall;
      if (tall > 0) context.fillRect(left + from, base[at], until - from, tall);
    });
  });
  context.restore();
  const y = high - peak * unit;
  context.strokeStyle = look.ink;
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  context.beginPath();
  context.moveTo(left, y + 0.5);
  context.lineTo(left + view.width, y + 0.5);
  context.stroke();
  context.setLineDash([]);
  const x = left + pixelOf(view, stack.total.time[top]);
  context.fillStyle = look.ink;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.font = BOLD;
  const text = peakWords(stack, peak);
  if (left > 0) context.fillText(text, 8, Math.max(y, AXIS_HEIGHT + 7));
  if (x >= left && x <= left + view.width) {
    context.beginPath();
    context.arc(x, y + 0.5, 4, 0, 7);
    context.fill();
    context.font = FONT;
    const isLate = x + 90 > left + view.width;
    context.textAlign = isLate ? "right" : "left";
    context.fillText(text, x + (isLate ? -8 : 8), Math.max(y - 7, AXIS_HEIGHT + 6));
  }
}
