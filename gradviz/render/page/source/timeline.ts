/* The timeline as drawn: lanes of threads and streams, what is seen of each, what is hit. */

import {
  AXIS_HEIGHT,
  BOLD,
  type Context,
  crossed,
  drawAxis,
  FONT,
  fitted,
  hatched,
  widthOf,
} from "./axis.ts";
import { type Colors, textOn } from "./colors.ts";
import { type Crossings, drawCritical } from "./critical.ts";
import { type LeveledRow, marks, placeAt } from "./levels.ts";
import { firstAbove } from "./sorted.ts";
import { drawStreamWaits, type StreamWaits } from "./stream_waits.ts";
import { gutterOf } from "./time_axis.ts";
import { nsPerPixel, pixelOf, timeOf, type Viewport } from "./viewport.ts";

/** What a lane does for a while. */
export const NODE = 0;
export const WAIT = 1;
export const KERNEL = 2;
export const BACKWARD = 3;
export const BLOCKED = 4;

export const COMPLETED = 0;
export const CAPTURED = 1;
export const FAILED = 2;
export const UNFINISHED = 3;

/** All spans of all lanes, by number. */
export interface Bars {
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly kind: Uint8Array;
  readonly status: Uint8Array;
  /** Of operations, for nodes and kernels. */
  readonly family: Uint8Array;
  readonly label: (item: number) => string;
  /** Whether it is drawn pale, because a filter is on and it is not meant. */
  readonly isFaint: (item: number) => boolean;
  /** Which part of it its thread did not run: 0 to 1. */
  readonly blocked: (item: number) => number;
}

export interface Lane {
  /** The worker whose lanes begin here; empty within them, and where there is only one. */
  readonly heading: string;
  readonly name: string;
  readonly detail: string;
  readonly rows: readonly LeveledRow[];
  /** What of the critical path lies on it. */
  readonly critical: LeveledRow;
}

/** Rows are between so high and so high, as there is room. */
const ROW_HEIGHTS = [22, 36] as const;
/** The same on a narrow screen, where fingers choose what is in them. */
const TOUCHED_ROW_HEIGHTS = [44, 64] as const;
/** Between the bars of two rows. */
const ROW_GAP = 4;
const PADDING = 6;
const GAP = 6;
export const CRITICAL_HEIGHT = 4;
const NAME_HEIGHT = 16;
const HEADING_HEIGHT = 20;
const MIN_LABEL = 30;

/** Where lanes lie, from the top of the first. */
export interface Placement {
  readonly gutter: number;
  readonly nameHeight: number;
  readonly rowHeight: number;
  readonly barHeight: number;
  /** Where each begins, below its heading. */
  readonly tops: readonly number[];
  readonly bottoms: readonly number[];
  readonly height: number;
}

export function placed(lanes: readonly Lane[], width: number, room: number): Placement {
  const gutter = gutterOf(width);
  const nameHeight = gutter > 0 ? 0 : NAME_HEIGHT;
  const numRows = lanes.reduce((sum, { rows }) => sum + Math.max(rows.length, 1), 0);
  const around = nameHeight + GAP - ROW_GAP + 2 * PADDING + CRITICAL_HEIGHT;
  const headings = lanes.reduce((sum, lane) => sum + headingHeight(lane), 0);
  const fitting = Math.floor(
    (room - AXIS_HEIGHT - headings - lanes.length * around) / Math.max(numRows, 1),
  );
  const [least, most] = gutter > 0 ? ROW_HEIGHTS : TOUCHED_ROW_HEIGHTS;
  const rowHeight = Math.min(Math.max(fitting, least), most);
  const tops: number[] = [];
  const bottoms: number[] = [];
  let y = 0;
  for (const lane of lanes) {
    y += headingHeight(lane);
    tops.push(y);
    y += Math.max(lane.rows.length, 1) * rowHeight + around;
    bottoms.push(y);
  }
  const barHeight = rowHeight - ROW_GAP;
  return { gutter, nameHeight, rowHeight, barHeight, tops, bottoms, height: y };
}

function headingHeight({ heading }: Lane): number {
  return heading === "" ? 0 : HEADING_HEIGHT;
}

function heightOf(place: Placement, lane: number): number {
  return place.bottoms[lane] - place.tops[lane] - place.nameHeight - GAP;
}

