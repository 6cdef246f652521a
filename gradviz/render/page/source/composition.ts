/* The whole graph of a pass, put together from its parts: no layout, only additions. */

import { type Arrangement, arranged, type Opened, type Point } from "./arrangement.ts";
import { chained, rowsOf } from "./chains.ts";
import type { Page } from "./data.ts";
import type { Parts } from "./parts.ts";
import { type Plan, TITLE_HEIGHT, type Ways } from "./plan.ts";

/** Between the border of an opened box and what is in it. */
const PADDING = 12;
/** Longer titles are cut. */
const MAX_TITLE_WIDTH = 260;
const LETTER_WIDTH = 7;

interface Inside extends Opened {
  readonly arrangement: Arrangement;
  /** Where the inside begins, from the left upper corner of the box. */
  readonly fromLeft: number;
  readonly fromTop: number;
}

export function composed(
  page: Page,
  parts: Parts,
  task: number,
  open: ReadonlySet<number>,
): Plan {
  const { boxes, members, chips, nodes } = page;
  const root = parts.roots.get(task) ?? -1;
  const [x, y, width, height] = [0, 0, 0, 0].map(() => new Float64Array(boxes.length));
  const shownAs = new Int32Array(boxes.length).fill(-1);
  const [closed, opened]: [number[], number[]] = [[], []];
  const routes: { row: number; route: Point[] }[] = [];

  function put(part: number, inside: Inside, left: number, top: number): void {
    const { at, routes: own } = inside.arrangement;
    const right = left + inside.fromLeft;
    const down = top + inside.fromTop;
    for (const [row, route] of own) {
      const led = route.map(([x, y]): Point => [x + right, y + down]);
      if (page.ways.producer[row] < 0) led.unshift([led[0][0], top]);
      if (page.ways.consumer[row] < 0) led.push([led.at(-1)![0], top + inside.height]);
      routes.push({ row, route: led });
    }
    for (const box of rowsOf(parts.boxes, part)) {
      const place = at.get(box)!;
      const grown = insides.get(box);
      width[box] = grown?.width ?? boxes.width[box];
      height[box] = grown?.height ?? boxes.height[box];
      x[box] = place.x + right + width[box] / 2 - (grown?.entry ?? width[box] / 2);
      y[box] = place.y + down;
      if (grown) {
        opened.push(box);
        put(
          parts.inside[box],
          grown,
          x[box] - width[box] / 2,
          y[box] - height[box] / 2,
        );
      } else {
        closed.push(box);
        shownAs[box] = box;
      }
    }
  }

  const insides = new Map<number, Inside>();
  const all = root < 0 ? null : insideOf(page, parts, root, open, insides);
  if (all) put(root, all, 0, 0);
  for (let box = 0; box < boxes.length; box++) {
    const around = page.parts.box[boxes.part[box]];
    if (shownAs[box] < 0 && around >= 0) shownAs[box] = shownAs[around];
  }
  const boxOf = new Int32Array(nodes.length).fill(-1);
  const shownIn = Int32Array.from(members.box, (box) => shownAs[box]);
  for (let row = members.length - 1; row >= 0; row--) {
    if (shownIn[row] >= 0 && members.node[row] >= 0)
      boxOf[members.node[row]] = shownIn[row];
  }
  const numChips = new Int32Array(boxes.length);
  for (let row = 0; row < chips.length; row++) numChips[chips.box[row]]++;
  return {
    ...{ closed, opened, x, y, width, height, shownAs, boxOf, numChips },
    chips: chained(chips.box, boxes.length),
    members: chained(shownIn, boxes.length),
    ways: waysOf(routes),
    wide: all?.width ?? 0,
    high: all?.height ?? 0,
  };
}

/** How large a box is with what is inside of it; those in it that are open go before. */
function insideOf(
  page: Page,
  parts: Parts,
  part: number,
  open: ReadonlySet<number>,
  insides: Map<number, Inside>,
): Inside {
  for (const box of rowsOf(parts.boxes, part)) {
    const deeper = parts.inside[box];
    if (deeper >= 0 && open.has(box))
      insides.set(box, insideOf(page, parts, deeper, open, insides));
  }
  const arrangement = arranged(page, parts, part, insides);
  const { at, routes, left, right, height } = arrangement;
  const around = page.parts.box[part];
  const isWhole = around < 0;
  let [first, last] = [height, 0];
  for (const [box, { y }] of at) {
    const half = (insides.get(box)?.height ?? page.boxes.height[box]) / 2;
    [first, last] = [Math.min(first, y - half), Math.max(last, y + half)];
  }
  const fromTop = isWhole ? 0 : Math.max(TITLE_HEIGHT + 4 - first, 0);
  const below = isWhole ? 0 : Math.max(PADDING - (height - last), 0);
  const title = isWhole ? 0 : titleWidth(page, around);
  const inner = right - left + (isWhole ? 0 : 2 * PADDING);
  const width = Math.max(inner, title);
  const fromLeft = (width - (right - left)) / 2 - left;
  const port = (end: "producer" | "consumer") => {
    for (const [row, route] of routes) {
      if (page.ways[end][row] < 0)
        return fromLeft + (end === "producer" ? route[0][0] : route.at(-1)![0]);
    }
    return width / 2;
  };
  return {
    arrangement,
    width,
    height: fromTop + height + below,
    fromLeft,
    fromTop,
    entry: port("producer"),
    exit: port("consumer"),
  };
}

/** How wide an opened box is at the least. */
function titleWidth({ boxes, text }: Page, box: number): number {
  const letters = text(boxes.title[box]).length + text(boxes.badge[box]).length;
  return Math.min(letters * LETTER_WIDTH + 44, MAX_TITLE_WIDTH);
}

function waysOf(routes: readonly { row: number; route: Point[] }[]): Ways {
  const total = routes.reduce((sum, { route }) => sum + route.length, 0);
  const [x, y] = [new Float64Array(total), new Float64Array(total)];
  const end = new Int32Array(routes.length);
  const around = new Float64Array(4 * routes.length);
  let at = 0;
  routes.forEach(({ route }, way) => {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const [stopX, stopY] of route) {
      [x[at], y[at]] = [stopX, stopY];
      at++;
      [left, right] = [Math.min(left, stopX), Math.max(right, stopX)];
      [top, bottom] = [Math.min(top, stopY), Math.max(bottom, stopY)];
    }
    end[way] = at;
    around.set([left, top, right, bottom], 4 * way);
  });
  const row = Int32Array.from(routes, (one) => one.row);
  return { length: routes.length, row, end, x, y, around };
}
