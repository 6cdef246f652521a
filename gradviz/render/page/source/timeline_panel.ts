/* The panel of the timeline: its picture, and what hands, keys and the store do with it. */

import { type Arrow, drawArrows } from "./arrows.ts";
import { AXIS_HEIGHT, type Context } from "./axis.ts";
import { type Arranged, arranged } from "./bars.ts";
import { type Chains, chained, rowsOf } from "./chains.ts";
import { colors } from "./colors.ts";
import { mountCursor } from "./cursor.ts";
import type { Page } from "./data.ts";
import { canvas, el } from "./elements.ts";
import { eventAt } from "./events.ts";
import { listen } from "./gestures.ts";
import { numberingOf } from "./numbering.ts";
import { leavesOf } from "./operations.ts";
import { offer, type Paper } from "./paper.ts";
import type { Filters, Store } from "./store.ts";
import { lookAt, PAPER_WIDTH, reach, show, viewOf } from "./time_axis.ts";
import {
  type Drawn,
  drawTimeline,
  extent,
  FAILED,
  hitAt,
  type Placement,
  placed,
  rowTop,
} from "./timeline.ts";
import { hideTooltip, showTooltip } from "./tooltip.ts";
import { panned, timeOf, zoomed } from "./viewport.ts";
import { count, duration, shorten } from "./words.ts";

/** Of a node that pushed more others only so many arrows are drawn. */
const MAX_ARROWS = 200;

/** What is drawn, and how to find what belongs to a node. */
interface Indexed extends Arranged {
  readonly page: Page;
  readonly runsOf: Chains;
  readonly pushesOf: Chains;
  readonly pushesBy: Chains;
  readonly waitsOfKernel: Chains;
}

/** `isFirst`: nobody has chosen yet what is seen, so that is where the selected node is. */
export function mountTimeline(
  element: HTMLElement,
  page: Page,
  store: Store,
  isFirst: boolean,
): void {
  const isMeant = new Uint8Array(page.nodes.length);
  mean(page, store.get().filters, isMeant);
  const all: Indexed = {
    ...arranged(page, (node) => isMeant[node] === 1),
    page,
    runsOf: chained(page.runs.node, page.nodes.length),
    pushesOf: chained(page.stays.node, page.nodes.length),
    pushesBy: chained(page.stays.pushed_by, page.nodes.length),
    waitsOfKernel: chained(page.kernel_waits.kernel, page.kernels.length),
  };
  let place: Placement = placed(all.lanes, 1000, 300);
  let [wide, high, scrolled] = [1000, 300, store.get().timelineTop];
  let arrows: Arrow[] = [];
  function drawn(): Drawn {
    return {
      lanes: all.lanes,
      bars: all.bars,
      place,
      view: viewOf(page, store, wide - place.gutter),
      scrolled,
      colors: colors(),
      height: high,
      crossings: all.crossings,
      streamWaits: all.streamWaits,
      isCriticalMarked: store.get().critical,
    };
  }
  const picture = canvas(
    "Timeline: left and right move, plus and minus zoom, up and down scroll, J and K select nodes",
    (context, width, height) => {
      if (width !== wide || height !== high) place = placed(all.lanes, width, height);
      [wide, high] = [width, height];
      scrolled = Math.min(scrolled, most());
      draw(context, drawn(), all, store, arrows);
    },
  );
  const box = picture.element;
  box.setAttribute("role", "application");
  const framed = el("div", { class: "picture" }, box);
  // It takes no more room than its lanes can fill: the panels below have the rest.
  for (const [name, width] of [
    ["--full-height", PAPER_WIDTH],
    ["--full-height-narrow", 0],
  ] as const) {
    const { height } = placed(all.lanes, width, Infinity);
    framed.style.setProperty(name, `${height + AXIS_HEIGHT}px`);
  }
  element.append(legendOf(all), framed);
  mountCursor(framed, page, store);

  function most(): number {
    return Math.max(place.height + AXIS_HEIGHT - high, 0);
  }
  function scroll(by: number): void {
    scrolled = Math.min(Math.max(scrolled + by, 0), most());
    store.set({ timelineTop: scrolled });
    picture.again();
  }
  function itemAt(x: number, y: number): number {
    return hitAt(drawn(), x, y)?.item ?? -1;
  }
  listen(box, {
    zoom: (factor, x) =>
      show(store, zoomed(drawn().view, factor, Math.max(x - place.gutter, 0))),
    pan: (x, y) => {
      if (x !== 0) show(store, panned(drawn().view, -x));
      if (y !== 0) scroll(-y);
    },
    click: (x, y) => {
      const item = itemAt(x, y);
      if (item >= 0) select(all, store, item);
      else if (x >= place.gutter) {
        store.set({ moment: eventAt(page, timeOf(drawn().view, x - place.gutter)) });
      }
    },
    hover: (x, y) => {
      const item = itemAt(x, y);
      store.set({
        hover: item >= 0 && item < all.firstSleep ? page.runs.node[item] : -1,
      });
      if (item >= 0) showTooltip(box, about(all, item), x, y);
      else hideTooltip();
    },
    leave: () => {
      store.set({ hover: -1 });
      hideTooltip();
    },
    scrolls: () => most() > 0,
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    scroll(event.key === "ArrowUp" ? -3 * place.rowHeight : 3 * place.rowHeight);
    event.preventDefault();
  });
  function point(): void {
    const { node, task } = store.get();
    arrows = arrowsOf(all, node, task);
  }
  function reveal(): void {
    const { node, task } = store.get();
    const run = runOf(all, node, task);
    if (run < 0) return;
    reach(page, store, all.bars.start[run]);
    const y = rowTop(place, all.laneOf[run], all.rowOf[run], scrolled);
    if (y < AXIS_HEIGHT || y + place.rowHeight > high) scroll(y - high / 2);
  }
  offer(element, "Timeline", () => paperOf(all, store, arrows, drawn()));
  point();
  if (isFirst) reveal();
  store.subscribe(
    (state, changed) => {
      if (changed.has("node") || changed.has("task")) {
        point();
        reveal();
      }
      if (changed.has("filters")) mean(page, state.filters, isMeant);
      picture.again();
    },
    "node",
    "task",
    "hover",
    "from_ns",
    "until_ns",
    "filters",
    "critical",
  );
}