/** The y of a row's bars on the screen. */
export function rowTop(
  place: Placement,
  lane: number,
  row: number,
  scrolled: number,
): number {
  return (
    AXIS_HEIGHT +
    place.tops[lane] +
    place.nameHeight +
    PADDING +
    CRITICAL_HEIGHT +
    row * place.rowHeight -
    scrolled
  );
}

export interface Drawn {
  readonly lanes: readonly Lane[];
  readonly bars: Bars;
  readonly place: Placement;
  readonly view: Viewport;
  readonly scrolled: number;
  readonly colors: Colors;
  readonly height: number;
  readonly crossings: Crossings;
  readonly streamWaits: StreamWaits;
  readonly isCriticalMarked: boolean;
}

export function drawTimeline(context: Context, drawn: Drawn): void {
  const { lanes, place, view, colors, height } = drawn;
  const left = place.gutter;
  context.fillStyle = colors.background;
  context.fillRect(0, 0, left + view.width, height);
  context.save();
  context.beginPath();
  context.rect(0, AXIS_HEIGHT, left + view.width, height - AXIS_HEIGHT);
  context.clip();
  const seen = lanes.map((_, lane) => lane).filter((lane) => isSeen(drawn, lane));
  for (const lane of seen) drawLane(context, drawn, lane);
  context.restore();
  drawAxis(context, view, left, height, colors);
  context.save();
  context.beginPath();
  context.rect(left, AXIS_HEIGHT, view.width, height - AXIS_HEIGHT);
  context.clip();
  for (const lane of seen) drawRows(context, drawn, lane);
  drawStreamWaits(context, drawn);
  if (drawn.isCriticalMarked) drawCritical(context, drawn, seen);
  context.restore();
}

function isSeen({ lanes, place, scrolled, height }: Drawn, lane: number): boolean {
  const top = AXIS_HEIGHT + place.tops[lane] - scrolled;
  const bottom = top + heightOf(place, lane) + place.nameHeight;
  return top - headingHeight(lanes[lane]) < height && bottom > AXIS_HEIGHT;
}

function drawLane(
  context: Context,
  { lanes, place, view, scrolled, colors }: Drawn,
  lane: number,
): void {
  const one = lanes[lane];
  const top = AXIS_HEIGHT + place.tops[lane] - scrolled;
  const high = heightOf(place, lane);
  context.fillStyle = colors.panel;
  context.fillRect(place.gutter, top + place.nameHeight, view.width, high);
  context.textAlign = "left";
  context.textBaseline = "middle";
  drawHeading(context, one.heading, top, place.gutter + view.width, colors);
  const room = (place.gutter || view.width) - 14;
  const middle = place.nameHeight
    ? top + NAME_HEIGHT / 2
    : top + high / 2 - (high > 34 ? 7 : 0);
  context.font = BOLD;
  context.fillStyle = colors.ink;
  const name = fitted(context, one.name, room);
  context.fillText(name, 8, middle);
  const used = place.nameHeight ? context.measureText(name).width + 10 : 0;
  if (!place.nameHeight && high <= 34) return;
  context.font = FONT;
  context.fillStyle = colors.faintInk;
  context.fillText(
    fitted(context, one.detail, room - used),
    8 + used,
    middle + (place.nameHeight ? 0 : 14),
  );
}

/** The worker whose lanes begin at `top`, with a line above it over the whole width. */
function drawHeading(
  context: Context,
  heading: string,
  top: number,
  width: number,
  colors: Colors,
): void {
  if (heading === "") return;
  context.fillStyle = colors.line;
  context.fillRect(0, top - HEADING_HEIGHT, width, 1);
  context.font = BOLD;
  context.fillStyle = colors.ink;
  const text = fitted(context, heading, width - 14);
  context.fillText(text, 8, top - HEADING_HEIGHT / 2);
}

function drawRows(context: Context, drawn: Drawn, lane: number): void {
  const { view, place, scrolled } = drawn;
  const slice = nsPerPixel(view);
  const top = rowTop(place, lane, 0, scrolled);
  for (const [at, row] of drawn.lanes[lane].rows.entries())
    drawRow(context, drawn, row, top + at * place.rowHeight, slice);
}

