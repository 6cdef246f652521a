import assert from "node:assert/strict";
import { test } from "node:test";

import { composed } from "../../../gradviz/render/page/source/composition.ts";
import type { Page } from "../../../gradviz/render/page/source/data.ts";
import { partsOf } from "../../../gradviz/render/page/source/parts.ts";
import {
  chipFrame,
  frameOf,
  hitAt,
  TITLE_HEIGHT,
} from "../../../gradviz/render/page/source/plan.ts";
import { tableOf } from "./tables.ts";

/* Two boxes, one above the other: 0 is node 0 with nodes 2 and 3 as chips, 1 can be
   opened and has box 2, node 1, in it, with node 4 as a chip. Node 5 is nowhere. */
const page = {
  nodes: { length: 6 },
  parts: tableOf({
    task: [0, 0],
    box: [-1, 1],
    width: [120, 60],
    height: [200, 90],
    omitted: [0, 0],
  }),
  boxes: tableOf({
    part: [0, 0, 1],
    node: [0, 1, 1],
    x: [60, 60, 30],
    y: [40, 160, 45],
    width: [120, 80, 60],
    height: [80, 40, 30],
    badge_width: [20, 20, 20],
    num_nodes: [1, 2, 1],
    badge: [-1, -1, -1],
    title: [-1, -1, -1],
  }),
  chips: tableOf({ box: [0, 0, 2], node: [2, 3, 4], text: [-1, -1, -1] }),
  members: tableOf({ box: [0, 0, 0, 2, 2], node: [0, 2, 3, 1, 4] }),
  ways: tableOf({ part: [0, 1], producer: [0, -1], consumer: [1, 2], end: [2, 4] }),
  stops: tableOf({ x: [60, 60, 30, 30], y: [80, 140, 0, 30] }),
  text: () => "",
} as unknown as Page;
const parts = partsOf(page);
const closed = composed(page, parts, 0, new Set());
const open = composed(page, parts, 0, new Set([1]));

test("each node is in the closed box around it, and some in none", () => {
  assert.deepEqual([...closed.boxOf], [0, 1, 0, 0, 1, -1]);
  assert.deepEqual([...open.boxOf], [0, 2, 0, 0, 2, -1]);
  assert.deepEqual([closed.closed, closed.opened], [[0, 1], []]);
  assert.deepEqual([open.closed, open.opened], [[0, 2], [1]]);
});

test("what is at a place is a chip, or the box around it, or nothing", () => {
  const first = chipFrame(page, closed, 0, 0);
  const second = chipFrame(page, closed, 0, 1);
  const at = (x: number, y: number) => hitAt(page, closed, x, y);

  assert.deepEqual(at(60, (first.top + first.bottom) / 2), {
    box: 0,
    node: 2,
    isTitle: false,
  });
  assert.deepEqual(at(60, (second.top + second.bottom) / 2), {
    box: 0,
    node: 3,
    isTitle: false,
  });
  assert.deepEqual(at(60, 5), { box: 0, node: 0, isTitle: false });
  assert.deepEqual(at(60, 160), { box: 1, node: 1, isTitle: false });
  assert.equal(at(5, 160), null);
});

test("an opened box is hit at its title only, and what is in it as ever", () => {
  const { left, top } = frameOf(open, 1);

  assert.deepEqual(hitAt(page, open, left + 5, top + 5), {
    box: 1,
    node: -1,
    isTitle: true,
  });
  assert.equal(hitAt(page, open, left + 5, top + TITLE_HEIGHT + 3), null);
  assert.equal(hitAt(page, open, open.x[2], open.y[2])?.box, 2);
});

test("a finger hits a title that is lower than a finger", () => {
  const { left, top } = frameOf(open, 1);
  const below = top + TITLE_HEIGHT + 3;

  assert.equal(hitAt(page, open, left + 5, below, 44)?.isTitle, true);
  assert.equal(hitAt(page, open, open.x[2], open.y[2], 44)?.box, 2);
});

test("chips lie inside of their box, right of its badge, and not on each other", () => {
  const box = frameOf(closed, 0);
  const [first, second] = [
    chipFrame(page, closed, 0, 0),
    chipFrame(page, closed, 0, 1),
  ];

  for (const chip of [first, second]) {
    assert.ok(chip.left > box.left + 20 && chip.right < box.right);
    assert.ok(chip.top > box.top && chip.bottom < box.bottom);
  }
  assert.ok(first.bottom <= second.top);
});

test("a way leads to the border of an opened box, and from there straight on", () => {
  const { ways } = open;
  const frame = frameOf(open, 1);
  const route = (way: number) =>
    [...ways.x.slice(way ? ways.end[way - 1] : 0, ways.end[way])].map((x, at) => [
      x,
      ways.y[(way ? ways.end[way - 1] : 0) + at],
    ]);

  assert.deepEqual([...ways.row], [0, 1]);
  assert.deepEqual(route(0).at(-1), [60, frame.top]);
  assert.deepEqual(route(1)[0], [60, frame.top]);
  assert.deepEqual(route(1).at(-1), [open.x[2], frameOf(open, 2).top]);
});

test("around a way are all of its stops", () => {
  assert.deepEqual([...closed.ways.around], [60, 80, 60, 140]);
});
