/* Pictures as SVG: what is drawn on a canvas, kept as elements instead of pixels. */

import { type Look, lookOf } from "./axis.ts";

/** An element: written out into a file, or put into the page to be printed. */
export interface SvgNode {
  readonly tag: string;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly inside: readonly SvgNode[] | string;
}

/** How wide a text of some font is, in pixels. */
export type Measure = (text: string, font: string) => number;

interface DrawState {
  scale: number;
  x: number;
  y: number;
  clip: string;
  fillStyle: string | CanvasPattern;
  strokeStyle: string;
  lineWidth: number;
  lineJoin: string;
  dash: readonly number[];
  globalAlpha: number;
  font: string;
  textAlign: string;
  textBaseline: string;
}

const INITIAL: DrawState = {
  ...{ scale: 1, x: 0, y: 0, clip: "", globalAlpha: 1 },
  ...{ fillStyle: "#000000", strokeStyle: "#000000" },
  ...{ lineWidth: 1, lineJoin: "miter", dash: [] },
  ...{ font: "10px sans-serif", textAlign: "left", textBaseline: "alphabetic" },
};

const FONT = /^(?:(bold|\d+) )?([\d.]+)px (.+)$/;
const ANCHORS: Record<string, string> = { center: "middle", right: "end" };
/** Below the middle of a text is where it stands, in parts of its size. */
const MIDDLE = 0.35;

/** As many pictures as were made; names within them must differ on one page. */
let numMade = 0;

/** The part of a canvas context that our pictures use, drawing an SVG. */
export class SvgContext {
  private state: DrawState = { ...INITIAL };
  private readonly saved: DrawState[] = [];
  private readonly defs: SvgNode[] = [];
  private readonly drawn: SvgNode[] = [];
  private readonly patterns = new Map<CanvasPattern, string>();
  private readonly prefix = `p${numMade++}-`;
  private path = "";

  constructor(private readonly measure: Measure) {}

  /** All that was drawn between two heights, as a picture of this width. */
  picture(width: number, top: number, bottom: number): SvgNode {
    const high = bottom - top;
    const box = [0, top, width, high].map(short).join(" ");
    return {
      tag: "svg",
      attributes: {
        ...{ xmlns: "http://www.w3.org/2000/svg", viewBox: box },
        ...{ width: short(width), height: short(high) },
      },
      inside: [{ tag: "defs", attributes: {}, inside: this.defs }, ...this.drawn],
    };
  }

  // --- what a canvas has: its names and its meaning ----------------------------------

  save(): void {
    this.saved.push({ ...this.state });
  }
  restore(): void {
    this.state = this.saved.pop() ?? this.state;
  }
  scale(by: number): void {
    this.state.scale *= by;
  }
  translate(x: number, y: number): void {
    this.state.x += x * this.state.scale;
    this.state.y += y * this.state.scale;
  }
  clearRect(): void {}
  beginPath(): void {
    this.path = "";
  }
  moveTo(x: number, y: number): void {
    this.path += `M${this.at(x, y)}`;
  }
  lineTo(x: number, y: number): void {
    this.path += `L${this.at(x, y)}`;
  }
  bezierCurveTo(...[a, b, c, d, x, y]: number[]): void {
    this.path += `C${this.at(a, b)} ${this.at(c, d)} ${this.at(x, y)}`;
  }
  rect(x: number, y: number, wide: number, high: number): void {
    this.path += this.rectangle(x, y, wide, high);
  }
  roundRect(x: number, y: number, wide: number, high: number, radius: number): void {
    const r = Math.min(radius, wide / 2, high / 2);
    const [right, bottom] = [x + wide, y + high];
    const turn = `A${short(r * this.state.scale)} ${short(r * this.state.scale)} 0 0 1 `;
    this.path +=
      `M${this.at(x + r, y)}L${this.at(right - r, y)}${turn}${this.at(right, y + r)}` +
      `L${this.at(right, bottom - r)}${turn}${this.at(right - r, bottom)}` +
      `L${this.at(x + r, bottom)}${turn}${this.at(x, bottom - r)}` +
      `L${this.at(x, y + r)}${turn}${this.at(x + r, y)}Z`;
  }
  /** Whole circles only: our pictures have no others. */
  arc(x: number, y: number, radius: number): void {
    const r = short(radius * this.state.scale);
    this.path +=
      `M${this.at(x - radius, y)}A${r} ${r} 0 1 0 ${this.at(x + radius, y)}` +
      `A${r} ${r} 0 1 0 ${this.at(x - radius, y)}Z`;
  }
  fill(): void {
    this.add("path", { d: this.path, ...this.filling() });
  }
  stroke(): void {
    this.add("path", { d: this.path, fill: "none", ...this.stroking() });
  }
  clip(): void {
    const id = `${this.prefix}c${this.defs.length}`;
    const inside = [{ tag: "path", attributes: { d: this.path }, inside: "" }];
    this.defs.push({
      tag: "clipPath",
      attributes: { id, ...this.clipping() },
      inside,
    });
    this.state.clip = id;
  }
  fillRect(x: number, y: number, wide: number, high: number): void {
    this.add("path", { d: this.rectangle(x, y, wide, high), ...this.filling() });
  }
  strokeRect(x: number, y: number, wide: number, high: number): void {
    const d = this.rectangle(x, y, wide, high);
    this.add("path", { d, fill: "none", ...this.stroking() });
  }
  setLineDash(dash: readonly number[]): void {
    this.state.dash = dash;
  }
  fillText(text: string, x: number, y: number, most = Infinity): void {
    this.write(text, x, y, most, this.filling());
  }
  strokeText(text: string, x: number, y: number, most = Infinity): void {
    this.write(text, x, y, most, { fill: "none", ...this.stroking() });
  }
  measureText(text: string): { width: number } {
    return { width: this.measure(text, this.state.font) };
  }
  set fillStyle(style: string | CanvasPattern) {
    this.state.fillStyle = style;
  }
  set strokeStyle(style: string) {
    this.state.strokeStyle = style;
  }
  set lineWidth(width: number) {
    this.state.lineWidth = width;
  }
  set lineJoin(join: string) {
    this.state.lineJoin = join;
  }
  get globalAlpha(): number {
    return this.state.globalAlpha;
  }
  set globalAlpha(alpha: number) {
    this.state.globalAlpha = alpha;
  }
  set font(font: string) {
    this.state.font = font;
  }
  set textAlign(align: string) {
    this.state.textAlign = align;
  }
  set textBaseline(baseline: string) {
    this.state.textBaseline = baseline;
  }

