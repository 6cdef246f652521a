import assert from "node:assert/strict";
import { test } from "node:test";

import type { Page } from "../../../gradviz/render/page/source/data.ts";
import {
  progressOf,
  stageKinds,
} from "../../../gradviz/render/page/source/progress.ts";
import { random } from "./random.ts";
import { tableOf } from "./tables.ts";

const STAGES = ["not reached", "waiting", "queued", "running", "completed", "captured"];
const NUM_NODES = 6;
const NUM_EVENTS = 40;

/** Passes in which anything becomes of any node, at its events and at others. */
function wild(chance: () => number): Page {
  const below = (end: number) => Math.floor(chance() * end);
  const many = (length: number, make: () => number) => Array.from({ length }, make);
  const events = tableOf({
    task: many(NUM_EVENTS, () => below(2)),
    node: many(NUM_EVENTS, () => below(NUM_NODES)),
    stage: many(NUM_EVENTS, () => below(STAGES.length + 1) - 1),
  });
  const given = [...Array(NUM_EVENTS).keys()].filter(() => chance() < 0.3);
  return {
    header: { stages: STAGES },
    nodes: { length: NUM_NODES },
    events,
    gradients: tableOf({ at: given, remaining: given.map(() => below(4)) }),
    endings: tableOf({
      task: [0, 1, 0],
      node: [0, 0, 1],
      at: [NUM_EVENTS, 25, 10],
      stage: [4, 3, 2],
      remaining: [0, 0, 2],
    }),
  } as unknown as Page;
}

/** The stage of a node and for how many it waits, by all that is said of it. */
function lookedUp(page: Page, task: number, node: number, moment: number): number[] {
  const { events, endings, gradients } = page;
  let [stage, remaining] = [0, 0];
  const last = moment < 0 ? NUM_EVENTS : moment;
  for (let at = 0; at <= last; at++) {
    if (events.task[at] === task && events.node[at] === node && events.stage[at] >= 0) {
      stage = events.stage[at];
      remaining = gradients.remaining[gradients.at.indexOf(at)] ?? 0;
    }
    for (let row = 0; row < endings.length; row++)
      if (
        endings.at[row] === at &&
        endings.task[row] === task &&
        endings.node[row] === node
      )
        [stage, remaining] = [endings.stage[row], endings.remaining[row]];
  }
  return [stage, remaining];
}

test("a moment is the same from wherever one comes to it", () => {
  const chance = random(3);
  for (let round = 0; round < 20; round++) {
    const page = wild(chance);
    for (const task of [0, 1]) {
      const at = progressOf(page, task);
      for (let step = 0; step < 60; step++) {
        const moment = Math.floor(chance() * (NUM_EVENTS + 1)) - 1;
        const { stage, remaining } = at(moment);
        for (let node = 0; node < NUM_NODES; node++)
          assert.deepEqual(
            [stage[node], remaining[node]],
            lookedUp(page, task, node, moment),
            `${task} ${node} ${moment}`,
          );
      }
    }
  }
});

test("what has not begun to run has not run, and what was captured is done", () => {
  const { isDone, hasRun, captured } = stageKinds({ stages: STAGES } as Page["header"]);

  assert.deepEqual(isDone, [false, false, false, false, true, true]);
  assert.deepEqual(hasRun, [false, false, false, true, true, true]);
  assert.equal(STAGES[captured], "captured");
});
