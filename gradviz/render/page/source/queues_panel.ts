/* The number of tasks in each ready queue, over time. */

import {
  AXIS_HEIGHT,
  BOLD,
  type Context,
  drawAxis,
  FONT,
  fitted,
  wrapped,
} from "./axis.ts";
import { type Colors, colors } from "./colors.ts";
import { mountCursor } from "./cursor.ts";
import type { Page } from "./data.ts";
import { canvas, el } from "./elements.ts";
import { eventAt } from "./events.ts";
import { listen } from "./gestures.ts";
import { offer } from "./paper.ts";
import { changeAt, largestOf, lengths, type Series, steps } from "./series.ts";
import type { Store } from "./store.ts";
import { gutterOf, PAPER_WIDTH, show, viewOf } from "./time_axis.ts";
import { hideTooltip, showTooltip } from "./tooltip.ts";
import {
  nsPerPixel,
  panned,
  pixelOf,
  timeOf,
  type Viewport,
  zoomed,
} from "./viewport.ts";
import { count, integer } from "./words.ts";

/** Charts are between so high and so high, as there is room. */
const CHART_HEIGHTS = [34, 120] as const;
/** The same of a picture that is saved or printed. */
const PAPER_CHART = 70;
const GAP = 8;
const LINE_HEIGHT = 14;

interface Chart {
  readonly name: string;
  readonly length: Series;
  readonly longest: number;
}

export function mountQueues(element: HTMLElement, page: Page, store: Store): void {
  const charts = chartsOf(page);
  let [wide, high, scrolled] = [1000, 200, store.get().queuesTop];
  function view(): Viewport {
    return viewOf(page, store, wide - gutterOf(wide));
  }
  const chartHeight = () => chartHeightIn(high, charts.length);
  const told = charts.map((one) => `${one.name}, at most ${one.longest}`).join("; ");
  const picture = canvas(
    `Lengths of queues over time: ${told}`,
    (context, width, height) => {
      [wide, high] = [width, height];
      scroll(0);
      drawCharts(context, charts, view(), wide, high, scrolled);
    },
  );
  const box = picture.element;
  const framed = el("div", { class: "picture" }, box);
  const full = AXIS_HEIGHT + charts.length * (CHART_HEIGHTS[1] + GAP) + GAP;
  framed.style.setProperty("--full-height", `${full}px`);
  element.append(framed);
  mountCursor(framed, page, store);

  offer(element, "Queues", () => {
    const height = AXIS_HEIGHT + 4 + charts.length * (PAPER_CHART + GAP);
    const view = viewOf(page, store, PAPER_WIDTH - gutterOf(PAPER_WIDTH));
    return {
      ...{ width: PAPER_WIDTH, height },
      kept: charts.map((_, at) => {
        const top = AXIS_HEIGHT + 4 + at * (PAPER_CHART + GAP);
        return [top, top + PAPER_CHART];
      }),
      draw: (context) => drawCharts(context, charts, view, PAPER_WIDTH, height, 0),
    };
  });

  function most(): number {
    return Math.max(AXIS_HEIGHT + charts.length * (chartHeight() + GAP) - high - 1, 0);
  }
  function scroll(by: number): void {
    scrolled = Math.min(Math.max(scrolled + by, 0), most());
    if (by === 0) return;
    store.set({ queuesTop: scrolled });
    picture.again();
  }
  listen(box, {
    zoom: (factor, x) =>
      show(store, zoomed(view(), factor, Math.max(x - gutterOf(wide), 0))),
    pan: (x, y) => {
      if (x !== 0) show(store, panned(view(), -x));
      if (y !== 0) scroll(-y);
    },
    click: (x) =>
      store.set({ moment: eventAt(page, timeOf(view(), x - gutterOf(wide))) }),
    hover: (x, y) => {
      const chart =
        charts[Math.floor((y - AXIS_HEIGHT - 4 + scrolled) / (chartHeight() + GAP))];
      const left = gutterOf(wide);
      if (chart === undefined || y < AXIS_HEIGHT) return hideTooltip();
      if (x < left) return showTooltip(box, [chart.name, mostIn(chart)], x, y);
      const place = changeAt(chart.length, timeOf(view(), x - left));
      const lies = place < 0 ? 0 : chart.length.value[place];
      showTooltip(box, [chart.name, count(lies, "task")], x, y);
    },
    leave: hideTooltip,
    scrolls: () => most() > 0,
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    scroll(event.key === "ArrowUp" ? -chartHeight() : chartHeight());
    event.preventDefault();
  });
  store.subscribe(picture.again, "from_ns", "until_ns");
}

