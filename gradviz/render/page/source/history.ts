/* What a page needs to tell any moment, from its tables. */

import type { Numbers, Page } from "./data.ts";
import type { History } from "./moment.ts";
import { indexed, NEVER } from "./spans.ts";

export function historyOf({ stays, runs, sleeps, gradients }: Page): History {
  // Runs whose begin is no event are none that the engine is known to have begun.
  const known = Uint32Array.from(runs.begin.keys()).filter(
    (run) => runs.begin[run] >= 0,
  );
  const pick = (column: Numbers): Int32Array =>
    Int32Array.from(known, (run) => column[run]);
  return {
    queued: {
      ...indexed(Uint32Array.from(stays.pushed), ends(stays.popped)),
      task: Int32Array.from(stays.task),
      node: Int32Array.from(stays.node),
      queue: Int32Array.from(stays.queue),
      what: Uint8Array.from(stays.what),
      turn: Int32Array.from(stays.turn),
    },
    running: {
      ...indexed(Uint32Array.from(pick(runs.begin)), ends(pick(runs.end))),
      task: pick(runs.task),
      node: pick(runs.node),
      thread: pick(runs.thread),
    },
    asleep: {
      ...indexed(Uint32Array.from(sleeps.begin), ends(sleeps.end)),
      thread: Int32Array.from(sleeps.thread),
      queue: Int32Array.from(sleeps.queue),
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

function ends(column: Numbers): Uint32Array {
  return Uint32Array.from(column, (event) => (event < 0 ? NEVER : event));
}
