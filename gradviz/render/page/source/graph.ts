/* The graph: where one is in it, what is open, and what mouse, fingers and keys do. */

import { calledIn } from "./calls.ts";
import { type Camera, dragged, fitted, revealing, seen, zoomedAt } from "./camera.ts";
import { type Coloring, coloringOf } from "./colorings.ts";
import { colors } from "./colors.ts";
import { composed } from "./composition.ts";
import type { Page } from "./data.ts";
import { canvas, el } from "./elements.ts";
import { meantBy } from "./filters.ts";
import { listen } from "./gestures.ts";
import { graphBar } from "./graph_bar.ts";
import { marksOf } from "./graph_marks.ts";
import { drawGraph } from "./graph_picture.ts";
import { wordsOf } from "./graph_words.ts";
import { minimapOf } from "./minimap.ts";
import { levelsOf, opened, openedFirst, toggled } from "./opening.ts";
import { offer, type Paper } from "./paper.ts";
import { around, openable, partsOf, taskOf, tasksIn } from "./parts.ts";
import { type Passages, passagesOf } from "./passages.ts";
import { frameOf, type Hit, hitAt, type Plan, whole } from "./plan.ts";
import { progressOf, stageKinds } from "./progress.ts";
import type { State, Store } from "./store.ts";
import { hideTooltip, showTooltip } from "./tooltip.ts";

const KEY_STEP = 60;
const KEY_ZOOM = 1.3;
/** Above the first box, on the screen. */
const MARGIN = 14;
/** Around a box on paper, for its borders. */
const KEPT = 3;
/** From farther away texts are not legible: who looks for something comes closer. */
const LEGIBLE = 0.6;
/** What of the state is marked in the picture. */
const MARKED = ["task", "node", "hover", "critical"] as const;