function draw(
  context: Context,
  drawn: Drawn,
  all: Indexed,
  store: Store,
  arrows: readonly Arrow[],
): void {
  const { node, task, hover } = store.get();
  const { place, view, height, scrolled } = drawn;
  drawTimeline(context, drawn);
  context.save();
  context.beginPath();
  context.rect(place.gutter, AXIS_HEIGHT, view.width, height);
  context.clip();
  drawArrows(context, drawn, arrows);
  for (const [run, color, thick] of [
    [runOf(all, hover, task), drawn.colors.ink, 1.5],
    [runOf(all, node, task), drawn.colors.accent, 3],
  ] as const) {
    if (run < 0) continue;
    const [x, length] = extent(drawn, all.bars.start[run], all.bars.end[run]);
    const y = rowTop(place, all.laneOf[run], all.rowOf[run], scrolled);
    context.strokeStyle = color;
    context.lineWidth = thick;
    context.strokeRect(x - 1, y - 1, Math.max(length + 1, 3), place.barHeight + 2);
  }
  context.restore();
}

/** All lanes, with the part of the time that is seen. */
function paperOf(
  all: Indexed,
  store: Store,
  arrows: readonly Arrow[],
  shown: Drawn,
): Paper {
  const place = placed(all.lanes, PAPER_WIDTH, Infinity);
  const height = place.height + AXIS_HEIGHT;
  const view = { ...shown.view, width: PAPER_WIDTH - place.gutter };
  return {
    ...{ width: PAPER_WIDTH, height },
    kept: place.tops.map((top, lane) => [
      top + AXIS_HEIGHT,
      place.bottoms[lane] + AXIS_HEIGHT,
    ]),
    draw: (context) => {
      const drawn = { ...shown, place, view, height, scrolled: 0, colors: colors() };
      draw(context, drawn, all, store, arrows);
    },
  };
}

/** The run of a node in a pass, the first of any pass if that one has none; -1 for none. */
function runOf(all: Indexed, node: number, task: number): number {
  let found = -1;
  for (const run of rowsOf(all.runsOf, node)) {
    if (all.page.runs.task[run] === task) return run;
    if (found < 0) found = run;
  }
  return found;
}

function select(all: Indexed, store: Store, item: number): void {
  const { runs } = all.page;
  if (item < all.firstSleep) {
    const began = runs.begin[item];
    const moment = began >= 0 ? began : eventAt(all.page, runs.start_ns[item]);
    store.set({ node: runs.node[item], task: runs.task[item], moment });
  } else if (item >= all.firstPass) {
    store.set({ task: item - all.firstPass });
    lookAt(all.page, store, all.bars.start[item], all.bars.end[item]);
  } else store.set({ moment: eventAt(all.page, all.bars.start[item]) });
}

function about(all: Indexed, item: number): string[] {
  const { runs, nodes, kernels, text, header } = all.page;
  const took = duration(all.bars.end[item] - all.bars.start[item]);
  if (item >= all.firstPass) return [all.bars.label(item), `took ${took}`];
  if (item >= all.firstBlocked) {
    const { awaited_stream } = all.page.blocked;
    return [
      "has work and waits",
      `for ${text(awaited_stream[item - all.firstBlocked])}, ${took}`,
    ];
  }
  if (item >= all.firstKernel) {
    const kernel = item - all.firstKernel;
    const late = kernels.begin_ns[kernel] - kernels.launched_ns[kernel];
    return [
      text(kernels.name[kernel]) || "kernel",
      `ran ${took}`,
      `began ${duration(late)} after its launch`,
      ...waitsOf(all, kernel),
    ];
  }
  if (item >= all.firstSleep)
    return ["waiting for work", `asleep ${took} on an empty queue`];
  const node = runs.node[item];
  const number = numberingOf(all.page).ofRun[item];
  const lines = [
    `${number} ${text(nodes.name[node])} (id ${nodes.id[node]})`,
    `took ${took}`,
  ];
  const status = header.statuses[runs.status[item]];
  if (status !== "completed") lines.push(status);
  if (runs.waited_ns[item] >= 0)
    lines.push(`waited in its queue for ${duration(runs.waited_ns[item])}`);
  const blocked = all.bars.blocked(item);
  if (blocked > 0.02)
    lines.push(`its thread did not run for ${Math.round(blocked * 100)} % of it`);
  const more = [nodes.module[node], nodes.parameter[node], runs.error[item]].map(text);
  return [
    ...lines,
    ...more.filter((one) => one !== "").map((one) => shorten(one, 120)),
  ];
}

