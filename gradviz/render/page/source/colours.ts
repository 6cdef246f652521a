/* The colours of the page, which page.css has, for pictures on canvases.

They are told apart with any of the usual kinds of colour blindness and differ in
lightness, so that they survive greyscale; none of them alone carries a meaning. */

import { variable } from "./elements.ts";

/** So many operations have a colour of their own: `--operation-0` and on. */
export const NUM_OPERATIONS = 8;
/** What memory is held for: `--purpose-0` and on. */
const NUM_PURPOSES = 5;

export interface Colours {
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
  /** Of operations, then of leaves, then of the rest. */
  readonly operations: readonly string[];
  readonly purposes: readonly string[];
}

let known: { theme: string; colours: Colours } | undefined;

/** Those of the theme that is on; paper is white whatever the screen is. */
export function colours(): Colours {
  const theme = `${document.documentElement.dataset["theme"]} ${matchMedia("print").matches}`;
  if (known?.theme === theme) return known.colours;
  const colours: Colours = {
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
    operations: [
      ...Array.from({ length: NUM_OPERATIONS }, (_, at) =>
        variable(`--operation-${at}`),
      ),
      variable("--leaf"),
      variable("--rest"),
    ],
    purposes: Array.from({ length: NUM_PURPOSES }, (_, at) =>
      variable(`--purpose-${at}`),
    ),
  };
  known = { theme, colours };
  return colours;
}

/** White or ink, whichever reads better on `colour`. */
export function textOn(colour: string): string {
  const [red, green, blue] = [1, 3, 5].map((at) =>
    parseInt(colour.slice(at, at + 2), 16),
  );
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#1b1f24" : "#ffffff";
}