/** How high each of some charts is where so much room is for all. */
function chartHeightIn(high: number, num: number): number {
  const fitting = (high - AXIS_HEIGHT) / Math.max(num, 1) - GAP;
  return Math.min(Math.max(fitting, CHART_HEIGHTS[0]), CHART_HEIGHTS[1]);
}

function drawCharts(
  context: Context,
  charts: readonly Chart[],
  view: Viewport,
  wide: number,
  high: number,
  scrolled: number,
): void {
  const look = colors();
  const left = gutterOf(wide);
  const tall = chartHeightIn(high, charts.length);
  drawAxis(context, view, left, high, look);
  context.save();
  context.beginPath();
  context.rect(0, AXIS_HEIGHT, wide, high - AXIS_HEIGHT);
  context.clip();
  charts.forEach((chart, at) => {
    const top = AXIS_HEIGHT + 4 + at * (tall + GAP) - scrolled;
    if (top < high && top + tall > AXIS_HEIGHT)
      drawChart(context, chart, top, tall, view, left, look);
  });
  context.restore();
}

function drawChart(
  context: Context,
  chart: Chart,
  top: number,
  height: number,
  view: Viewport,
  left: number,
  look: Colors,
): void {
  const { name, length, longest } = chart;
  const base = top + height;
  const unit = (height - 6) / Math.max(longest, 1);
  context.fillStyle = look.panel;
  context.fillRect(left, top, view.width, height);
  context.fillStyle = look.palette[0];
  steps(length, view.from, view.until, nsPerPixel(view), (place, from, until) => {
    const x = Math.round(Math.max(pixelOf(view, from), 0));
    const end = Math.max(Math.round(Math.min(pixelOf(view, until), view.width)), x + 1);
    const tall = length.value[place] * unit;
    if (tall > 0) context.fillRect(left + x, base - tall, end - x, tall);
  });
  context.fillStyle = look.line;
  context.fillRect(left, base, view.width, 1);
  context.textAlign = "left";
  context.textBaseline = "middle";
  const room = (left || view.width) - 14;
  // Without a gutter it is written over what is drawn: its rim keeps it legible.
  context.strokeStyle = look.panel;
  context.lineWidth = 3;
  const write = (text: string, y: number) => {
    if (!left) context.strokeText(text, 8, y);
    context.fillText(text, 8, y);
  };
  context.font = BOLD;
  context.fillStyle = look.ink;
  const lines = wrapped(context, name, room, Math.floor(height / LINE_HEIGHT) - 1);
  const first = left ? top + (height - lines.length * LINE_HEIGHT) / 2 + 1 : top + 8;
  lines.forEach((line, at) => {
    write(line, first + at * LINE_HEIGHT);
  });
  context.font = FONT;
  context.fillStyle = look.faintInk;
  write(fitted(context, mostIn(chart), room), first + lines.length * LINE_HEIGHT);
}

function mostIn({ longest }: Chart): string {
  return `at most ${integer(longest)}`;
}

function chartsOf({ header, stays, events }: Page): Chart[] {
  const came = new Map<number, number[]>(header.queues.map(({ id }) => [id, []]));
  const went = new Map<number, number[]>(header.queues.map(({ id }) => [id, []]));
  for (let stay = 0; stay < stays.length; stay++) {
    came.get(stays.queue[stay])?.push(events.at_ns[stays.pushed[stay]]);
    if (stays.popped[stay] >= 0)
      went.get(stays.queue[stay])?.push(events.at_ns[stays.popped[stay]]);
  }
  return header.queues.map(({ id, name }) => {
    const length = lengths(
      Float64Array.from(came.get(id)!),
      Float64Array.from(went.get(id)!).sort(),
    );
    const { value } = length;
    return {
      name,
      length,
      longest: value.length > 0 ? value[largestOf(length, 0, value.length)] : 0,
    };
  });
}