/** Gives where one looks at it from, once the reader has chosen that. */
export function mountGraph(
  element: HTMLElement,
  page: Page,
  store: Store,
  before?: Camera,
): () => Camera | undefined {
  const parts = partsOf(page);
  if (!parts.roots.size) {
    element.append(el("p", { class: "hint" }, "No node of these passes has run."));
    return () => before;
  }
  const first = openedFirst(parts);
  const picture = canvas("Graph of the backward pass", draw);
  const view = () => {
    const { clientWidth, clientHeight } = picture.element;
    return seen(camera, clientWidth, clientHeight);
  };
  const map = minimapOf(
    () => shown,
    view,
    (x, y) => {
      const { left, top, right, bottom } = view();
      look({ ...camera, x: x - (right - left) / 2, y: y - (bottom - top) / 2 });
    },
  );
  const bar = graphBar(page, parts, store, { fit, zoom, open: openInPass });
  const controls = el("div", { class: "graph-controls" }, ...bar.elements);
  element.append(
    el("div", { class: "graph-head" }, controls, map.element),
    el("div", { class: "picture" }, picture.element),
  );

  let camera: Camera = { x: 0, y: 0, scale: 1 };
  let isFitted = true;
  let fittedIn = [0, 0];
  let hovered = -1;
  let clicked = -1;
  /** Of the last two clicks whether they opened or closed a box. */
  let toggles = [false, false];
  let meant = meantBy(page, store.get().filters);
  const stages = stageKinds(page.header);
  let { progress, outcome, now, played } = ofPass();
  let shown: {
    task: number;
    open: State["open"];
    plan: Plan;
    coloring: Coloring;
    passages: Passages;
  };
  let marks: ReturnType<typeof marksOf>;
  compose();

  function ofPass() {
    const progress = progressOf(page, ...tasksIn(parts, taskDrawn()));
    const now = progress(-1);
    const outcome = now.stage.slice();
    return { progress, now, outcome, played: -1 };
  }

  /** The pass that is drawn: that of the state, or what called it, if that has a drawing. */
  function taskDrawn(): number {
    const task = parts.outermost.get(store.get().task) ?? -1;
    return parts.roots.has(task) ? task : [...parts.roots.keys()][0];
  }

  function openNow(): readonly number[] {
    return store.get().open ?? first;
  }

  function compose(): void {
    const task = taskDrawn();
    const plan = composed(page, parts, task, new Set(openNow()));
    const tasks = tasksIn(parts, task);
    const coloring = coloringOf(page, plan, tasks, store.get().colorBy);
    const { open } = store.get();
    shown = { task, open, plan, coloring, passages: passagesOf(page, plan) };
    mark();
    tell();
  }

  function tell(): void {
    bar.tell(shown.plan, shown.coloring, outcome, shown.task);
  }

  function mark(): void {
    const { node, hover, critical } = store.get();
    const pointed = hover < 0 ? -1 : shown.plan.boxOf[hover];
    const { plan, passages, task } = shown;
    marks = marksOf(page, plan, passages, task, { node, pointed, critical });
  }

  function fit(): void {
    const { clientWidth: wide, clientHeight: high } = picture.element;
    camera = fitted(whole(shown.plan), wide || 1, high || 1);
    isFitted = false;
    again();
  }

  /** All of it, or if that would not be legible, where it begins. */
  function begin(): void {
    fit();
    if (camera.scale < LEGIBLE) {
      const { clientWidth: wide, clientHeight: high } = picture.element;
      const top = { ...whole(shown.plan), bottom: 1 };
      const { scale } = fitted(top, wide || 1, high || 1);
      const near = Math.min(Math.max(scale, LEGIBLE), 1);
      const [first] = shown.plan.closed;
      const x = near > scale ? shown.plan.x[first] : shown.plan.wide / 2;
      camera = { x: x - wide / 2 / near, y: -MARGIN / near, scale: near };
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

  /** Moves so that a box is seen, and closer if it would not be legible. */
  function reveal(box: number): void {
    const { clientWidth: wide, clientHeight: high } = picture.element;
    if (box < 0 || !wide) return;
    const frame = frameOf(shown.plan, box);
    if (camera.scale < 0.3) {
      const x = (frame.left + frame.right - wide / LEGIBLE) / 2;
      const y = (frame.top + frame.bottom - high / LEGIBLE) / 2;
      camera = { x, y, scale: LEGIBLE };
    }
    look(revealing(camera, frame, wide, high));
  }

  function again(): void {
    picture.again();
    map.again();
  }

  function draw(
    context: CanvasRenderingContext2D,
    width: number,
    height: number,
  ): void {
    if (isFitted && (fittedIn[0] !== width || fittedIn[1] !== height)) {
      fittedIn = [width, height];
      begin();
    }
    drawFrom(context, camera, width, height);
  }

  function drawFrom(
    context: CanvasRenderingContext2D,
    camera: Camera,
    width: number,
    height: number,
  ): void {
    const { moment, node } = store.get();
    if (moment !== played) [played, now] = [moment, progress(moment)];
    const { plan, coloring } = shown;
    const look = {
      ...{ colors: colors(), coloring, progress: now, isReplay: moment >= 0, meant },
      ...{ outcome, stages, ...marks, node, hovered },
      selected: node < 0 ? -1 : plan.boxOf[node],
    };
    drawGraph(context, page, parts, plan, look, camera, width, height);
  }

  /** All of the graph as it is opened, as large as it was laid out. */
  function paper(): Paper {
    const { plan } = shown;
    const [width, height] = [plan.wide + 2 * MARGIN, plan.high + 2 * MARGIN];
    return {
      ...{ width, height },
      kept: plan.closed.map((box) => {
        const { top, bottom } = frameOf(plan, box);
        return [top + MARGIN - KEPT, bottom + MARGIN + KEPT];
      }),
      draw: (context) =>
        drawFrom(context, { x: -MARGIN, y: -MARGIN, scale: 1 }, width, height),
    };
  }

  /** Opens a box or closes it; what was under the pointer stays there. */
  function toggle(box: number): void {
    const top = (plan: Plan) => frameOf(plan, box).top;
    const before = { x: shown.plan.x[box], y: top(shown.plan) };
    store.set({ open: toggled(openNow(), box) });
    compose();
    look({
      ...camera,
      x: camera.x + shown.plan.x[box] - before.x,
      y: camera.y + top(shown.plan) - before.y,
    });
  }

  /** Opens these boxes of the pass that is drawn and closes its others. */
  function openInPass(boxes: readonly number[]): void {
    const own = new Set(openable(parts, shown.task));
    const others = openNow().filter((box) => !own.has(box));
    store.set({ open: [...others, ...boxes] });
    compose();
    begin();
    if (store.get().node >= 0) reveal(selectedBox());
  }

  function there(x: number, y: number, reach = 0): Hit | null {
    const { x: left, y: top, scale } = camera;
    return hitAt(page, shown.plan, left + x / scale, top + y / scale, reach / scale);
  }

  offer(element, "Graph", paper);
  listen(picture.element, {
    zoom: (factor, x, y) => look(zoomedAt(camera, factor, x, y)),
    pan: (x, y) => look(dragged(camera, x, y)),
    click: (x, y, reach) => {
      picture.element.focus({ preventScroll: true });
      const hit = there(x, y, reach);
      const isToggle = hit !== null && (hit.isTitle || isOnSign(hit.box, x, y, reach));
      toggles = [toggles[1], isToggle];
      if (isToggle) return toggle(hit.box);
      clicked = hit?.node ?? -1;
      store.set({ node: clicked, task: hit ? taskOf(page, hit.box) : shown.task });
    },
    hover: (x, y) => {
      const hit = there(x, y);
      picture.element.style.cursor = hit ? "pointer" : "grab";
      hovered = hit?.box ?? -1;
      store.set({ hover: hit?.node ?? -1 });
      if (hit) showTooltip(picture.element, wordsOf(page, parts, hit), x, y);
      else hideTooltip();
      again();
    },
    leave: () => {
      hovered = -1;
      store.set({ hover: -1 });
      hideTooltip();
      again();
    },
    scrolls: () => false,
  });
  picture.element.addEventListener("dblclick", (event) => {
    const hit = there(event.offsetX, event.offsetY);
    // The first click of two may have opened or closed what is there.
    if (hit && !hit.isTitle && !toggles.includes(true)) enter(hit.box, hit.node);
  });

  /** Whether a place of the screen is on the sign of a box that can be opened. */
  function isOnSign(box: number, x: number, y: number, reach: number): boolean {
    if (parts.inside[box] < 0) return false;
    const { left, top } = frameOf(shown.plan, box);
    const from = left + page.boxes.badge_width[box];
    const [atX, atY] = [camera.x + x / camera.scale, camera.y + y / camera.scale];
    const [wide, high] = [20, 24].map((size) => Math.max(size, reach / camera.scale));
    return atX >= from && atX <= from + wide && atY - top <= high;
  }

  /** Opens a box; of one that is a node shows the pass that it called. */
  function enter(box: number, node: number): void {
    if (parts.inside[box] >= 0) {
      toggle(box);
      return;
    }
    const { runs } = page;
    const run = runs.node.findIndex(
      (one, row) => one === node && runs.task[row] === taskOf(page, box),
    );
    const [pass] = run < 0 ? [] : calledIn(page, run);
    if (pass !== undefined && parts.roots.has(pass))
      store.set({ task: pass, node: -1 });
  }

  /** The neighbor of the selected node along an edge: a consumer, or a producer. */
  function step(towards: "consumer" | "producer"): void {
    const { edges } = page;
    const { node } = store.get();
    const from = towards === "consumer" ? "producer" : "consumer";
    const row = edges[from].findIndex(
      (one, row) => one === node && shown.plan.boxOf[edges[towards][row]] >= 0,
    );
    if (row >= 0) store.set({ node: edges[towards][row] });
  }

  const selectedBox = () =>
    store.get().node < 0 ? -1 : shown.plan.boxOf[store.get().node];
  const KEYS: Record<string, () => void> = {
    ArrowLeft: () => look(dragged(camera, KEY_STEP, 0)),
    ArrowRight: () => look(dragged(camera, -KEY_STEP, 0)),
    ArrowUp: () => look(dragged(camera, 0, KEY_STEP)),
    ArrowDown: () => look(dragged(camera, 0, -KEY_STEP)),
    "shift ArrowUp": () => step("producer"),
    "shift ArrowDown": () => step("consumer"),
    "+": () => zoom(KEY_ZOOM),
    "=": () => zoom(KEY_ZOOM),
    "-": () => zoom(1 / KEY_ZOOM),
    "0": fit,
    e: () => openInPass(levelsOf(parts, shown.task).at(-1)?.open ?? []),
    c: () => openInPass([]),
    Enter: () => {
      const box = selectedBox();
      if (box >= 0) enter(box, store.get().node);
    },
    "shift Enter": () => {
      const { node } = store.get();
      const home = node < 0 ? -1 : page.members.node.indexOf(node);
      if (home >= 0)
        openInPass(opened(page, shown.plan.opened, page.members.box[home]));
    },
    Backspace: () => {
      const box = selectedBox();
      const outer = box < 0 ? -1 : around(page, box);
      if (outer >= 0) toggle(outer);
      else if (shown.plan.opened.length) toggle(shown.plan.opened.at(-1)!);
    },
  };
  picture.element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = (event.shiftKey && KEYS[`shift ${event.key}`]) || KEYS[event.key];
    if (!act) return;
    act();
    event.preventDefault();
    event.stopPropagation();
  });

  store.subscribe(
    (state: Readonly<State>, changed: ReadonlySet<keyof State>) => {
      if (changed.has("task")) ({ progress, outcome, now, played } = ofPass());
      if (changed.has("filters")) meant = meantBy(page, state.filters);
      const isNew = changed.has("task") && shown.task !== taskDrawn();
      if (isNew || state.open !== shown.open || changed.has("colorBy")) compose();
      else if (MARKED.some((part) => changed.has(part))) mark();
      if (changed.has("task") || changed.has("critical") || changed.has("theme"))
        tell();
      if (isNew) begin();
      // What was clicked in here is where one looks already.
      if (isNew || (changed.has("node") && state.node !== clicked))
        reveal(selectedBox());
      clicked = -1;
      if (changed.size > 1 || !changed.has("moment")) again();
      else picture.again(); // the map shows no moments
    },
    ...(["task", "open", "colorBy", "filters", "critical", "node", "hover"] as const),
    ...(["moment", "panel", "theme"] as const),
  );
  requestAnimationFrame(() => {
    if (before) return look(before);
    begin();
    if (store.get().node >= 0) reveal(selectedBox());
  });
  return () => (isFitted ? undefined : camera);
}
