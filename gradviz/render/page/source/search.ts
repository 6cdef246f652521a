/* Search and filters: what is written marks nodes everywhere, Enter selects one. */

import type { Page } from "./data.ts";
import { el } from "./elements.ts";
import { found, KEYS } from "./filters.ts";
import { numberingOf } from "./numbering.ts";
import { type Filters, INITIAL, type Store } from "./store.ts";
import { count, shorten } from "./words.ts";

const MOST = 40;

export function mountSearch(
  element: HTMLElement,
  page: Page,
  store: Store,
  signal: AbortSignal,
): void {
  const { nodes, header } = page;
  const input = el("input", {
    type: "search",
    placeholder: "Search nodes ( / )",
    "aria-label": "Search nodes: name, module, parameter, line or number",
    title: `Name, module, parameter, line or number; or only one of them: ${KEYS.join("=, ")}=`,
    "aria-keyshortcuts": "/",
    role: "combobox",
    "aria-expanded": "false",
    "aria-controls": "found",
    "aria-autocomplete": "list",
    autocomplete: "off",
    spellcheck: "false",
  });
  const list = el("ul", { id: "found", role: "listbox", "aria-label": "Nodes found" });
  const told = el("span", { class: "visually-hidden", role: "status" });
  const devices = choice("device", "every device", [
    ...new Set(
      [...new Set(nodes.device)].map((place) => page.text(place)).filter(Boolean),
    ),
  ]);
  const statuses = choice(
    "status",
    "every outcome",
    [...new Set(page.runs.status)].map((place) => header.statuses[place]),
  );
  element.append(input, list, told);
  for (const { select, texts } of [devices, statuses]) {
    if (texts.length > 1) element.append(select);
  }
  list.hidden = true;
  let results: number[] = [];
  let active = -1;

  function choice(key: "device" | "status", all: string, texts: string[]) {
    const select = el(
      "select",
      { "aria-label": `Only nodes of one ${key}` },
      el("option", { value: "" }, all),
      ...texts.map((one) => el("option", { value: one }, shorten(one, 30))),
    );
    select.addEventListener("change", () => filter({ [key]: select.value }));
    return { select, texts };
  }

  function filter(change: Partial<Filters>): void {
    store.set({ filters: { ...store.get().filters, ...change } });
  }

  function look(): void {
    results = found(page, input.value, MOST);
    active = results.length ? 0 : -1;
    show(input.value.trim() !== "");
  }

  function show(isOpen: boolean): void {
    list.hidden = !isOpen;
    input.setAttribute("aria-expanded", String(isOpen));
    const rows = results.map((node, at) => {
      const where = page.text(nodes.parameter[node]) || page.text(nodes.module[node]);
      const number = numberingOf(page).of(node, passOf(node));
      const row = el(
        "li",
        { role: "option", id: `found-${at}`, "aria-selected": String(at === active) },
        el("span", {}, shorten(page.text(nodes.name[node]), 60)),
        el("small", {}, shorten(where, 60)),
        el("small", {}, number < 0 ? "did not run" : `number ${number}`),
      );
      row.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        select(node);
      });
      return row;
    });
    const nothing = el("li", { class: "hint" }, "nothing is called so");
    list.replaceChildren(...(rows.length ? rows : [nothing]));
    if (active >= 0) input.setAttribute("aria-activedescendant", `found-${active}`);
    else input.removeAttribute("aria-activedescendant");
    if (isOpen) rows[active]?.scrollIntoView({ block: "nearest" });
    told.textContent = isOpen
      ? results.length < MOST
        ? `${count(results.length, "node")} found`
        : `the first ${MOST} nodes`
      : "";
  }

  /** The pass that is shown if the node ran in it, else the first in which it did. */
  function passOf(node: number): number {
    const { task } = store.get();
    if (numberingOf(page).of(node, task) >= 0) return task;
    const run = page.runs.node.indexOf(node);
    return run < 0 ? task : page.runs.task[run];
  }

  function select(node: number): void {
    store.set({ node, task: passOf(node) });
    show(false);
  }

  input.addEventListener("input", () => {
    look();
    filter({ text: input.value.trim() });
  });
  input.addEventListener("focus", () => {
    if (input.value) look();
  });
  input.addEventListener("blur", () => show(false));
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (list.hidden) look();
      else {
        const step = event.key === "ArrowDown" ? 1 : -1;
        active = (active + step + results.length) % Math.max(results.length, 1);
        show(true);
      }
    } else if (event.key === "Enter" && active >= 0) select(results[active]);
    else if (event.key === "Escape") {
      input.value = "";
      filter({ text: "" });
      results = [];
      show(false);
      input.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  function listen(event: KeyboardEvent): void {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLInputElement && event.target.type !== "range")
      return;
    input.focus();
    input.select();
    event.preventDefault();
  }
  document.addEventListener("keydown", listen, { signal });
  store.subscribe(({ filters }) => {
    if (document.activeElement !== input) input.value = filters.text;
    devices.select.value = filters.device;
    statuses.select.value = filters.status;
  }, "filters");
  const { filters } = store.get();
  if (filters !== INITIAL.filters) {
    input.value = filters.text;
    devices.select.value = filters.device;
    statuses.select.value = filters.status;
  }
}
