/* The selected node: what it is, why it ran when it did, and all that happened to it. */

import { rowsOf } from "./chains.ts";
import { type Page, passName } from "./data.ts";
import { button, el } from "./elements.ts";
import { explained, ofTask, type Sentence, storiesOf } from "./explanation.ts";
import { calledIn, numberingOf } from "./numbering.ts";
import type { Store } from "./store.ts";
import { count, duration, integer } from "./words.ts";

/** So many events of a node are told, and so many neighbours. */
const MAX_EVENTS = 200;
const MAX_NEIGHBOURS = 12;

const FACTS = [
  ["parameter", "parameter"],
  ["module", "module"],
  ["made at", "location"],
  ["shape", "shape"],
  ["device", "device"],
] as const;

export function mountStory(element: HTMLElement, page: Page, store: Store): void {
  const stories = storiesOf(page);
  const { nodes, events, edges, runs } = page;
  const inside = el("div", { class: "story", "aria-live": "polite" });
  element.append(inside);
  let told = "";

  function tell(): void {
    const { node, task } = store.get();
    const next = `${node} ${task}`;
    if (next === told) return markMoment();
    told = next;
    if (node < 0 || node >= nodes.length) {
      inside.replaceChildren(
        el(
          "p",
          { class: "hint" },
          "Select a node, in any picture or by searching for it: here stands what it " +
            "did, and why it ran when it did.",
        ),
      );
      return;
    }
    inside.replaceChildren(...head(node, task), ...story(node, task));
    element.scrollTop = 0;
    markMoment();
  }

  function head(node: number, task: number): HTMLElement[] {
    const run = ofTask(rowsOf(stories.runs, node), runs.task, task)[0];
    const facts = el("dl", { class: "facts" });
    const add = (name: string, value: string) => {
      if (value) facts.append(el("dt", {}, name), el("dd", {}, value));
    };
    const number = numberingOf(page).of(node, task);
    add("in pictures", number < 0 ? "" : `number ${number}`);
    for (const [name, of] of FACTS) {
      const value = page.text(nodes[of][node]);
      add(name, of === "location" ? placeOf(value) : value);
    }
    const sequence = nodes.sequence_nr[node];
    add(
      "made as",
      sequence < 0 ? "an AccumulateGrad, which runs as soon as it can" : `number ${integer(sequence)} of its thread`,
    );
    const path = nodes.topological_nr[node];
    if (path > 0) add("longest path", `${count(path, "node")} to a leaf`);
    if (run !== undefined) {
      add("began", `${duration(runs.start_ns[run] - page.header.passes[task].begin_ns)} after its pass`);
      if (runs.waited_ns[run] >= 0) add("was queued", duration(runs.waited_ns[run]));
    }
    const where = task in page.header.passes ? passName(page.header, task) : "pass ?";
    return [
      el("h3", {}, `${page.text(nodes.name[node])}`, el("small", {}, `node ${nodes.id[node]} of ${where}`)),
      facts,
    ];
  }

  function story(node: number, task: number): HTMLElement[] {
    const said = explained(page, stories, task, node).map((one) => el("p", sentenceLook(one), ...words(one)));
    return [
      el("div", { class: "explanation" }, ...said),
      ...neighbours("Gets gradients from", "consumer", "producer", node),
      ...neighbours("Hands gradients to", "producer", "consumer", node),
      ...happened(node, task),
    ];
  }

  function words(sentence: Sentence): (string | HTMLElement)[] {
    return sentence.map((part) =>
      typeof part === "string" ? part : "node" in part ? link(part.node) : passLink(part.pass),
    );
  }

  /** Leads to the node with which a pass began. */
  function passLink(pass: number): HTMLElement {
    const first = runs.task.indexOf(pass);
    const select = () => store.set({ task: pass, node: first < 0 ? -1 : runs.node[first] });
    const label = String(page.header.passes[pass].task);
    return button(label, select, { class: "link", title: `To pass ${label}` });
  }

  function link(node: number): HTMLElement {
    // By the number that it has in the pictures beside; that of the trace is its title.
    const label = calledIn(page, node, store.get().task);
    const made = button(label, () => store.set({ node }), {
      class: "link",
      title: `node ${nodes.id[node]}`,
    });
    made.addEventListener("pointerenter", () => store.set({ hover: node }));
    made.addEventListener("pointerleave", () => store.set({ hover: -1 }));
    return made;
  }

  function neighbours(
    title: string,
    here: "producer" | "consumer",
    there: "producer" | "consumer",
    node: number,
  ): HTMLElement[] {
    const found = new Set<number>();
    for (let row = 0; row < edges.length; row++) {
      if (edges[here][row] === node) found.add(edges[there][row]);
    }
    if (!found.size) return [];
    const some = [...found].slice(0, MAX_NEIGHBOURS);
    const rest = found.size - some.length;
    return [
      el("h4", {}, title),
      el(
        "p",
        { class: "neighbours" },
        ...some.flatMap((one) => [link(one), " "]),
        ...(rest ? [`and ${count(rest, "more node")}`] : []),
      ),
    ];
  }

  /** Each event of the node; a click shows the state right after it. */
  function happened(node: number, task: number): HTMLElement[] {
    const rows = ofTask(rowsOf(stories.events, node), events.task, task);
    const begin = page.header.passes[task]?.begin_ns ?? 0;
    const names = new Map(page.header.threads.map(({ number, name }) => [number, name]));
    const items = rows.slice(0, MAX_EVENTS).map((row) =>
      el(
        "li",
        { "data-moment": String(row) },
        el("small", {}, duration(events.at_ns[row] - begin)),
        button(page.header.kinds[events.kind[row]].replaceAll("_", " "), () => store.set({ moment: row }), { class: "link", title: "Show the moment right after this" }),
        el("small", {}, names.get(events.thread[row]) ?? ""),
      ),
    );
    if (!items.length) return [];
    const rest = rows.length - items.length;
    return [
      el("h4", {}, "Its story"),
      el("ol", { class: "happened" }, ...items),
      ...(rest ? [el("p", { class: "hint" }, `and ${count(rest, "more event")}`)] : []),
    ];
  }

  /** Which of its events is the last that has happened. */
  function markMoment(): void {
    const { moment } = store.get();
    let last: Element | null = null;
    for (const item of inside.querySelectorAll("[data-moment]")) {
      item.removeAttribute("aria-current");
      if (moment >= 0 && Number(item.getAttribute("data-moment")) <= moment) last = item;
    }
    last?.setAttribute("aria-current", "step");
  }

  store.subscribe(tell, "node", "task", "moment");
  tell();
}

/** The file and line, without the folders. */
function placeOf(location: string): string {
  return location.replaceAll("\\", "/").split("/").at(-1) ?? "";
}

function sentenceLook([first]: Sentence): Record<string, string> {
  const isBad = typeof first === "string" && /^It (failed|did not)/.test(first);
  return isBad ? { class: "alarm" } : {};
}
