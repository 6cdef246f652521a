/* The colors of the page, which page.css has, for pictures on canvases.

They are told apart with any of the usual kinds of color blindness and differ in
lightness, so that they survive grayscale; none of them alone carries a meaning. */

import { variable } from "./elements.ts";

/** So many things without an order are told apart: `--palette-0` and on. */
export const NUM_PALETTE = 8;
/** Families of operations, from dark to pale: `--family-0` and on. */
const NUM_FAMILIES = 8;
/** What memory is held for: `--purpose-0` and on. */
const NUM_PURPOSES = 5;

export interface Colors {
  readonly background: string;
  readonly panel: string;
  readonly ink: string;
  readonly faintInk: string;
  readonly line: string;
  readonly faintLine: string;
  readonly alarm: string;
  readonly accent: string;
  readonly critical: string;
  readonly pass: string;
  readonly blocked: string;
  /** Of things without an order, then of the rest. */
  readonly palette: readonly string[];
  /** Of families of operations, then of leaves. */
  readonly families: readonly string[];
  readonly purposes: readonly string[];
  /** From little to much, in equal steps. */
  readonly ramp: readonly string[];
}

let known: { theme: string; colors: Colors } | undefined;

/** Those of the theme that is on; paper is white whatever the screen is. */
export function colors(): Colors {
  const theme = `${document.documentElement.dataset.theme} ${matchMedia("print").matches}`;
  if (known?.theme === theme) return known.colors;
  const colors: Colors = {
    background: variable("--background"),
    panel: variable("--panel"),
    ink: variable("--ink"),
    faintInk: variable("--faint-ink"),
    line: variable("--line"),
    faintLine: variable("--faint-line"),
    alarm: variable("--alarm"),
    accent: variable("--accent"),
    critical: variable("--critical"),
    pass: variable("--pass"),
    blocked: variable("--blocked"),
    palette: [
      ...Array.from({ length: NUM_PALETTE }, (_, at) => variable(`--palette-${at}`)),
      variable("--rest"),
    ],
    families: [
      ...Array.from({ length: NUM_FAMILIES }, (_, at) => variable(`--family-${at}`)),
      variable("--leaf"),
    ],
    purposes: Array.from({ length: NUM_PURPOSES }, (_, at) =>
      variable(`--purpose-${at}`),
    ),
    ramp: ramp(Array.from({ length: 5 }, (_, at) => variable(`--ramp-${at}`))),
  };
  known = { theme, colors };
  return colors;
}

/** Colors between some, and these. */
function ramp(marks: readonly string[]): string[] {
  const parts = marks.map((mark) =>
    [1, 3, 5].map((at) => parseInt(mark.slice(at, at + 2), 16)),
  );
  const steps = 8 * (marks.length - 1);
  return Array.from({ length: steps + 1 }, (_, step) => {
    const at = Math.min(Math.floor(step / 8), marks.length - 2);
    const more = step / 8 - at;
    const mixed = parts[at].map(
      (one, part) => one + (parts[at + 1][part] - one) * more,
    );
    return `#${mixed.map((one) => Math.round(one).toString(16).padStart(2, "0")).join("")}`;
  });
}

const INK = "#1b1f24";
const WHITE = "#ffffff";

/** White or ink, whichever reads better on `color`. */
export function textOn(color: string): string {
  return contrast(INK, color) >= contrast(WHITE, color) ? INK : WHITE;
}

/** How well one color reads on another: 1 to 21, as WCAG 2 has it. */
export function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(color: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
