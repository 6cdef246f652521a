/* What the page tells of moments is what the state machine in Python does; see
`test_moments.py`, which writes both down. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { readPage } from "../../../gradviz/render/page/source/data.ts";
import { historyOf } from "../../../gradviz/render/page/source/history.ts";
import { momentAt } from "../../../gradviz/render/page/source/moment.ts";

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
    /** Pass, node, how many are missing, the producers of those that came. */
    countdowns: [number, number, number, number[]][];
  }[];
}

const path = process.env["MOMENTS"];
const all: Told[] = path ? JSON.parse(readFileSync(path, "utf8")) : [];

for (const told of all) {
  test(`the moments of ${told.name} are those of the state machine`, async () => {
    const history = historyOf(await readPage(told.data));
    for (const wanted of told.moments) {
      const { queued, running, gradients } = history;
      const found = momentAt(history, wanted.at);
      const named = (
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
          queues: named(found.queues, queued),
          running: named(found.running, running),
          asleep: Object.fromEntries(found.asleep),
          countdowns: found.countdowns.map((one) => [
            one.task,
            one.node,
            one.remaining,
            one.gradients.map((place) => gradients.producer[place]),
          ]),
        },
        wanted,
      );
    }
  });
}
