/* The part of the time that timeline, queues and memory show together. */

import type { Page } from "./data.ts";
import type { Store } from "./store.ts";
import { around, panned, showing, type Viewport, whole, zoomed } from "./viewport.ts";

/** Of pictures narrower than this the names stand above what they name. */
const NARROW = 560;

/** How wide the pictures are that are saved or printed. */
export const PAPER_WIDTH = 1000;

/** How wide the names beside a picture are. That of all is the same, so that what happens
 * together lies below each other. */
export function gutterOf(width: number): number {
  return width < NARROW ? 0 : Math.min(168, Math.round(width * 0.2));
}

/** What is seen, on a picture of this width. */
export function viewOf(page: Page, store: Store, width: number): Viewport {
  const { from_ns: from, until_ns: until } = store.get();
  const all = whole(page.header.duration_ns, width);
  if (!(from >= 0 && until > from && until <= all.duration)) return all;
  return { ...all, from, until };
}

export function show(store: Store, { from, until, duration }: Viewport): void {
  const isAll = from <= 0 && until >= duration;
  store.set(isAll ? { from_ns: 0, until_ns: 0 } : { from_ns: from, until_ns: until });
}

/** Move so that a moment is seen, if it is not. */
export function reach(page: Page, store: Store, time: number): void {
  show(store, showing(viewOf(page, store, 1), time));
}

export function lookAt(page: Page, store: Store, from: number, until: number): void {
  show(store, around(viewOf(page, store, 1), from, until));
}

/** What a key asks of the time; whether it was one of these.
 *
 * Arrows, and the left hand's keys as in games: W and S look closer and farther, A and D
 * go back and on. */
export function timeKey(event: KeyboardEvent, page: Page, store: Store): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const view = viewOf(page, store, 1);
  const step = event.shiftKey ? 0.5 : 0.12;
  switch (event.key.toLowerCase()) {
    case "arrowleft":
    case "a":
      show(store, panned(view, -step));
      return true;
    case "arrowright":
    case "d":
      show(store, panned(view, step));
      return true;
    case "w":
    case "+":
    case "=":
      show(store, zoomed(view, 1.4, middle(page, store)));
      return true;
    case "s":
    case "-":
      show(store, zoomed(view, 1 / 1.4, middle(page, store)));
      return true;
    case "0":
      store.set({ from_ns: 0, until_ns: 0 });
      return true;
    default:
      return false;
  }
}

/** About which part of the picture keys zoom: the moment that is looked at, if seen. */
function middle(page: Page, store: Store): number {
  const view = viewOf(page, store, 1);
  const time = page.events.at_ns[store.get().moment] ?? -1;
  const part = (time - view.from) / (view.until - view.from);
  return part >= 0 && part <= 1 ? part : 0.5;
}
