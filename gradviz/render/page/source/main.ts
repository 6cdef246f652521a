/* The page: reads the data, makes the store, and puts the panels in their places. */

import "./page.css";
import { readPage, type Page } from "./data.ts";
import { el } from "./elements.ts";
import { mountGraph } from "./graph.ts";
import { mountSearch } from "./search.ts";
import { createStore, fromHash, INITIAL, toHash, type Store } from "./store.ts";
import { mountStory } from "./story.ts";
import { duration } from "./words.ts";

/** A panel: fills its element, and shows there what of the page the store says. */
export type Mount = (element: HTMLElement, page: Page, store: Store) => void;

const PANELS: [id: string, label: string, mount: Mount][] = [
  ["search", "Search", mountSearch],
  ["graph", "Graph", mountGraph],
  ["story", "Selected node", mountStory],
];

function start(page: Page) {
  const root = document.getElementById("page")!;
  const { header } = page;
  root.append(
    el(
      "header",
      { id: "head" },
      el("h1", {}, header.argv.join(" ") || header.file || "a recording"),
      el("span", {}, duration(header.duration_ns)),
      ...header.warnings.map((one) => el("p", { class: "warning" }, one)),
    ),
  );
  const store = createStore({ ...INITIAL, ...fromHash(location.hash) });
  for (const [id, label, mount] of PANELS) {
    const element = el("section", { id, "aria-label": label });
    root.append(element);
    mount(element, page, store);
  }
  store.subscribe((state) => {
    history.replaceState(null, "", toHash(state) || location.pathname + location.search);
  });
  window.addEventListener("hashchange", () => store.set(fromHash(location.hash)));
}

readPage(document.getElementById("data")!.textContent ?? "").then(start, (error) => {
  document.getElementById("page")!.append(el("p", { role: "alert" }, String(error)));
});
