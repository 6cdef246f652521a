/* Pictures of panels on paper: saved as files, and laid out when the page is printed. */

import { type Context, FONT, hatched } from "./axis.ts";
import { colors } from "./colors.ts";
import { button, el } from "./elements.ts";
import { elementOf, type Measure, SvgContext, type SvgNode, written } from "./svg.ts";

/** A whole picture, independent of the part of it that is on the screen. */
export interface Paper {
  readonly width: number;
  readonly height: number;
  draw(context: Context): void;
  /** What must not be cut where it goes on on the next sheet: from where to where. */
  readonly kept: readonly (readonly [top: number, bottom: number])[];
}

/** How large a sheet is for a picture, in pixels: what A4 and Letter both have, upright. */
const SHEET = { width: 690, height: 880 } as const;
/** No browser makes larger images. */
const MOST_PIXELS = { side: 16_000, all: 60_000_000 } as const;
const SHARP = 2;
/** Narrower pictures have no room for the words of a legend. */
const LEAST_WIDTH = 480;
const LEGEND = {
  ...{ rowHeight: 18, margin: 8, gap: 9, space: 5 },
  ...{ swatch: 11, ramp: 90 },
} as const;

/** Let the reader save the picture of a panel, and the browser print it. */
export function offer(inside: HTMLElement, name: string, paper: () => Paper): void {
  const panel = inside.closest<HTMLElement>(".panel");
  if (!panel) return;
  const save = (kind: "svg" | "png") =>
    button(kind.toUpperCase(), () => void saved(panel, name, paper(), kind), {
      "aria-label": `Save ${name} as ${kind.toUpperCase()}`,
      title: `Save as ${kind.toUpperCase()}`,
    });
  panel
    .querySelector("h2")
    ?.after(el("div", { class: "save" }, save("svg"), save("png")));
  listenToPrinter(inside, paper);
}

function listenToPrinter(inside: HTMLElement, paper: () => Paper): void {
  const sheets = el("div", { class: "sheets" });
  const root = document.documentElement;
  function before(): void {
    if (!inside.isConnected) {
      end();
      return;
    }
    const { theme } = root.dataset;
    root.dataset.theme = "light";
    sheets.replaceChildren(...sheetsOf(paper()).map(elementOf));
    inside.querySelector(".picture")?.after(sheets);
    root.dataset.theme = theme;
  }
  function after(): void {
    sheets.remove();
    sheets.replaceChildren();
  }
  function end(): void {
    window.removeEventListener("beforeprint", before);
    window.removeEventListener("afterprint", after);
  }
  window.addEventListener("beforeprint", before);
  window.addEventListener("afterprint", after);
}

/** A picture in as many pieces as it takes sheets. */
function sheetsOf(paper: Paper): SvgNode[] {
  const context = drawn(paper);
  const scale = Math.min(1, SHEET.width / paper.width);
  return cutInto(paper, SHEET.height / scale).map(([top, bottom]) =>
    context.picture(paper.width, top, bottom),
  );
}

/** From where to where each piece goes, none longer than `most`. */
export function cutInto(
  { height, kept }: Pick<Paper, "height" | "kept">,
  most: number,
): [number, number][] {
  const pieces: [number, number][] = [];
  let top = 0;
  while (height - top > most) {
    let bottom = top + most;
    for (;;) {
      const at = bottom;
      const cut = kept.filter(([begin, end]) => begin < at && at < end);
      const above = cut.reduce((least, [begin]) => Math.min(least, begin), at);
      if (above === at) break;
      bottom = above;
    }
    // What is longer than a sheet is cut none the less.
    if (bottom <= top) bottom = top + most;
    pieces.push([top, bottom]);
    top = bottom;
  }
  pieces.push([top, height]);
  return pieces;
}

function drawn(paper: Paper): SvgContext {
  const context = new SvgContext(measured());
  paper.draw(context as unknown as Context);
  return context;
}

function measured(): Measure {
  const context = document.createElement("canvas").getContext("2d");
  return (text, font) => {
    if (!context) return text.length * 6;
    context.font = font;
    return context.measureText(text).width;
  };
}

