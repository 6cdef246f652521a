import assert from "node:assert/strict";
import { test } from "node:test";

import type { Page } from "../../../gradviz/render/page/source/data.ts";
import { progressOf, Stage } from "../../../gradviz/render/page/source/progress.ts";
import { random } from "./random.ts";
import { tableOf } from "./tables.ts";

/* Node 0 waits for two gradients, at events 1 and 2, is queued from 3 to 5 and runs from
   6 to 8; node 1 begins at 9 and fails at 10; node 2 begins at 11 and never ends. */
const page = {
  header: { statuses: ["completed", "captured", "failed", "unfinished"] },
  nodes: { length: 4 },
  events: { length: 13 },
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

/** Passes in which things begin and end at any event, and some never end. */
function wild(chance: () => number): Page {
  const below = (end: number) => Math.floor(chance() * end);
  function table(columns: Record<string, () => number>, begin: string, end: string) {
    const begun = Array.from({ length: 20 }, () => below(40)).sort((a, b) => a - b);
    const ended = begun.map((at) => (chance() < 0.2 ? -1 : at + below(40 - at)));
    const others = Object.entries({ task: () => below(2), node: () => below(6), ...columns });
    return tableOf({
      ...Object.fromEntries(others.map(([name, make]) => [name, begun.map(make)])),
      [begin]: begun,
      [end]: ended,
    });
  }
  return {
    header: { statuses: ["completed", "captured", "failed", "unfinished"] },
    nodes: { length: 6 },
    events: { length: 40 },
    gradients: table({ remaining: () => below(4) }, "at", "until"),
    stays: table({ node: () => below(7) - 1 }, "pushed", "popped"),
    runs: table({ status: () => below(4) }, "begin", "end"),
  } as unknown as Page;
}

/** The stage of a node and for how many it waits, of all rows that say something of it. */
function lookedUp({ gradients, stays, runs }: Page, task: number, node: number, moment: number) {
  const has = (event: number) => moment < 0 || event <= moment;
  const isOver = (event: number) => event >= 0 && has(event);
  function rowsOf({ task: of, node: ran, length }: Page["runs"] | Page["stays"] | Page["gradients"]) {
    return [...Array(length).keys()].filter((row) => of[row] === task && ran[row] === node);
  }
  const began = rowsOf(runs).filter((row) => has(runs.begin[row]));
  const ended = began.filter((row) => isOver(runs.end[row]) || (moment < 0 && runs.end[row] < 0));
  const given = rowsOf(gradients).filter((row) => has(gradients.at[row]));
  const isHeld = given.some((row) => !isOver(gradients.until[row]));
  const isQueued = rowsOf(stays).some((row) => has(stays.pushed[row]) && !isOver(stays.popped[row]));
  const stage = ended.some((row) => runs.status[row] === 2)
    ? Stage.Failed
    : ended.length
      ? Stage.Done
      : began.length
        ? Stage.Runs
        : isQueued
          ? Stage.Queued
          : isHeld
            ? Stage.Waits
            : Stage.None;
  return [stage, isHeld ? gradients.remaining[given.at(-1)!] : 0];
}

test("a moment is the same from wherever one comes to it", () => {
  const chance = random(3);
  for (let round = 0; round < 20; round++) {
    const page = wild(chance);
    for (const task of [0, 1]) {
      const at = progressOf(page, task);
      for (let step = 0; step < 60; step++) {
        const moment = Math.floor(chance() * 41) - 1;
        const { stage, remaining } = at(moment);
        for (let node = 0; node < page.nodes.length; node++) {
          const found = [stage[node], remaining[node]];
          assert.deepEqual(found, lookedUp(page, task, node, moment), `${task} ${node} ${moment}`);
        }
      }
    }
  }
});