/** Whom a kernel waited for. */
function waitsOf({ page, waitsOfKernel }: Indexed, kernel: number): string[] {
  const { kernels, kernel_waits, nodes, text } = page;
  return [...rowsOf(waitsOfKernel, kernel)].map((row) => {
    const other = kernel_waits.awaited[row];
    const what = `waited for ${text(kernels.name[other]) || "a kernel"} of ${text(kernels.stream[other])}`;
    const producer = kernel_waits.producer[row];
    return producer < 0
      ? what
      : `${what}, the gradient of ${text(nodes.name[producer])}`;
  });
}

function arrowsOf(all: Indexed, node: number, task: number): Arrow[] {
  const { stays, events } = all.page;
  const found: Arrow[] = [];
  for (const chain of [all.pushesOf, all.pushesBy]) {
    for (const stay of rowsOf(chain, node)) {
      if (found.length === MAX_ARROWS) break;
      if (stays.task[stay] !== task) continue;
      const to = runOf(all, stays.node[stay], task);
      const from = runOf(all, stays.pushed_by[stay], task);
      const pushed = events.at_ns[stays.pushed[stay]];
      if (to < 0 || from < 0 || pushed === undefined) continue;
      found.push({
        fromLane: all.laneOf[from],
        fromRow: all.rowOf[from],
        pushed,
        toLane: all.laneOf[to],
        toRow: all.rowOf[to],
        started: all.bars.start[to],
        isIncoming: chain === all.pushesOf,
      });
    }
  }
  return found;
}

/** Which nodes a filter leaves. */
function mean(
  { nodes, runs, header, text }: Page,
  filters: Filters,
  isMeant: Uint8Array,
): void {
  const wanted = filters.text.toLowerCase();
  const status = header.statuses.indexOf(filters.status);
  const has = new Uint8Array(nodes.length);
  for (let run = 0; run < runs.length; run++)
    if (runs.status[run] === status) has[runs.node[run]] = 1;
  for (let node = 0; node < nodes.length; node++) {
    const words = [nodes.name, nodes.module, nodes.parameter, nodes.location].map(
      (one) => text(one[node]),
    );
    const isText =
      wanted === "" ||
      String(nodes.id[node]) === wanted ||
      words.some((one) => one.toLowerCase().includes(wanted));
    const isDevice =
      filters.device === "" || text(nodes.device[node]) === filters.device;
    isMeant[node] = Number(
      isText && isDevice && (filters.status === "" || has[node] === 1),
    );
  }
}

function legendOf(all: Indexed): HTMLElement {
  const { nodes, kernels } = all.page;
  const used = new Set([...all.page.runs.node].map((node) => nodes.family[node]));
  for (const family of kernels.family) used.add(family);
  const legend = el("ul", { class: "legend", "aria-label": "Colors of the timeline" });
  function entry(name: string, background: string, look = ""): void {
    const swatch = el("span", { class: `swatch ${look}`, "aria-hidden": "true" });
    if (background !== "") swatch.style.background = `var(${background})`;
    legend.append(el("li", {}, swatch, name));
  }
  const leaves = leavesOf(all.page.header);
  all.page.header.families.forEach((name, family) => {
    if (used.has(family))
      entry(name, family === leaves ? "--leaf" : `--family-${family}`);
  });
  if (all.firstPass < all.bars.start.length) entry("backward pass", "--pass");
  if (all.firstKernel > all.firstSleep) entry("waiting for work", "", "hatched");
  if (all.firstPass > all.firstBlocked)
    entry("stream waits for another", "", "crossed");
  if (all.page.runs.thread_time_ns.some((one) => one >= 0)) {
    entry("thread did not run", "--blocked", "foot");
  }
  if (all.page.runs.status.some((one) => one >= FAILED))
    entry("failed or unfinished", "", "failed");
  const { segments, header } = all.page;
  const omitted = header.segment_kinds.indexOf("omitted");
  const isPartial = segments.kind.some((one) => one === omitted);
  const path = `critical path${isPartial ? ", its middle left out" : ""}`;
  if (segments.length > 0) entry(path, "--critical", "critical");
  if (all.omitted > 0) {
    legend.append(el("li", {}, `${count(all.omitted, "deeper bar")} left out`));
  }
  return legend;
}
