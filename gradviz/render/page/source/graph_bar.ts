/* The controls above the graph, and the legend below them. */

import { callerOf } from "./calls.ts";
import { COLORINGS, type ColorBy, type Coloring } from "./colorings.ts";
import { colors } from "./colors.ts";
import { type Page, passName } from "./data.ts";
import { button, el } from "./elements.ts";
import { goesOn } from "./events.ts";
import { numberingOf } from "./numbering.ts";
import { type Level, levelsOf } from "./opening.ts";
import type { Parts } from "./parts.ts";
import type { Plan } from "./plan.ts";
import { stageKinds } from "./progress.ts";
import type { Store } from "./store.ts";
import { count, shorten } from "./words.ts";

export interface GraphBar {
  readonly elements: readonly HTMLElement[];
  /** Says what is shown. */
  tell(plan: Plan, coloring: Coloring, outcome: Uint8Array, task: number): void;
}

export interface Asked {
  readonly fit: () => void;
  readonly zoom: (factor: number) => void;
  /** Opens these boxes of the pass, and closes all others. */
  readonly open: (boxes: readonly number[]) => void;
}

const ZOOM = 1.3;

export function graphBar(
  page: Page,
  parts: Parts,
  store: Store,
  asked: Asked,
): GraphBar {
  const stages = stageKinds(page.header);
  const passes = el("select", { "aria-label": "Pass" });
  const levels = el("select", { "aria-label": "How much of the graph is open" });
  const colorings = el("select", { "aria-label": "What colors stand for" });
  const critical = el("input", { type: "checkbox" });
  const caller = button("", () => {}, { class: "link" });
  const omitted = el("span", { class: "faint" });
  const legend = el("ul", { class: "legend", "aria-label": "Legend of the graph" });
  let known: { task: number; levels: Level[] } = { task: -1, levels: [] };
  const bar = el(
    "div",
    { class: "graph-bar", role: "group", "aria-label": "Graph" },
    passes,
    caller,
    levels,
    button("⊟", () => asked.open([]), {
      "aria-label": "Collapse all",
      title: "Collapse all (C)",
    }),
    button("⊞", () => asked.open(known.levels.at(-1)?.open ?? []), {
      "aria-label": "Expand all",
      title: "Expand all (E)",
    }),
    button("Fit", asked.fit, { title: "See all of it (0)" }),
    button("+", () => asked.zoom(ZOOM), {
      "aria-label": "Closer",
      title: "Closer (+)",
    }),
    button("−", () => asked.zoom(1 / ZOOM), {
      "aria-label": "Farther",
      title: "Farther (−)",
    }),
    el("label", {}, "color", colorings),
    el("label", {}, critical, "critical path"),
    omitted,
  );
  passes.addEventListener("change", () =>
    store.set({ task: Number(passes.value), node: -1 }),
  );
  levels.addEventListener("change", () =>
    asked.open(known.levels[Number(levels.value)]?.open ?? []),
  );
  colorings.addEventListener("change", () =>
    store.set({ colorBy: colorings.value as ColorBy }),
  );
  critical.addEventListener("change", () => store.set({ critical: critical.checked }));
  fill(colorings, Object.entries(COLORINGS), store.get().colorBy);

  function tell(
    plan: Plan,
    coloring: Coloring,
    outcome: Uint8Array,
    task: number,
  ): void {
    const { colorBy } = store.get();
    if (known.task !== task) known = { task, levels: levelsOf(parts, task) };
    const tasks = [...parts.roots.keys()];
    passes.hidden = tasks.length < 2;
    fill(
      passes,
      tasks.map((one) => [String(one), passName(page.header, one)]),
      String(task),
    );
    tellCaller(task);
    tellLevels(plan);
    colorings.value = colorBy;
    critical.checked = store.get().critical;
    critical.disabled = page.header.critical_task !== task;
    const root = parts.roots.get(task) ?? -1;
    const left = root < 0 ? 0 : page.parts.omitted[root];
    omitted.textContent = left ? `${count(left, "node")} left out` : "";
    legend.replaceChildren(...entries(coloring, outcome, task));
  }

  function tellLevels(plan: Plan): void {
    const open = new Set(plan.opened);
    const at = known.levels.findIndex(
      (one) => one.open.length === open.size && one.open.every((box) => open.has(box)),
    );
    const options = known.levels.map((one, level): [string, string] => {
      const isLast = level === known.levels.length - 1;
      const what = isLast
        ? "all open"
        : level === 0
          ? "all closed"
          : `${count(level, "level")} open`;
      return [String(level), `${what} (${count(one.numBoxes, "box")})`];
    });
    if (at < 0)
      options.unshift(["", `as opened (${count(plan.closed.length, "box")})`]);
    fill(levels, options, at < 0 ? "" : String(at));
    levels.disabled = known.levels.length < 2;
  }

  /** Who called the pass: a click leads there. */
  function tellCaller(task: number): void {
    const found = callerOf(page, task);
    caller.hidden = !found;
    if (!found) return;
    const number = numberingOf(page).of(found.node, found.task);
    const name = shorten(page.text(page.nodes.name[found.node]), 30);
    caller.textContent = `↰ called by ${number} ${name}`;
    caller.title = `In ${passName(page.header, found.task)}`;
    caller.onclick = () => store.set({ node: found.node, task: found.task });
  }

  function entries(
    coloring: Coloring,
    outcome: Uint8Array,
    task: number,
  ): HTMLElement[] {
    const shade = colors();
    const swatch = (style: string, kind = "") => {
      const made = el("span", { class: `swatch ${kind}` });
      made.style.background = style;
      return made;
    };
    const found = coloring
      .legend(shade)
      .map(({ name, color }) => el("li", {}, swatch(color), shorten(name, 40)));
    if (coloring.scale) {
      const { low, high } = coloring.scale;
      const steps = `linear-gradient(90deg, ${shade.ramp.join(", ")})`;
      found.push(el("li", {}, low, swatch(steps, "ramp"), high));
    }
    const pass = page.header.passes[task];
    const mark = (kind: string, name: string) =>
      el("li", {}, el("span", { class: `swatch ${kind}` }), name);
    if (coloring.isUnknown) found.push(mark("hatched", "unknown, or a part of it"));
    if (outcome.includes(stages.failed)) found.push(mark("failed", "failed"));
    if (outcome.includes(stages.captured)) found.push(mark("captured", "captured"));
    if (hasIdle(task, outcome)) {
      const isOver = pass?.status === "completed" && !goesOn(page, task);
      found.push(mark("idle", isOver ? "not needed" : "did not run"));
    }
    if (store.get().critical && page.header.critical_task === task)
      found.push(mark("critical", "critical path"));
    return found;
  }

  /** Whether a node of the graph of a pass did not run. */
  function hasIdle(task: number, outcome: Uint8Array): boolean {
    const { members, boxes } = page;
    return members.node.some(
      (node, row) =>
        node >= 0 &&
        page.parts.task[boxes.part[members.box[row]]] === task &&
        !stages.hasRun[outcome[node]],
    );
  }

  return { elements: [bar, legend], tell };
}

function fill(
  select: HTMLSelectElement,
  options: readonly (readonly [value: string, text: string])[],
  chosen: string,
): void {
  const told = JSON.stringify(options);
  if (select.dataset.told !== told) {
    select.dataset.told = told;
    select.replaceChildren(
      ...options.map(([value, text]) => el("option", { value }, text)),
    );
  }
  select.value = chosen;
}
