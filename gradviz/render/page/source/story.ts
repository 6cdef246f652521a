/* The selected node: what it is, why it ran when it did, and all that happened to it. */

import { rowsOf } from "./chains.ts";
import { type Page, passName, placeOf } from "./data.ts";
import { button, el } from "./elements.ts";
import { explained, ofLine, ofTask, storiesOf } from "./explanation.ts";
import { stageInWords } from "./moment_words.ts";
import { calledIn, numberingOf } from "./numbering.ts";
import { progressOf } from "./progress.ts";
import type { Store } from "./store.ts";
import type { Sentence } from "./templates.ts";
import { count, duration, integer } from "./words.ts";

/** So many events of a node are told, and so many neighbors. */
const MAX_EVENTS = 200;
const MAX_NEIGHBORS = 12;

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
  // While a replay plays it changes too often to be read out.
  const now = el("p", { class: "hint", "aria-live": "off" });
  let progress = { task: -1, to: progressOf(page, -1) };
  let told = "";

  function tell(): void {
    const { node, task } = store.get();
    const next = `${node} ${task}`;
    if (next === told) {
      markMoment();
      return;
    }
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
    inside.replaceChildren(...head(node, task), now, ...story(node, task));
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
      add(name, of === "location" ? lineWords(value, task, node) : value);
    }
    const sequence = nodes.sequence_nr[node];
    add(
      "made as",
      sequence < 0
        ? "an AccumulateGrad, which runs as soon as it can"
        : `number ${integer(sequence)} of its thread`,
    );
    const path = nodes.topological_nr[node];
    if (path > 0) add("longest path", `${count(path, "node")} to a leaf`);
    if (run !== undefined) {
      add(
        "began",
        `${duration(runs.start_ns[run] - page.header.passes[task].pass_begin_ns)} after its pass`,
      );
      if (runs.waited_ns[run] >= 0) add("was queued", duration(runs.waited_ns[run]));
    }
    const where = task in page.header.passes ? passName(page.header, task) : "pass ?";
    return [
      el(
        "h3",
        {},
        `${page.text(nodes.name[node])}`,
        el("small", {}, `id ${nodes.id[node]} of ${where}`),
      ),
      facts,
    ];
  }

  function lineWords(location: string, task: number, node: number): string {
    const { line_number, line_count } = ofLine(page, task, node);
    const which = line_count ? ` (${line_number} of ${line_count} there)` : "";
    return location && placeOf(location) + which;
  }

  function story(node: number, task: number): HTMLElement[] {
    const said = explained(page, stories, task, node).map(({ said, isAlarm }) =>
      el("p", isAlarm ? { class: "alarm" } : {}, ...words(said)),
    );
    return [
      el("div", { class: "explanation" }, ...said),
      ...neighbors("Gets gradients from", "consumer", "producer", node),
      ...neighbors("Hands gradients to", "producer", "consumer", node),
      ...happened(node, task),
    ];
  }

  function words(sentence: Sentence): (string | HTMLElement)[] {
    return sentence.map((part) =>
      typeof part === "string"
        ? part
        : "node" in part
          ? link(part.node, part.task)
          : passLink(part.pass),
    );
  }

  /** Leads to the node with which a pass began. */
  function passLink(pass: number): HTMLElement {
    const first = runs.task.indexOf(pass);
    const select = () =>
      store.set({ task: pass, node: first < 0 ? -1 : runs.node[first] });
    const label = String(page.header.passes[pass].whole);
    return button(label, select, { class: "link", title: `To pass ${label}` });
  }

  function link(node: number, task: number = store.get().task): HTMLElement {
    // By the number that it has in the pictures beside; that of the trace is its title.
    const label = calledIn(page, node, task);
    const made = button(label, () => store.set({ node, task }), {
      class: "link",
      title: `id ${nodes.id[node]}`,
    });
    made.addEventListener("pointerenter", () => store.set({ hover: node }));
    made.addEventListener("pointerleave", () => store.set({ hover: -1 }));
    return made;
  }

  function neighbors(
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
    const some = [...found].slice(0, MAX_NEIGHBORS);
    const rest = found.size - some.length;
    return [
      el("h4", {}, title),
      el(
        "p",
        { class: "neighbors" },
        ...some.flatMap((one) => [link(one), " "]),
        ...(rest ? [`and ${count(rest, "more node")}`] : []),
      ),
    ];
  }

  /** Each event of the node; a click shows the state right after it. */
  function happened(node: number, task: number): HTMLElement[] {
    const rows = ofTask(rowsOf(stories.events, node), events.task, task);
    const begin = page.header.passes[task]?.pass_begin_ns ?? 0;
    const names = new Map(
      page.header.threads.map(({ number, name }) => [number, name]),
    );
    const items = rows.slice(0, MAX_EVENTS).map((row) =>
      el(
        "li",
        { "data-moment": String(row) },
        el("small", {}, duration(events.at_ns[row] - begin)),
        button(
          page.header.kinds[events.kind[row]].replaceAll("_", " "),
          () => store.set({ moment: row }),
          { class: "link", title: "Show the moment right after this" },
        ),
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

  /** What has become of it by then, and which of its events is the last until then. */
  function markMoment(): void {
    const { moment, node, task } = store.get();
    now.hidden = moment < 0 || node < 0 || node >= nodes.length;
    if (!now.hidden) {
      if (progress.task !== task) progress = { task, to: progressOf(page, task) };
      const { stage, remaining } = progress.to(moment);
      const said = stageInWords(page.header, stage[node], remaining[node]);
      now.textContent = `At this moment: ${said}.`;
    }
    let last: Element | null = null;
    for (const item of inside.querySelectorAll("[data-moment]")) {
      item.removeAttribute("aria-current");
      if (moment >= 0 && Number(item.getAttribute("data-moment")) <= moment)
        last = item;
    }
    last?.setAttribute("aria-current", "step");
  }

  store.subscribe(tell, "node", "task", "moment");
  tell();
}
