/* The axis of time and its lines, and what all pictures write and hatch with. */

import type { Colors } from "./colors.ts";
import { moment, ticks } from "./ticks.ts";
import { pixelOf, type Viewport } from "./viewport.ts";

export const AXIS_HEIGHT = 22;
export const FONT =
  "11px Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";
export const BOLD = `bold ${FONT}`;

export type Context = CanvasRenderingContext2D;

/** Marks above and lines below them, to the right of `left`. */
export function drawAxis(
  context: Context,
  view: Viewport,
  left: number,
  height: number,
  colors: Colors,
): void {
  const { at, step } = ticks(view.from, view.until, view.width / 90);
  context.font = FONT;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const time of at) {
    const x = left + Math.round(pixelOf(view, time)) + 0.5;
    context.fillStyle = colors.faintLine;
    context.fillRect(x - 0.5, AXIS_HEIGHT - 4, 1, height - AXIS_HEIGHT + 4);
    const text = time === 0 ? "0" : moment(time, step);
    const half = context.measureText(text).width / 2;
    if (x - half < left - 2 || x + half > left + view.width + 2) continue;
    context.fillStyle = colors.faintInk;
    context.fillText(text, x, AXIS_HEIGHT / 2 - 1);
  }
}

const widths = new Map<string, number>();

/** How wide a text is; remembered, for to measure takes longer than to draw a bar. */
export function widthOf(context: Context, text: string): number {
  let found = widths.get(text);
  if (found === undefined) {
    found = context.measureText(text).width;
    if (widths.size > 20_000) widths.clear();
    widths.set(text, found);
  }
  return found;
}

/** As much of a text as there is room for, with an ellipsis; empty if that is nothing. */
export function fitted(context: Context, text: string, room: number): string {
  if (widthOf(context, text) <= room) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? `${text.slice(0, low)}…` : "";
}

/** A text on at most so many lines, broken at spaces if it can be; the last is `fitted`. */
export function wrapped(
  context: Context,
  text: string,
  room: number,
  most: number,
): string[] {
  const lines: string[] = [];
  let rest = text;
  while (lines.length + 1 < most && widthOf(context, rest) > room) {
    const begin = fitted(context, rest, room).slice(0, -1);
    if (!begin) break;
    const space = begin.lastIndexOf(" ");
    const end = space > 0 ? space : begin.length;
    lines.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return [...lines, fitted(context, rest, room)];
}

type Stroke = readonly [x: number, y: number, toX: number, toY: number];

/** From below left to above right, twice around so that tiles fit. */
const RISING: readonly Stroke[] = [-6, 0, 6].map((x) => [x - 1, 7, x + 7, -1] as const);
const FALLING: readonly Stroke[] = RISING.map(
  ([x, y, toX, toY]) => [x, toY, toX, y] as const,
);

/** What stands for waiting, on nothing: lines. */
export const hatched = tiled(RISING);
/** What stands for waiting for others, with work to do: crossed lines. */
export const crossed = tiled([...RISING, ...FALLING]);

/** What a pattern looks like, for pictures that are not made of pixels. */
export interface Look {
  readonly strokes: readonly Stroke[];
  readonly color: string;
  readonly size: number;
  readonly alpha: number;
  readonly width: number;
}

const looks = new WeakMap<CanvasPattern, Look>();

export function lookOf(pattern: CanvasPattern): Look | undefined {
  return looks.get(pattern);
}

const TILE = { size: 6, alpha: 0.6, width: 1.4 } as const;

function tiled(strokes: readonly Stroke[]) {
  let known: { color: string; pattern: CanvasPattern } | undefined;
  return (color: string): CanvasPattern => {
    if (known?.color === color) return known.pattern;
    const tile = document.createElement("canvas");
    tile.width = tile.height = TILE.size;
    const drawn = tile.getContext("2d")!;
    drawn.strokeStyle = color;
    drawn.globalAlpha = TILE.alpha;
    drawn.lineWidth = TILE.width;
    drawn.beginPath();
    for (const [x, y, toX, toY] of strokes) {
      drawn.moveTo(x, y);
      drawn.lineTo(toX, toY);
    }
    drawn.stroke();
    known = { color, pattern: drawn.createPattern(tile, "repeat")! };
    looks.set(known.pattern, { strokes, color, ...TILE });
    return known.pattern;
  };
}
