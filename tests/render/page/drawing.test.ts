import assert from "node:assert/strict";
import { test } from "node:test";

import type { Drawing, Page } from "../../../gradviz/render/page/source/data.ts";
import {
  chipFrame,
  frameOf,
  hitAt,
  planOf,
} from "../../../gradviz/render/page/source/drawing.ts";

/* Two boxes, one above the other: that of node 0 with nodes 2 and 3 as chips, and one
   that stands for nodes 1 and 4; a way with two curves between them. Node 5 is nowhere. */
const drawing = {
  header: { task: 0, depth: 1, width: 120, height: 200, omitted: 0 },
  boxes: {
    node: Int32Array.of(0, 1),
    x: Int32Array.of(60, 60),
    y: Int32Array.of(40, 160),
    width: Int32Array.of(120, 80),
    height: Int32Array.of(80, 40),
    badge_width: Int32Array.of(20, 20),
    length: 2,
  },
  chips: { box: Int32Array.of(0, 0), node: Int32Array.of(2, 3), length: 2 },
  members: {
    box: Int32Array.of(0, 0, 0, 1, 1),
    node: Int32Array.of(0, 2, 3, 1, 4),
    length: 5,
  },
  ways: {
    producer: Int32Array.of(0),
    consumer: Int32Array.of(1),
    end: Int32Array.of(7),
    length: 1,
  },
  points: {
    x: Int32Array.of(60, 60, 90, 90, 90, 60, 60),
    y: Int32Array.of(80, 90, 90, 110, 120, 120, 140),
    length: 7,
  },
} as unknown as Drawing;
const plan = planOf({ nodes: { length: 6 } } as unknown as Page, drawing);

test("each node is in its box, leaves in that which shows them, and some in none", () => {
  assert.deepEqual([...plan.boxOf], [0, 1, 0, 0, 1, -1]);
});

test("what is at a place is a chip, or the box around it, or nothing", () => {
  const first = chipFrame(plan, 0, 0);
  const second = chipFrame(plan, 0, 1);

  assert.deepEqual(hitAt(plan, 60, (first.top + first.bottom) / 2), { box: 0, node: 2 });
  assert.deepEqual(hitAt(plan, 60, (second.top + second.bottom) / 2), {
    box: 0,
    node: 3,
  });
  assert.deepEqual(hitAt(plan, 60, 5), { box: 0, node: 0 });
  assert.deepEqual(hitAt(plan, 60, 160), { box: 1, node: 1 });
  assert.equal(hitAt(plan, 5, 160), null);
});

test("chips lie inside of their box, right of its badge, and not on each other", () => {
  const box = frameOf(plan, 0);
  const [first, second] = [chipFrame(plan, 0, 0), chipFrame(plan, 0, 1)];

  for (const chip of [first, second]) {
    assert.ok(chip.left > box.left + 20 && chip.right < box.right);
    assert.ok(chip.top > box.top && chip.bottom < box.bottom);
  }
  assert.ok(first.bottom <= second.top);
});

test("around a way are all of its points", () => {
  assert.deepEqual([...plan.around], [60, 80, 90, 140]);
});
