import assert from "node:assert/strict";
import { test } from "node:test";

import { composed } from "../../../gradviz/render/page/source/composition.ts";
import type { Page } from "../../../gradviz/render/page/source/data.ts";
import { partsOf, taskOf, tasksIn } from "../../../gradviz/render/page/source/parts.ts";
import { tableOf } from "./tables.ts";

/* Pass 0 has node 0 in box 0, which called pass 1 with node 1 in box 1; that called
   pass 2 with node 2 in box 2. Pass 3 is by itself. */
const page = {
  nodes: { length: 4 },
  parts: tableOf({
    task: [0, 3, 1, 2],
    box: [-1, -1, 0, 2],
    width: [120, 120, 60, 60],
    height: [80, 80, 60, 60],
    omitted: [0, 0, 0, 0],
  }),
  boxes: tableOf({
    part: [0, 1, 2, 3],
    node: [0, 3, 1, 2],
    x: [60, 60, 30, 30],
    y: [40, 40, 30, 30],
    width: [60, 60, 40, 40],
    height: [40, 40, 30, 30],
    badge_width: [20, 20, 20, 20],
    num_nodes: [1, 1, 1, 1],
    badge: [-1, -1, -1, -1],
    title: [-1, -1, -1, -1],
  }),
  chips: tableOf({ box: [], node: [], text: [] }),
  members: tableOf({ box: [0, 1, 2, 3], node: [0, 3, 1, 2] }),
  ways: tableOf({ part: [], producer: [], consumer: [], end: [] }),
  stops: tableOf({ x: [], y: [] }),
  text: () => "",
} as unknown as Page;
const parts = partsOf(page);

test("a pass is part of that which called it, however deep", () => {
  assert.deepEqual([...parts.roots.keys()], [0, 3]);
  assert.deepEqual(
    [0, 1, 2, 3].map((task) => parts.outermost.get(task)),
    [0, 0, 0, 3],
  );
  assert.deepEqual(tasksIn(parts, 0), [0, 1, 2]);
  assert.deepEqual(
    [0, 1, 2, 3].map((box) => taskOf(page, box)),
    [0, 3, 1, 2],
  );
});

test("nodes of a called pass are in the box of their caller until that is opened", () => {
  const boxesOf = (...open: number[]) =>
    [...composed(page, parts, 0, new Set(open)).boxOf].slice(0, 3);

  assert.deepEqual(boxesOf(), [0, 0, 0]);
  assert.deepEqual(boxesOf(0), [-1, 2, 2]);
  assert.deepEqual(boxesOf(0, 2), [-1, -1, 3]);
});
