/* The graph: where one is in it, what is marked, and what mouse, fingers and keys do. */

import {
  type Camera,
  dragged,
  fitted,
  type Frame,
  revealing,
  seen,
  zoomedAt,
} from "./camera.ts";
import { rowsOf } from "./chains.ts";
import { type Colours, colours } from "./colours.ts";
import type { Page } from "./data.ts";
import { frameOf, hitAt, planOf, type Plan, whole } from "./drawing.ts";
import { button, canvas, el } from "./elements.ts";
import { meantBy } from "./filters.ts";
import { listen } from "./gestures.ts";
import { drawGraph } from "./graph_picture.ts";
import { operationsOf } from "./operations.ts";
import { progressOf } from "./progress.ts";
import type { Store } from "./store.ts";
import { hideTooltip, showTooltip } from "./tooltip.ts";
import { count, duration } from "./words.ts";

/** More boxes are not shown first where there is a coarser drawing. */
const MANY = 150;
const KEY_STEP = 60;
const KEY_ZOOM = 1.3;

/** Gives where one looks at it from, once the reader has chosen that. */
export function mountGraph(
  element: HTMLElement,
  page: Page,
  store: Store,
  before?: Camera,
): () => Camera | undefined {
  if (!page.drawings.length) {
    element.append(el("p", { class: "hint" }, "No node of these passes has run."));
    return () => before;
  }
  const { colour } = operationsOf(page);
  const plans = new Map<number, Plan>();
  let shown = -1;
  let camera: Camera = { x: 0, y: 0, scale: 1 };
  let isFitted = true;
  let meant = meantBy(page, store.get().filters);
  let progress = progressOf(page, store.get().task);
  let progressTask = store.get().task;
  let marks = { boxes: new Set<number>(), ways: new Set<number>() };

  const picture = canvas("Graph of the backward pass", draw);
  const map = canvas("The whole graph", drawMap);
  map.element.tabIndex = -1;
  const levels = el("select", { "aria-label": "How much of the graph is drawn" });
  const passes = el("select", { "aria-label": "Pass" });
  const omitted = el("span", { class: "faint" });
  const critical = el("input", { type: "checkbox" });
  const bar = el(
    "div",
    { class: "graph-bar", role: "group", "aria-label": "Graph" },
    passes,
    levels,
    button("Fit", fit, { title: "See all of it (0)" }),
    button("+", () => zoom(KEY_ZOOM), { "aria-label": "Closer", title: "Closer (+)" }),
    button("−", () => zoom(1 / KEY_ZOOM), {
      "aria-label": "Farther",
      title: "Farther (−)",
    }),
    el("label", {}, critical, "critical path"),
    omitted,
  );
  const minimap = el("div", { class: "minimap", "aria-hidden": "true" }, map.element);
  element.append(bar, el("div", { class: "picture" }, picture.element, minimap));

  function plan(): Plan {
    const found = plans.get(shown) ?? planOf(page, page.drawings[shown]);
    plans.set(shown, found);
    return found;
  }

  /** The drawing of a pass at a depth, or the one that suits a first look. */
  function drawingOf(task: number, depth: number): number {
    const own = page.drawings
      .map((drawing, place) => ({ drawing, place }))
      .filter(({ drawing }) => drawing.header.task === task);
    if (!own.length) return -1;
    const wanted = own.find(({ drawing }) => (drawing.header.depth ?? 99) === depth);
    const few = own.filter(({ drawing }) => drawing.boxes.length <= MANY);
    return (wanted ?? few.at(-1) ?? own[0]).place;
  }

  function choose(): void {
    const state = store.get();
    const next = drawingOf(state.task, state.depth);
    if (next < 0 || next === shown) return;
    shown = next;
    fillSelects();
    mark();
    if (state.node >= 0) {
      fit();
      reveal();
    } else fit();
  }

  function fillSelects(): void {
    const { task } = page.drawings[shown].header;
    const tasks = [...new Set(page.drawings.map((one) => one.header.task))];
    passes.hidden = tasks.length < 2;
    passes.replaceChildren(
      ...tasks.map((one) =>
        el(
          "option",
          { value: String(one), ...(one === task ? { selected: "" } : {}) },
          `pass ${page.header.passes[one].task}`,
        ),
      ),
    );
    levels.replaceChildren(
      ...page.drawings.flatMap(({ header, boxes }, place) => {
        if (header.task !== task) return [];
        const what =
          header.depth === null
            ? "every node"
            : header.depth === 0
              ? "whole models"
              : `parts to depth ${header.depth}`;
        const attributes = {
          value: String(header.depth ?? 99),
          ...(place === shown ? { selected: "" } : {}),
        };
        return [el("option", attributes, `${what} (${count(boxes.length, "box")})`)];
      }),
    );
    const left = page.drawings[shown].header.omitted;
    omitted.textContent = left ? `${count(left, "node")} left out` : "";
  }

  function fit(): void {
    const { clientWidth: wide, clientHeight: high } = picture.element;
    camera = fitted(whole(plan()), wide || 1, high || 1);
    // A long graph would be a hair: better its begin, legible.
    if (camera.scale < 0.25 && plan().height > 3 * plan().width) {
      const { left, right } = whole(plan());
      const top = { left, right, top: 0, bottom: 1 };
      camera = { ...fitted(top, wide || 1, high || 1), y: -12 };
    }
    isFitted = true;
    again();
  }

  function look(next: Camera): void {
    camera = next;
    isFitted = false;
    again();
  }

  function zoom(factor: number): void {
    const { clientWidth, clientHeight } = picture.element;
    look(zoomedAt(camera, factor, clientWidth / 2, clientHeight / 2));
  }

  function reveal(): void {
    const { node } = store.get();
    const box = node < 0 ? -1 : plan().boxOf[node];
    const { clientWidth: wide, clientHeight: high } = picture.element;
    if (box < 0 || !wide) return;
    const frame = frameOf(plan(), box);
    const readable = Math.max(camera.scale, 0.5);
    if (camera.scale < 0.3) {
      camera = {
        scale: readable,
        x: (frame.left + frame.right - wide / readable) / 2,
        y: (frame.top + frame.bottom - high / readable) / 2,
      };
    }
    look(revealing(camera, frame, wide, high));
  }

  function again(): void {
    picture.again();
    map.again();
  }

  /** The boxes and ways of the critical path. */
  function mark(): void {
    marks = { boxes: new Set(), ways: new Set() };
    const { segments, header } = page;
    const { boxOf, drawing } = plan();
    if (!store.get().critical || drawing.header.task !== header.critical_task) return;
    const steps = new Set<number>();
    let before = -1;
    for (let row = 0; row < segments.length; row++) {
      const box = segments.node[row] < 0 ? -1 : boxOf[segments.node[row]];
      if (box < 0) continue;
      marks.boxes.add(box);
      if (before >= 0) steps.add(before * drawing.boxes.length + box);
      before = box;
    }
    for (let way = 0; way < drawing.ways.length; way++) {
      const step = drawing.ways.producer[way] * drawing.boxes.length;
      if (steps.has(step + drawing.ways.consumer[way])) marks.ways.add(way);
    }
  }

  function draw(
    context: CanvasRenderingContext2D,
    width: number,
    height: number,
  ): void {
    if (shown < 0) return;
    if (isFitted && Math.abs(width - lastWidth) + Math.abs(height - lastHeight) > 0) {
      [lastWidth, lastHeight] = [width, height];
      fit();
    }
    const { moment, node, hover, task } = store.get();
    if (task !== progressTask) {
      progressTask = task;
      progress = progressOf(page, task);
      outcome = outcomeOf();
      played = NaN;
    }
    if (moment !== played) [played, now] = [moment, progress(moment)];
    const look = {
      colours: colours(),
      colour,
      progress: now,
      isReplay: moment >= 0,
      meant,
      outcome,
      criticalBoxes: marks.boxes,
      criticalWays: marks.ways,
      selected: node,
      hovered: hover,
    };
    drawGraph(context, page, plan(), look, camera, width, height);
  }
  let [lastWidth, lastHeight] = [0, 0];
  const mapped = {
    of: -1,
    shade: null as Colours | null,
    picture: document.createElement("canvas"),
  };

  /** The stage in which each node ended. */
  function outcomeOf(): Uint8Array {
    return progress(-1).stage.slice();
  }
  let outcome = outcomeOf();
  let now = progress(-1);
  let played = -1;

  function drawMap(context: CanvasRenderingContext2D, wide: number, high: number): void {
    if (shown < 0) return;
    const all = whole(plan());
    const small = fitted(all, wide + 24, high + 24);
    const { clientWidth, clientHeight } = picture.element;
    const view = seen(camera, clientWidth, clientHeight);
    const sees =
      view.left <= all.left &&
      view.right >= all.right &&
      view.top <= all.top &&
      view.bottom >= all.bottom;
    minimap.hidden = sees;
    const shade = colours();
    if (mapped.of !== shown || mapped.shade !== shade) {
      mapped.of = shown;
      mapped.shade = shade;
      drawSmall(wide, high, small);
    }
    context.drawImage(mapped.picture, 0, 0, wide, high);
    const at = (x: number, y: number): [number, number] => [
      (x - small.x) * small.scale - 12,
      (y - small.y) * small.scale - 12,
    ];
    const [left, top] = at(view.left, view.top);
    const [right, bottom] = at(view.right, view.bottom);
    context.strokeStyle = shade.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left, top, right - left, bottom - top);
  }

  /** All boxes as they are on the map: once, and not whenever one looks elsewhere. */
  function drawSmall(wide: number, high: number, small: Camera): void {
    const sharp = 2;
    mapped.picture.width = wide * sharp;
    mapped.picture.height = high * sharp;
    const context = mapped.picture.getContext("2d");
    if (!context) return;
    const { boxes } = plan().drawing;
    for (let box = 0; box < boxes.length; box++) {
      const node = boxes.node[box];
      const x = ((boxes.x[box] - small.x) * small.scale - 12) * sharp;
      const y = ((boxes.y[box] - small.y) * small.scale - 12) * sharp;
      const w = Math.max(boxes.width[box] * small.scale * sharp, 1);
      const h = Math.max(boxes.height[box] * small.scale * sharp, 1);
      context.fillStyle = colours().operations[node < 0 ? 0 : colour[node]];
      context.fillRect(x - w / 2, y - h / 2, w, h);
    }
  }

  function there(x: number, y: number) {
    return hitAt(plan(), camera.x + x / camera.scale, camera.y + y / camera.scale);
  }

  listen(
    picture.element,
    {
      zoom: (factor, x, y) => look(zoomedAt(camera, factor, x, y)),
      pan: (x, y) => look(dragged(camera, x, y)),
      click: (x, y) => {
        picture.element.focus({ preventScroll: true });
        const hit = there(x, y);
        store.set({ node: hit?.node ?? -1, task: plan().drawing.header.task });
      },
      hover: (x, y) => {
        const hit = there(x, y);
        picture.element.style.cursor = hit ? "pointer" : "grab";
        store.set({ hover: hit?.node ?? -1 });
        if (hit) showTooltip(picture.element, about(hit.box, hit.node), x, y);
        else hideTooltip();
      },
      leave: () => {
        store.set({ hover: -1 });
        hideTooltip();
      },
      scrolls: () => false,
    },
  );
  picture.element.addEventListener("dblclick", (event) => {
    const hit = there(event.offsetX, event.offsetY);
    if (hit) expand(hit.box);
  });
  map.element.addEventListener("pointerdown", lookThere);
  map.element.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) lookThere(event);
  });

  function lookThere(event: PointerEvent): void {
    const { clientWidth: wide, clientHeight: high } = map.element;
    const small = fitted(whole(plan()), wide + 24, high + 24);
    const x = (event.offsetX + 12) / small.scale + small.x;
    const y = (event.offsetY + 12) / small.scale + small.y;
    const { clientWidth, clientHeight } = picture.element;
    look({
      ...camera,
      x: x - clientWidth / 2 / camera.scale,
      y: y - clientHeight / 2 / camera.scale,
    });
  }

  /** What a box stands for, one level deeper; a node by itself has the selection. */
  function expand(box: number): void {
    const { drawing, members } = plan();
    const nodes = [...rowsOf(members, box)].map((row) => drawing.members.node[row]);
    const { task, depth } = drawing.header;
    if (depth === null) return;
    const deeper = page.drawings.findIndex(
      ({ header }) => header.task === task && (header.depth ?? 99) > depth,
    );
    if (deeper < 0) return;
    store.set({ depth: page.drawings[deeper].header.depth ?? 99 });
    requestAnimationFrame(() => {
      const found = [...new Set(nodes.map((node) => plan().boxOf[node]))];
      const frames = found.filter((one) => one >= 0).map((one) => frameOf(plan(), one));
      if (!frames.length) return;
      const around: Frame = {
        left: Math.min(...frames.map((one) => one.left)),
        top: Math.min(...frames.map((one) => one.top)),
        right: Math.max(...frames.map((one) => one.right)),
        bottom: Math.max(...frames.map((one) => one.bottom)),
      };
      look(fitted(around, picture.element.clientWidth, picture.element.clientHeight));
    });
  }

  /** The coarser drawing, in which what is selected is a part of a box. */
  function collapse(): void {
    const { task, depth } = plan().drawing.header;
    const coarser = page.drawings.findLast(
      ({ header }) =>
        header.task === task && header.depth !== null && header.depth < (depth ?? 99),
    );
    if (coarser) store.set({ depth: coarser.header.depth! });
  }

  function about(box: number, node: number): string[] {
    const { boxes } = plan().drawing;
    const { nodes, runs } = page;
    const lines = [page.text(boxes.title[box])];
    if (boxes.num_nodes[box] > 1) {
      lines.push(`${count(boxes.num_nodes[box], "node")}, ${page.text(boxes.badge[box])}`);
      return [...lines, "double click: its parts"];
    }
    if (node < 0) return lines;
    lines[0] = `${page.text(nodes.name[node])}, node ${nodes.id[node]}`;
    for (const of of ["parameter", "shape", "module", "location", "device"] as const) {
      if (nodes[of][node] >= 0) lines.push(page.text(nodes[of][node]));
    }
    const { task } = store.get();
    const run = runs.node.findIndex((one, row) => one === node && runs.task[row] === task);
    if (run >= 0) lines.push(`ran for ${duration(runs.end_ns[run] - runs.start_ns[run])}`);
    return lines;
  }

  /** The neighbour of the selected node along an edge: a consumer, or a producer. */
  function step(towards: "consumer" | "producer"): void {
    const { edges } = page;
    const { node } = store.get();
    const from = towards === "consumer" ? "producer" : "consumer";
    const rows = edges[from].findIndex(
      (one, row) => one === node && plan().boxOf[edges[towards][row]] >= 0,
    );
    if (rows >= 0) store.set({ node: edges[towards][rows] });
  }

  picture.element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys: Record<string, () => void> = {
      ArrowLeft: () => look(dragged(camera, KEY_STEP, 0)),
      ArrowRight: () => look(dragged(camera, -KEY_STEP, 0)),
      ArrowUp: () => (event.shiftKey ? step("producer") : look(dragged(camera, 0, KEY_STEP))),
      ArrowDown: () =>
        event.shiftKey ? step("consumer") : look(dragged(camera, 0, -KEY_STEP)),
      "+": () => zoom(KEY_ZOOM),
      "=": () => zoom(KEY_ZOOM),
      "-": () => zoom(1 / KEY_ZOOM),
      "0": fit,
      Enter: () => {
        const { node } = store.get();
        if (node >= 0 && plan().boxOf[node] >= 0) expand(plan().boxOf[node]);
      },
      Backspace: collapse,
    };
    const act = keys[event.key];
    if (!act) return;
    act();
    event.preventDefault();
    event.stopPropagation();
  });
  levels.addEventListener("change", () => store.set({ depth: Number(levels.value) }));
  passes.addEventListener("change", () =>
    store.set({ task: Number(passes.value), node: -1 }),
  );
  critical.addEventListener("change", () => store.set({ critical: critical.checked }));

  store.subscribe(
    (state, changed) => {
      if (changed.has("task") || changed.has("depth")) choose();
      if (changed.has("filters")) meant = meantBy(page, state.filters);
      if (changed.has("critical")) mark();
      critical.checked = state.critical;
      if (changed.has("node")) reveal();
      again();
    },
    ...(["task", "depth", "filters", "critical", "node", "hover", "moment"] as const),
    ...(["panel", "theme"] as const),
  );
  critical.checked = store.get().critical;
  shown = drawingOf(store.get().task, store.get().depth);
  if (shown < 0) shown = 0;
  fillSelects();
  mark();
  requestAnimationFrame(() => {
    if (before) return look(before);
    fit();
    if (store.get().node >= 0) reveal();
  });
  return () => (isFitted ? undefined : camera);
}
