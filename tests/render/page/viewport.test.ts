import assert from "node:assert/strict";
import { test } from "node:test";

import { moment, ticks } from "../../../gradviz/render/page/source/ticks.ts";
import {
  around,
  panned,
  pixelOf,
  showing,
  timeOf,
  whole,
  zoomed,
} from "../../../gradviz/render/page/source/viewport.ts";

test("what lies under the pointer stays there while one looks closer", () => {
  const view = whole(1_000_000, 500);
  const closer = zoomed(view, 8, 123);

  assert.ok(Math.abs(timeOf(closer, 123) - timeOf(view, 123)) < 1e-6);
  assert.equal(closer.until - closer.from, 125_000);
});

test("nobody looks beyond the begin or the end", () => {
  const view = zoomed(whole(1000, 100), 2, 50);

  assert.equal(panned(view, -10_000).from, 0);
  assert.equal(panned(view, 10_000).until, 1000);
  assert.deepEqual(zoomed(view, 1e-9), whole(1000, 100));
});

test("nobody looks closer than is sensible, and a pass of no length can be looked at", () => {
  const closest = zoomed(whole(1_000_000, 100), 1e12);

  assert.equal(closest.until - closest.from, 100);
  assert.equal(whole(0, 100).until, 100);
});

test("a moment that is seen moves nothing", () => {
  const view = zoomed(whole(1000, 100), 5, 0);

  assert.equal(showing(view, 150), view);
  assert.deepEqual([showing(view, 700).from, showing(view, 700).until], [600, 800]);
  assert.equal(showing(view, 990).until, 1000);
});

test("what is looked at lies in the middle", () => {
  const view = around(whole(100_000, 100), 40_000, 50_000);

  assert.ok(Math.abs(pixelOf(view, 45_000) - 50) < 1e-9);
  assert.ok(view.from < 40_000 && view.until > 50_000);
});

test("marks are round numbers, written as exactly as their distance needs", () => {
  const { at, step } = ticks(1_200_000, 1_300_000, 6);

  assert.equal(step, 20_000);
  assert.deepEqual(
    at.map((one) => moment(one, step)),
    ["1.20 ms", "1.22 ms", "1.24 ms", "1.26 ms", "1.28 ms", "1.30 ms"],
  );
  assert.equal(moment(2_000_000_000, 500_000_000), "2.0 s");
});