async function saved(
  panel: HTMLElement,
  name: string,
  paper: Paper,
  kind: "svg" | "png",
): Promise<void> {
  const whole = withLegend(panel, paper);
  const blob = kind === "svg" ? svgOf(whole) : await pngOf(whole);
  if (!blob) return;
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: `${name.toLowerCase()}.${kind}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

function svgOf(paper: Paper): Blob {
  const picture = drawn(paper).picture(paper.width, 0, paper.height);
  return new Blob([written(picture)], { type: "image/svg+xml" });
}

function pngOf(paper: Paper): Promise<Blob | null> {
  const { width, height } = paper;
  const sharp = Math.min(
    SHARP,
    MOST_PIXELS.side / Math.max(width, height),
    Math.sqrt(MOST_PIXELS.all / (width * height)),
  );
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(width * sharp);
  canvas.height = Math.ceil(height * sharp);
  const context = canvas.getContext("2d");
  if (!context) return Promise.resolve(null);
  context.scale(sharp, sharp);
  paper.draw(context);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** A picture below what explains its colors; the ground is that of the theme. */
function withLegend(panel: HTMLElement, paper: Paper): Paper {
  const items = [...panel.querySelectorAll<HTMLElement>(".legend li")];
  const measure = measured();
  const { rowHeight, gap, margin } = LEGEND;
  const width = Math.max(paper.width, LEAST_WIDTH);
  let [x, row] = [margin, 0];
  const places = items.map((item) => {
    const wide = lengthOf(item, measure) + gap;
    if (x > margin && x + wide > width) [x, row] = [margin, row + 1];
    x += wide;
    return { item, x: x - wide, y: margin + row * rowHeight };
  });
  const top = items.length ? (row + 1) * rowHeight + 2 * margin : 0;
  return {
    ...{ width, height: paper.height + top, kept: [] },
    draw(context) {
      context.fillStyle = colors().background;
      context.fillRect(0, 0, width, paper.height + top);
      context.save();
      for (const { item, x, y } of places) drawItem(context, item, x, y, measure);
      context.restore();
      context.save();
      context.translate(0, top);
      paper.draw(context);
      context.restore();
    },
  };
}

/** What an entry of a legend consists of: swatches and words. */
function partsOf(item: HTMLElement): (HTMLElement | string)[] {
  return [...item.childNodes].map((one) =>
    one instanceof HTMLElement ? one : (one.textContent ?? ""),
  );
}

function swatchWidth(swatch: HTMLElement): number {
  return swatch.classList.contains("ramp") ? LEGEND.ramp : LEGEND.swatch;
}

function lengthOf(item: HTMLElement, measure: Measure): number {
  return partsOf(item).reduce(
    (sum, one) =>
      sum +
      LEGEND.space +
      (typeof one === "string" ? measure(one, FONT) : swatchWidth(one)),
    0,
  );
}

function drawItem(
  context: Context,
  item: HTMLElement,
  left: number,
  y: number,
  measure: Measure,
): void {
  let x = left;
  for (const one of partsOf(item)) {
    if (typeof one === "string") {
      context.font = FONT;
      context.textAlign = "left";
      context.textBaseline = "middle";
      context.fillStyle = colors().faintInk;
      context.fillText(one, x, y + LEGEND.swatch / 2 + 0.5);
      x += measure(one, FONT) + LEGEND.space;
    } else {
      drawSwatch(context, one, x, y);
      x += swatchWidth(one) + LEGEND.space;
    }
  }
}

/** A swatch as the style sheet has it. */
function drawSwatch(context: Context, swatch: HTMLElement, x: number, y: number): void {
  const look = getComputedStyle(swatch);
  const wide = swatchWidth(swatch);
  const high = Math.min(Number.parseFloat(look.height) || Infinity, LEGEND.swatch);
  const top = y + (LEGEND.swatch - high) / 2;
  const isRamp = swatch.classList.contains("ramp");
  const steps = isRamp ? colors().ramp : [look.backgroundColor];
  steps.forEach((color, at) => {
    const isHatched = !isRamp && look.backgroundImage !== "none";
    context.fillStyle = isHatched ? hatched(colors().line) : color;
    context.fillRect(x + (wide * at) / steps.length, top, wide / steps.length, high);
  });
  const border = Number.parseFloat(look.borderTopWidth);
  if (!(border > 0)) return;
  context.strokeStyle = look.borderTopColor;
  context.lineWidth = border;
  context.strokeRect(x + border / 2, top + border / 2, wide - border, high - border);
}
