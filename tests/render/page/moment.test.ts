/* What the page tells of moments is what the state machine in Python does; see
`test_moments.py`, which writes both down. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { readPage } from "../../../gradviz/render/page/source/data.ts";
import { historyOf } from "../../../gradviz/render/page/source/history.ts";
import { momentAt } from "../../../gradviz/render/page/source/moment.ts";
import {
  countdownInWords,
  stageInWords,
} from "../../../gradviz/render/page/source/moment_words.ts";
import { progressOf } from "../../../gradviz/render/page/source/progress.ts";
import { named } from "./named.ts";

interface Told {
  name: string;
  data: string;
  moments: {
    at: number;
    /** Of each queue the pass and the node of its tasks, in order. */
    queues: Record<string, [number, number][]>;
    /** Of each thread the pass and the node of what it runs, the innermost last. */
    running: Record<string, [number, number][]>;
    asleep: Record<string, number>;
    /** Pass, node, how many are missing, the producers of those that came,
     * and that in words. */
    countdowns: [number, number, number, number[], string][];
    /** Of each pass the stage of each node, for how many gradients it waits, and both
     * in words. */
    stages: [string, number, string][][];
  }[];
}

const path = process.env.MOMENTS;
const all: Told[] = path ? JSON.parse(readFileSync(path, "utf8")) : [];

for (const told of all) {
  test(`the moments of ${told.name} are those of the state machine`, async () => {
    const page = await readPage(told.data);
    const history = historyOf(page);
    const progress = page.header.passes.map((_, task) => progressOf(page, task));
    for (const wanted of told.moments) {
      const { queued, running, gradients } = history;
      const found = momentAt(history, wanted.at);
      const called = (node: number, task: number) => named(page, { node }, task);
      const placed = (
        places: ReadonlyMap<number, readonly number[]>,
        of: { task: Int32Array; node: Int32Array },
      ) =>
        Object.fromEntries(
          [...places].map(([key, some]) => [
            key,
            some.map((place) => [of.task[place], of.node[place]]),
          ]),
        );
      assert.deepEqual(
        {
          at: found.seq,
          queues: placed(found.queues, queued),
          running: placed(found.running, running),
          asleep: Object.fromEntries(found.asleep),
          countdowns: found.countdowns.map((one) => [
            one.task,
            one.node,
            one.remaining,
            one.gradients.map((place) => gradients.producer[place]),
            `${called(one.node, one.task)} ${countdownInWords(page, gradients, one, called, Infinity)}`,
          ]),
          stages: progress.map((to) => {
            const { stage, remaining } = to(wanted.at);
            return [...stage].map((one, node) => [
              page.header.stages[one],
              remaining[node],
              stageInWords(page.header, one, remaining[node]),
            ]);
          }),
        },
        wanted,
      );
    }
  });
}
