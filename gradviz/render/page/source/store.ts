/* What is selected, shown and played: one value that all panels look at.

A panel calls `set` with what changes, and hears by `subscribe` of what it looks at, no
matter who changed it: so what is selected in one is selected in all. Listeners are
called once for a frame, after all changes of that frame. */

import { type ColorBy, isColoring } from "./colorings.ts";
import { read, written } from "./places.ts";

export type Theme = "auto" | "light" | "dark";

export interface State {
  /** The place of the selected node, -1 for none; and of its pass. */
  node: number;
  task: number;
  /** The place of the node under the pointer, -1 for none. */
  hover: number;
  /** A place in `events`: the state right after it is shown; -1: the whole pass is. */
  moment: number;
  /** The part of the time that is seen, in nanoseconds; both 0 for all of it. */
  from_ns: number;
  until_ns: number;
  /** What a node must have to be shown strongly; empty texts mean any. */
  filters: Filters;
  /** The boxes of the graph that are open, by place; null: as at first. */
  open: readonly number[] | null;
  /** What the colors of the graph stand for. */
  colorBy: ColorBy;
  /** Whether the critical path is marked. */
  critical: boolean;
  theme: Theme;
  /** Which of the panels below the graph is seen where there is no room for all. */
  panel: string;
  /** How far these are scrolled down, in pixels. */
  timelineTop: number;
  queuesTop: number;
  /** How many events a second a replay plays. */
  speed: number;
}

export interface Filters {
  /** A part of the name, the module, the parameter or the line; or an id. */
  text: string;
  device: string;
  status: string;
}

export const INITIAL: State = {
  node: -1,
  task: 0,
  hover: -1,
  moment: -1,
  from_ns: 0,
  until_ns: 0,
  filters: { text: "", device: "", status: "" },
  open: null,
  colorBy: "op",
  critical: true,
  theme: "auto",
  panel: "timeline",
  timelineTop: 0,
  queuesTop: 0,
  speed: 10,
};

export type Listener = (
  state: Readonly<State>,
  changed: ReadonlySet<keyof State>,
) => void;

export interface Store {
  get(): Readonly<State>;
  set(change: Partial<State>): void;
  /** Calls `listener` after changes of these parts, any if none are named. */
  subscribe(listener: Listener, ...parts: (keyof State)[]): () => void;
}

/** Hands `run` on to be called later; for tests, that is at once. */
export type Schedule = (run: () => void) => void;

export function createStore(
  initial: State = INITIAL,
  schedule: Schedule = (run) => requestAnimationFrame(run),
): Store {
  let state = initial;
  let changed = new Set<keyof State>();
  const listeners = new Set<{ listener: Listener; parts: (keyof State)[] }>();

  function tell() {
    const told = changed;
    changed = new Set();
    for (const one of [...listeners]) {
      if (!one.parts.length || one.parts.some((part) => told.has(part))) {
        one.listener(state, told);
      }
    }
  }

  return {
    get: () => state,
    set(change) {
      const before = changed.size;
      const next = { ...state, ...change };
      for (const part of Object.keys(change) as (keyof State)[]) {
        if (!same(state[part], next[part])) changed.add(part);
      }
      state = next;
      if (!before && changed.size) schedule(tell);
    },
    subscribe(listener, ...parts) {
      const one = { listener, parts };
      listeners.add(one);
      return () => listeners.delete(one);
    },
  };
}

/** The state as a hash, without what is as it is at first; `hover` is nobody's link. */
export function toHash(state: Readonly<State>): string {
  const words = new URLSearchParams();
  for (const part of ["task", "node", "moment", "from_ns", "until_ns"] as const) {
    if (state[part] !== INITIAL[part]) words.set(part, String(Math.round(state[part])));
  }
  for (const part of ["panel", "theme"] as const) {
    if (state[part] !== INITIAL[part]) words.set(part, state[part]);
  }
  if (state.open !== null) words.set("open", written(state.open));
  if (state.colorBy !== INITIAL.colorBy) words.set("color", state.colorBy);
  if (!state.critical) words.set("critical", "0");
  for (const [name, text] of Object.entries(state.filters)) {
    if (text) words.set(`filter.${name}`, text);
  }
  return words.size ? `#${words}` : "";
}

/** What a hash says; nothing of what it says wrongly. */
export function fromHash(hash: string): Partial<State> {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const found: Partial<State> = {};
  for (const part of ["task", "node", "moment", "from_ns", "until_ns"] as const) {
    const text = words.get(part);
    if (text !== null && /^-?\d{1,15}$/.test(text)) found[part] = Number(text);
  }
  const theme = words.get("theme");
  if (theme === "light" || theme === "dark" || theme === "auto") found.theme = theme;
  const panel = words.get("panel");
  if (panel !== null && /^[a-z]{1,20}$/.test(panel)) found.panel = panel;
  const open = words.get("open");
  if (open !== null) found.open = read(open);
  const color = words.get("color");
  if (color !== null && isColoring(color)) found.colorBy = color;
  if (words.get("critical") === "0") found.critical = false;
  const filters = { ...INITIAL.filters };
  for (const name of Object.keys(filters) as (keyof Filters)[]) {
    filters[name] = (words.get(`filter.${name}`) ?? "").slice(0, 300);
  }
  if (!same(filters, INITIAL.filters)) found.filters = filters;
  return found;
}

function same(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
