import assert from "node:assert/strict";
import { test } from "node:test";

import type { Page } from "../../../gradviz/render/page/source/data.ts";
import { progressOf, Stage } from "../../../gradviz/render/page/source/progress.ts";

/* Node 0 waits for two gradients, at events 1 and 2, is queued from 3 to 5 and runs from
   6 to 8; node 1 begins at 9 and fails at 10; node 2 begins at 11 and never ends. */
const page = {
  header: { statuses: ["completed", "captured", "failed", "unfinished"] },
  nodes: { length: 4 },
  gradients: {
    task: Int32Array.of(0, 0, 1),
    node: Int32Array.of(0, 0, 3),
    remaining: Int32Array.of(1, 0, 5),
    at: Int32Array.of(1, 2, 2),
    until: Int32Array.of(6, 6, -1),
    length: 3,
  },
  stays: {
    task: Int32Array.of(0),
    node: Int32Array.of(0),
    pushed: Int32Array.of(3),
    popped: Int32Array.of(5),
    length: 1,
  },
  runs: {
    task: Int32Array.of(0, 0, 0),
    node: Int32Array.of(0, 1, 2),
    begin: Int32Array.of(6, 9, 11),
    end: Int32Array.of(8, 10, -1),
    status: Int32Array.of(0, 2, 3),
    length: 3,
  },
} as unknown as Page;

test("a node waits, is queued, runs and is done, each from its event on", () => {
  const at = progressOf(page, 0);

  const stages = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((moment) => at(moment).stage[0]);
  assert.deepEqual(stages, [
    Stage.None,
    Stage.Waits,
    Stage.Waits,
    Stage.Queued,
    Stage.Queued,
    Stage.Waits,
    Stage.Runs,
    Stage.Runs,
    Stage.Done,
  ]);
});

test("a countdown is that of the last gradient, and over when the node begins", () => {
  const at = progressOf(page, 0);

  assert.deepEqual(
    [0, 1, 2, 6].map((moment) => at(moment).remaining[0]),
    [0, 1, 0, 0],
  );
});

test("what failed has failed, and what never ended runs until the pass is over", () => {
  const at = progressOf(page, 0);

  assert.deepEqual(
    [9, 10, 12].map((moment) => at(moment).stage[1]),
    [Stage.Runs, Stage.Failed, Stage.Failed],
  );
  assert.equal(at(12).stage[2], Stage.Runs);
});

test("another pass says nothing of a node", () => {
  assert.equal(progressOf(page, 0)(5).stage[3], Stage.None);
  assert.equal(progressOf(page, 1)(5).stage[3], Stage.Waits);
});