function drawRow(
  context: Context,
  drawn: Drawn,
  row: LeveledRow,
  y: number,
  slice: number,
): void {
  const { bars, view, colors } = drawn;
  const { barHeight } = drawn.place;
  const labels: [number, number, number][] = [];
  const bad: [number, number][] = [];
  let filled = "";
  marks(row, view.from, view.until, slice * 1.5, (place, start, end, num) => {
    const item = row.item[place];
    const [x, wide] = extent(drawn, start, end);
    const kind = bars.kind[item];
    if (kind === WAIT || kind === BLOCKED) {
      filled = "";
      context.fillStyle = (kind === WAIT ? hatched : crossed)(colors.line);
      context.fillRect(x, y, wide, barHeight);
      return;
    }
    const fill = fillOf(bars, item, colors);
    if (fill !== filled) context.fillStyle = filled = fill;
    const isFaint = bars.isFaint(item);
    if (isFaint) context.globalAlpha = 0.18;
    // A hair of background between bars keeps those of one color apart.
    const drawnWide = wide > 3 ? wide - 0.75 : wide;
    if (bars.status[item] === CAPTURED && num === 1) {
      context.globalAlpha *= 0.35;
      context.fillRect(x, y, drawnWide, barHeight);
    } else context.fillRect(x, y, drawnWide, barHeight);
    context.globalAlpha = 1;
    const blocked = num === 1 && wide > 6 ? bars.blocked(item) : 0;
    if (blocked > 0.02) {
      context.fillStyle = colors.blocked;
      context.fillRect(x, y + barHeight - 5, drawnWide * blocked, 5);
      context.fillStyle = hatched(colors.line);
      context.fillRect(x, y + barHeight - 5, drawnWide * blocked, 5);
      filled = "";
    }
    if (bars.status[item] >= FAILED) bad.push([x, Math.max(drawnWide, 3)]);
    if (num === 1 && wide >= MIN_LABEL && !isFaint) labels.push([item, x, wide]);
  });
  context.strokeStyle = colors.alarm;
  context.lineWidth = 2.5;
  for (const [x, wide] of bad)
    context.strokeRect(x + 1, y + 1, Math.max(wide - 2, 1), barHeight - 2);
  context.font = FONT;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const [item, x, wide] of labels) {
    const text = labeled(context, bars.label(item), wide - 8);
    if (text === "") continue;
    context.fillStyle = textOn(fillOf(bars, item, colors));
    if (bars.status[item] === CAPTURED) context.fillStyle = colors.ink;
    context.fillText(text, x + wide / 2, y + barHeight / 2 + 0.5);
  }
}

/** The whole of a label, or the number that it begins with, or as much as fits. */
function labeled(context: Context, text: string, room: number): string {
  if (widthOf(context, text) <= room) return text;
  const number = /^\d+/.exec(text)?.[0] ?? "";
  if (room < 60) return widthOf(context, number) <= room ? number : "";
  return fitted(context, text, room);
}

function fillOf(bars: Bars, item: number, colors: Colors): string {
  if (bars.kind[item] === BACKWARD) return colors.pass;
  return colors.families[bars.family[item]];
}

/** Where on the screen something from one time to another lies, never too thin to see. */
export function extent(
  { view, place }: Drawn,
  start: number,
  end: number,
): [number, number] {
  const from = pixelOf(view, Math.max(start, view.from - nsPerPixel(view) * 8));
  const until = pixelOf(view, Math.min(end, view.until + nsPerPixel(view) * 8));
  return [place.gutter + from, Math.max(until - from, 1)];
}

export interface Hit {
  readonly lane: number;
  readonly row: number;
  /** The span there, -1 for none. */
  readonly item: number;
}

/** What lies at a place of the picture; undefined outside of all lanes. */
export function hitAt(drawn: Drawn, x: number, y: number): Hit | undefined {
  const { lanes, place, view, scrolled } = drawn;
  if (x < place.gutter || y < AXIS_HEIGHT) return undefined;
  const down = y - AXIS_HEIGHT + scrolled;
  const lane = firstAbove(place.tops, down) - 1;
  if (lane < 0) return undefined;
  const rows = lanes[lane].rows;
  const row = Math.floor((y - rowTop(place, lane, 0, scrolled)) / place.rowHeight);
  if (row < 0 || row >= rows.length) return { lane, row: -1, item: -1 };
  const found = placeAt(
    rows[row],
    timeOf(view, x - place.gutter),
    nsPerPixel(view) * 3,
  );
  return { lane, row, item: found < 0 ? -1 : rows[row].item[found] };
}
