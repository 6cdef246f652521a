/* How the page is laid out: a head, panels in resizable columns, a bar that replays.

Where there is no room for columns one panel is seen at a time, and a row of tabs says
which. The same elements serve both; page.css decides. */

import type { Header, Page } from "./data.ts";
import { button, el } from "./elements.ts";
import { failures } from "./failures.ts";
import { splitter } from "./splitter.ts";
import type { Store } from "./store.ts";
import { count, duration, nodesRan, shorten } from "./words.ts";

/** Where a part of the page goes, by what it is. */
export interface Places {
  readonly search: HTMLElement;
  readonly actions: HTMLElement;
  readonly timeline: HTMLElement;
  readonly queues: HTMLElement;
  readonly memory: HTMLElement;
  readonly graph: HTMLElement;
  readonly now: HTMLElement;
  readonly story: HTMLElement;
  readonly replay: HTMLElement;
}

const PANELS = {
  timeline: "Timeline",
  queues: "Queues",
  memory: "Memory",
  graph: "Graph",
  now: "At this moment",
  story: "Selected node",
} as const;

type PanelName = keyof typeof PANELS;

export function layOut(root: HTMLElement, page: Page, store: Store): Places {
  const search = el("div", { id: "search" });
  const actions = el("div", { id: "actions" });
  const replay = el("footer", { id: "replay", "aria-label": "Replay" });
  const made = Object.fromEntries(
    (Object.keys(PANELS) as PanelName[]).map((name) => [
      name,
      panel(name, PANELS[name]),
    ]),
  ) as Record<PanelName, Panel>;
  const { timeline, queues, memory, graph, now, story } = made;
  root.append(
    head(page, search, actions),
    tabs(store, made),
    el(
      "div",
      { id: "columns" },
      el(
        "div",
        { class: "column times" },
        timeline.whole,
        splitter("Resize timeline and queues"),
        queues.whole,
        splitter("Resize queues and memory"),
        memory.whole,
      ),
      splitter("Resize columns"),
      el(
        "div",
        { class: "column things" },
        graph.whole,
        splitter("Resize graph and details"),
        el(
          "div",
          { class: "details" },
          now.whole,
          splitter("Resize moment and node"),
          story.whole,
        ),
      ),
    ),
    replay,
  );
  return {
    search,
    actions,
    replay,
    timeline: timeline.inside,
    queues: queues.inside,
    memory: memory.inside,
    graph: graph.inside,
    now: now.inside,
    story: story.inside,
  };
}

interface Panel {
  readonly whole: HTMLElement;
  readonly inside: HTMLElement;
}

function panel(name: string, title: string): Panel {
  const inside = el("div", { class: "inside", id: name });
  const heading = el("h2", { id: `${name}-title` }, title);
  const whole = el(
    "section",
    { class: "panel", "data-panel": name, "aria-labelledby": heading.id },
    heading,
    inside,
  );
  return { whole, inside };
}

/** The passes that some parts are of. */
function numbersOf(passes: readonly { whole: number }[]): number[] {
  return [...new Set(passes.map((one) => one.whole))];
}

/** How long the pass took, and how much time is shown if that is another. */
function lasting({ passes, duration_ns }: Header): string {
  const end_ns = numbersOf(passes).length === 1 ? passes[0].pass_end_ns : null;
  if (end_ns == null || end_ns === duration_ns) return duration(duration_ns);
  return `${duration(end_ns)} (shown: ${duration(duration_ns)})`;
}

function head(
  { header, runs }: Page,
  search: HTMLElement,
  actions: HTMLElement,
): HTMLElement {
  const program = header.argv.join(" ") || header.file || "a recording";
  const passes = numbersOf(header.passes);
  const about = [
    passes.length === 1
      ? `backward pass ${passes[0]}`
      : count(passes.length, "backward pass"),
    lasting(header),
    nodesRan(runs.length, new Set(runs.node).size),
    count(header.num_events, "event"),
  ];
  return el(
    "header",
    { id: "head" },
    el(
      "div",
      { class: "title" },
      el("h1", { title: program }, shorten(program, 200)),
      el("p", {}, about.join(" · ")),
    ),
    search,
    actions,
    ...failures(header).map((one) => el("p", { class: "failure" }, one)),
    ...header.warnings.map((one) => el("p", { class: "warning" }, one)),
  );
}

/** One tab a panel. Arrow keys go from one to the next, as everywhere. */
function tabs(store: Store, panels: Record<PanelName, Panel>): HTMLElement {
  const names = Object.keys(panels) as PanelName[];
  const made = names.map((name) =>
    button(PANELS[name], () => store.set({ panel: name }), {
      role: "tab",
      "aria-controls": name,
    }),
  );
  const bar = el(
    "div",
    { id: "tabs", role: "tablist", "aria-label": "Panels" },
    ...made,
  );
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined) return;
    const next =
      (made.indexOf(event.target as HTMLButtonElement) + step + made.length) %
      made.length;
    made[next].focus();
    made[next].click();
    event.preventDefault();
    event.stopPropagation();
  });
  function choose(): void {
    const { panel } = store.get();
    const chosen = names.includes(panel as PanelName) ? panel : names[0];
    names.forEach((name, at) => {
      const isChosen = name === chosen;
      panels[name].whole.classList.toggle("chosen", isChosen);
      made[at].setAttribute("aria-selected", String(isChosen));
      made[at].tabIndex = isChosen ? 0 : -1;
      if (isChosen) made[at].scrollIntoView({ inline: "nearest", block: "nearest" });
    });
  }
  store.subscribe(choose, "panel");
  choose();
  requestAnimationFrame(choose); // now that it has a place, the tab can be scrolled to
  return bar;
}
