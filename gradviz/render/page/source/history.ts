/* What a page needs to tell any moment, from its tables. */

import type { Numbers, Page } from "./data.ts";
import type { History } from "./moment.ts";
import { firstAbove, firstAtLeast } from "./sorted.ts";
import { indexed, NEVER } from "./spans.ts";

export function historyOf({ stays, runs, sleeps, gradients, events }: Page): History {
  // Runs whose begin is no event are none that the engine is known to have begun.
  const known = Uint32Array.from(runs.begin.keys()).filter(
    (run) => runs.begin[run] >= 0,
  );
  const pick = (column: Numbers): Int32Array =>
    Int32Array.from(known, (run) => column[run]);
  // From the first event after a thread fell asleep to the first when it had woken up.
  const asleep = Uint32Array.from(sleeps.begin_ns.keys());
  asleep.sort((a, b) => sleeps.begin_ns[a] - sleeps.begin_ns[b]);
  const moments = (times: Numbers, momentOf: (time: number) => number): Uint32Array =>
    Uint32Array.from(asleep, (sleep) => momentOf(times[sleep]));
  const last = events.at_ns[events.length - 1];
  return {
    queued: {
      ...indexed(Uint32Array.from(stays.pushed), ends(stays.popped)),
      task: Int32Array.from(stays.task),
      node: Int32Array.from(stays.node),
      queue: Int32Array.from(stays.queue),
      what: Uint8Array.from(stays.what),
      turn: turnsOf(stays),
    },
    running: {
      ...indexed(Uint32Array.from(pick(runs.begin)), ends(pick(runs.end))),
      task: pick(runs.task),
      node: pick(runs.node),
      thread: pick(runs.thread),
    },
    asleep: {
      ...indexed(
        // Those that go on beyond what is told are told up to its edges.
        moments(sleeps.begin_ns, (time) =>
          time <= 0 ? 0 : firstAbove(events.at_ns, time),
        ),
        moments(sleeps.end_ns, (time) =>
          time >= last ? NEVER : firstAtLeast(events.at_ns, time),
        ),
      ),
      thread: Int32Array.from(asleep, (sleep) => sleeps.thread[sleep]),
      queue: Int32Array.from(asleep, (sleep) => sleeps.queue[sleep]),
    },
    gradients: {
      ...indexed(Uint32Array.from(gradients.at), ends(gradients.until)),
      task: Int32Array.from(gradients.task),
      node: Int32Array.from(gradients.node),
      producer: Int32Array.from(gradients.producer),
      inputNr: Int32Array.from(gradients.input_nr),
      remaining: Int32Array.from(gradients.remaining),
    },
  };
}

const WAKE_UP = 2;

/** The place of each task in the order in which all would be popped from one queue. */
function turnsOf({ what, depth, sequence_nr: number, popped, length }: Page["stays"]) {
  // The sequence number of every AccumulateGrad is -1, which is the largest.
  const rank = Float64Array.from(number, (one) => (one < 0 ? Number.MAX_VALUE : one));
  const end = ends(popped);
  const inTurn = Uint32Array.from({ length }, (_, stay) => stay).sort(
    (a, b) =>
      Number(what[a] !== WAKE_UP) - Number(what[b] !== WAKE_UP) ||
      // Of wake-ups none goes first, however deep their passes are.
      (what[a] !== WAKE_UP && depth[b] - depth[a]) ||
      rank[b] - rank[a] ||
      // Of equals, whose order is that of a heap, what was indeed popped first.
      end[a] - end[b] ||
      a - b,
  );
  const turns = new Int32Array(length);
  inTurn.forEach((stay, turn) => (turns[stay] = turn));
  return turns;
}

function ends(column: Numbers): Uint32Array {
  return Uint32Array.from(column, (event) => (event < 0 ? NEVER : event));
}
