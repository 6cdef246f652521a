/* The line of the moment that is looked at: an element of its own over a picture.

Drawn into the picture it would mean to draw all of that anew at each step of a replay. */

import type { Page } from "./data.ts";
import { el } from "./elements.ts";
import type { Store } from "./store.ts";
import { gutterOf, viewOf } from "./time_axis.ts";
import { pixelOf } from "./viewport.ts";

/** Puts the line over a picture whose axis of time begins at its gutter. */
export function mountCursor(picture: HTMLElement, page: Page, store: Store): void {
  const line = el("div", { class: "cursor", "aria-hidden": "true" });
  picture.append(line);
  let wide = 0;
  function move(): void {
    const at = page.events.at_ns[store.get().moment];
    const left = gutterOf(wide);
    const view = viewOf(page, store, wide - left);
    const x = at === undefined ? -1 : Math.round(pixelOf(view, at));
    line.hidden = x < 0 || x > view.width;
    if (!line.hidden) line.style.transform = `translateX(${left + x}px)`;
  }
  new ResizeObserver(() => {
    wide = picture.clientWidth;
    move();
  }).observe(picture);
  store.subscribe(move, "moment", "from_ns", "until_ns");
}
