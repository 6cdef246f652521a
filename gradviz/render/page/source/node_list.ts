/* A list of nodes that changes as a replay goes on: its rows stay, their words change. */

import { button, el } from "./elements.ts";
import type { Store } from "./store.ts";
import { count } from "./words.ts";

/** So many rows of each list are shown; of more it is said how many there are. */
const MAX_ROWS = 60;

export interface NodeRow {
  /** The place of the node, -1 of a task that has none. */
  readonly node: number;
  readonly task: number;
  readonly label: string;
  readonly about: string;
  /** For how many gradients it waits, if it does. */
  readonly waits?: number;
}

export interface NodeList {
  readonly element: HTMLElement;
  /** Says something of all, and a row of each of the first. */
  tell<One>(about: string, all: readonly One[], rowOf: (one: One) => NodeRow): void;
}

export function nodeList(store: Store, title: string): NodeList {
  const said = el("small");
  const list = el("ol");
  const more = el("p", { class: "hint" });
  const head = title === "" ? said : el("h4", {}, title, said);
  const rows: ReturnType<typeof row>[] = [];
  return {
    element: el("div", {}, head, list, more),
    tell(about, all, rowOf) {
      put(said, about);
      put(
        more,
        all.length > MAX_ROWS ? `and ${count(all.length - MAX_ROWS, "more node")}` : "",
      );
      more.hidden = all.length <= MAX_ROWS;
      const shown = Math.min(all.length, MAX_ROWS);
      for (let at = rows.length; at < shown; at++) {
        rows.push(row(store));
        list.append(rows[at].element);
      }
      const gone = rows.splice(shown);
      // Whoever steps with the focus on a node stays in the list.
      if (gone.some((one) => one.hasFocus())) rows.at(-1)?.focus();
      for (const { element } of gone) element.remove();
      for (const [at, one] of rows.entries()) one.tell(rowOf(all[at]));
    },
  };
}

function row(store: Store) {
  let [node, task] = [-1, 0];
  const waits = el("b", { class: "countdown" });
  const name = button("", () => store.set({ node, task }), { class: "node" });
  const about = el("small");
  let hasFocus = false;
  name.addEventListener("focus", () => (hasFocus = true));
  name.addEventListener("blur", () => (hasFocus = false));
  return {
    element: el("li", {}, waits, name, about),
    focus: () => name.focus(),
    hasFocus: () => hasFocus,
    tell(one: NodeRow): void {
      ({ node, task } = one);
      put(waits, String(one.waits ?? ""));
      waits.hidden = one.waits === undefined;
      name.disabled = node < 0;
      put(name, one.label);
      put(about, one.about);
    },
  };
}

/** A text, where it is not there already: what stays is not laid out anew. */
function put(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