  // --- how that is written -----------------------------------------------------------

  private add(
    tag: string,
    attributes: Record<string, string | number>,
    inside = "",
  ): void {
    const alpha = this.state.globalAlpha;
    const opacity: Record<string, number> = alpha < 1 ? { opacity: short(alpha) } : {};
    this.drawn.push({
      ...{ tag, inside },
      attributes: { ...attributes, ...opacity, ...this.clipping() },
    });
  }

  private at(x: number, y: number): string {
    const { scale, x: left, y: top } = this.state;
    return `${short(x * scale + left)} ${short(y * scale + top)}`;
  }

  private rectangle(x: number, y: number, wide: number, high: number): string {
    const [right, bottom] = [x + wide, y + high];
    return `M${this.at(x, y)}L${this.at(right, y)}L${this.at(right, bottom)}L${this.at(x, bottom)}Z`;
  }

  private clipping(): Record<string, string> {
    return this.state.clip ? { "clip-path": `url(#${this.state.clip})` } : {};
  }

  private filling(): Record<string, string> {
    const { fillStyle } = this.state;
    if (typeof fillStyle === "string") return { fill: fillStyle };
    return { fill: `url(#${this.patternOf(fillStyle)})` };
  }

  private stroking(): Record<string, string | number> {
    const { strokeStyle, lineWidth, lineJoin, dash, scale } = this.state;
    const dashed = dash.map((one) => short(one * scale)).join(" ");
    return {
      stroke: strokeStyle,
      "stroke-width": short(lineWidth * scale),
      ...(lineJoin === "miter" ? {} : { "stroke-linejoin": lineJoin }),
      ...(dashed ? { "stroke-dasharray": dashed } : {}),
    };
  }

  private patternOf(pattern: CanvasPattern): string {
    let id = this.patterns.get(pattern);
    const look = lookOf(pattern);
    if (id === undefined && look) {
      id = `${this.prefix}h${this.patterns.size}`;
      this.patterns.set(pattern, id);
      this.defs.push(tile(id, look));
    }
    return id ?? "";
  }

  private write(
    text: string,
    x: number,
    y: number,
    most: number,
    look: Record<string, string | number>,
  ): void {
    const { font, textAlign, textBaseline, scale, x: left, y: top } = this.state;
    const [, weight, size, family] = FONT.exec(font) ?? ["", "", "10", "sans-serif"];
    const down = textBaseline === "middle" ? MIDDLE * Number(size) : 0;
    const isTooWide = most < Infinity && this.measure(text, font) > most;
    this.add(
      "text",
      {
        ...{ x: short(x * scale + left), y: short((y + down) * scale + top), ...look },
        ...{ "font-size": short(Number(size) * scale), "font-family": family },
        ...(weight ? { "font-weight": weight } : {}),
        ...(ANCHORS[textAlign] ? { "text-anchor": ANCHORS[textAlign] } : {}),
        ...(isTooWide
          ? {
              textLength: short(Math.max(most, 0) * scale),
              lengthAdjust: "spacingAndGlyphs",
            }
          : {}),
      },
      text,
    );
  }
}

function tile(id: string, { strokes, color, size, alpha, width }: Look): SvgNode {
  const d = strokes.map(([x, y, toX, toY]) => `M${x} ${y}L${toX} ${toY}`).join("");
  const line = { d, fill: "none", stroke: color, "stroke-width": width };
  return {
    tag: "pattern",
    attributes: { id, patternUnits: "userSpaceOnUse", width: size, height: size },
    inside: [{ tag: "path", attributes: { ...line, opacity: alpha }, inside: "" }],
  };
}

function short(value: number): number {
  return Math.round(value * 100) / 100;
}

/** The text of a file. */
export function written({ tag, attributes, inside }: SvgNode): string {
  const said = Object.entries(attributes).map(
    ([name, value]) => ` ${name}="${escaped(String(value))}"`,
  );
  const within = typeof inside === "string" ? escaped(inside) : inside.map(written);
  return `<${tag}${said.join("")}>${typeof within === "string" ? within : within.join("")}</${tag}>`;
}

/** An element of the page. */
export function elementOf({ tag, attributes, inside }: SvgNode): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name !== "xmlns") made.setAttribute(name, String(value));
  }
  if (typeof inside === "string") made.textContent = inside;
  else made.append(...inside.map(elementOf));
  return made;
}

const ESCAPES: Record<string, string> = {
  ...{ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" },
};

function escaped(text: string): string {
  // What XML 1.0 cannot have in any form would make the file unreadable.
  return text
    .replace(/[&<>"]/g, (one) => ESCAPES[one])
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd");
}
