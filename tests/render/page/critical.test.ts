import assert from "node:assert/strict";
import { test } from "node:test";

import { crossingsOf } from "../../../gradviz/render/page/source/critical.ts";

function told(end: number[], lane: number[], numLanes: number) {
  const { time, from, to } = crossingsOf(Int32Array.from(end), lane, numLanes);
  return Array.from(time, (one, at) => [one, from[at], to[at]]);
}

test("the path goes to another lane where a segment of one is followed by one of that", () => {
  assert.deepEqual(told([10, 20, 35, 50], [0, 0, 2, 1], 3), [
    [20, 0, 2],
    [35, 2, 1],
  ]);
});

test("where it is on no lane that is shown it goes nowhere", () => {
  assert.deepEqual(told([10, 20, 30, 40], [0, 2, 1, 1], 2), []);
  assert.deepEqual(told([], [], 2), []);
});
