import assert from "node:assert/strict";
import { test } from "node:test";

import type { Page } from "../../../gradviz/render/page/source/data.ts";
import {
  drawnOf,
  streamWaitsOf,
} from "../../../gradviz/render/page/source/stream_waits.ts";
import { tableOf } from "./tables.ts";

/** Kernels 0 and 1 of lane 4, 2 and 3 of lane 5; 3 waited for 0, and 1 for 2. */
const page = {
  kernels: tableOf({ begin_ns: [0, 60, 10, 30], end_ns: [20, 90, 50, 70] }),
  kernel_waits: tableOf({ kernel: [1, 3], awaited: [2, 0] }),
} as unknown as Page;
const waits = streamWaitsOf(page, (kernel) => (kernel < 2 ? 4 : 5));

test("an arrow goes from the end of what was waited for to the begin of what waited", () => {
  assert.deepEqual([...waits.ready], [20, 50]);
  assert.deepEqual([...waits.began], [30, 60]);
  assert.deepEqual([...waits.from], [4, 5]);
  assert.deepEqual([...waits.to], [5, 4]);
});

test("those are drawn that are wholly in the time that is seen", () => {
  assert.deepEqual(drawnOf(waits, 0, 100, 1), [0, 1]);
  assert.deepEqual(drawnOf(waits, 20, 59, 1), [0]);
  assert.deepEqual(drawnOf(waits, 21, 100, 1), [1]);
  assert.deepEqual(drawnOf(waits, 21, 59, 1), []);
});

test("of those between the same pixels one is drawn, and of very many some", () => {
  const many = Array.from({ length: 50_000 }, (_, at) => at);
  const all = {
    ready: Float64Array.from(many),
    began: Float64Array.from(many, (at) => at + 1),
    from: Int32Array.from(many, (at) => at % 2),
    to: Int32Array.from(many, (at) => 1 - (at % 2)),
  };
  assert.equal(drawnOf(all, 0, 90, 1000).length, 2);
  const drawn = drawnOf(all, 0, 60_000, 1);
  assert.ok(drawn.length === 300, `${drawn.length}`);
});
