import assert from "node:assert/strict";
import { test } from "node:test";

import type { Page } from "../../../gradviz/render/page/source/data.ts";
import {
  calledIn,
  numberingOf,
} from "../../../gradviz/render/page/source/numbering.ts";

test("a leaf of two passes has the number of its place in each", () => {
  const names = ["", "MulBackward0", "AccumulateGrad"];
  const page = {
    header: { passes: [{ whole: 4 }, { whole: 5 }] },
    // Nodes 0 and 1 run in the first pass, then 2 and again 1 in the second; 3 never.
    nodes: { length: 4, name: Int32Array.of(1, 2, 1, 1) },
    runs: {
      length: 5,
      node: Int32Array.of(0, 1, 2, 0, 1),
      task: Int32Array.of(0, 0, 1, 1, 1),
    },
    text: (place: number) => names[place],
  } as unknown as Page;
  const numbers = numberingOf(page);

  assert.deepEqual([...numbers.ofRun], [0, 1, 0, 1, 2]);
  assert.deepEqual([numbers.of(1, 0), numbers.of(1, 1), numbers.of(3, 0)], [1, 2, -1]);
  assert.equal(calledIn(page, 1, 1), "2 AccumulateGrad");
  assert.equal(calledIn(page, 3, 0), "Mul");
});

test("parts of workers are numbered together, as the pass that they are", () => {
  const page = {
    header: { passes: [{ whole: 4 }, { whole: 4 }] },
    nodes: { length: 3, name: Int32Array.of(0, 0, 0) },
    runs: { length: 3, node: Int32Array.of(0, 1, 2), task: Int32Array.of(0, 1, 0) },
    text: () => "",
  } as unknown as Page;

  assert.deepEqual([...numberingOf(page).ofRun], [0, 1, 2]);
});
