/* What has become of the nodes of a pass at a moment.

Note [Going to a moment]
~~~~~~~~~~~~~~~~~~~~~~~~
Python says of each event what its node becomes (`node_tables.py`), so that a stage is a
place in `header.stages` and no rule of stages stands here. Who knows a moment gets to
another one by the changes between the two, forwards or, each taken back, backwards: the
next frame of a replay takes as long as that frame has events, however many the pass has. */

import type { Header, Page } from "./data.ts";

export interface Progress {
  /** The stage of each node: a place in `header.stages`. */
  readonly stage: Uint8Array;
  /** For how many more gradients each waits; 0 of those that wait for none. */
  readonly remaining: Int32Array;
}

/** The changes of the nodes of a pass, in the order of their moments. */
interface Changes {
  readonly at: Int32Array;
  readonly node: Int32Array;
  readonly stage: Uint8Array;
  readonly remaining: Int32Array;
  /** The change of the same node before, -1 for none. */
  readonly before: Int32Array;
}

/** Goes to the state of some passes right after an event; -1: after all of them.
 *
 * What it gives is the same value every time, with other numbers in it. */
export function progressOf(
  page: Page,
  ...tasks: number[]
): (moment: number) => Progress {
  const stage = new Uint8Array(page.nodes.length);
  const remaining = new Int32Array(page.nodes.length);
  let changes: Changes | undefined;
  let reached = 0;
  return (moment) => {
    changes ??= changesOf(page, tasks);
    const { at, node, before } = changes;
    const put = (place: number, change: number) => {
      stage[place] = change < 0 ? 0 : changes!.stage[change];
      remaining[place] = change < 0 ? 0 : changes!.remaining[change];
    };
    const wanted = moment < 0 ? Infinity : moment;
    for (; reached < at.length && at[reached] <= wanted; reached++)
      put(node[reached], reached);
    for (; reached > 0 && at[reached - 1] > wanted; reached--)
      put(node[reached - 1], before[reached - 1]);
    return { stage, remaining };
  };
}

function changesOf(
  { events, endings, gradients, nodes }: Page,
  tasks: readonly number[],
): Changes {
  const own: number[] = [];
  for (let event = 0; event < events.length; event++)
    if (tasks.includes(events.task[event]) && events.stage[event] >= 0) own.push(event);
  const ended = [...endings.at.keys()].filter((row) =>
    tasks.includes(endings.task[row]),
  );
  // Those of one moment are of different nodes: their order says nothing.
  const order = [...own.keys(), ...ended.map((_, row) => own.length + row)];
  const momentOf = (one: number) => own[one] ?? endings.at[ended[one - own.length]];
  if (ended.length) order.sort((one, other) => momentOf(one) - momentOf(other));
  const waits = new Int32Array(events.length);
  for (let row = 0; row < gradients.length; row++)
    waits[gradients.at[row]] = gradients.remaining[row];

  const pick = (ofEvent: (event: number) => number, ofEnding: ArrayLike<number>) =>
    Int32Array.from(order, (one) =>
      one < own.length ? ofEvent(own[one]) : ofEnding[ended[one - own.length]],
    );
  const node = pick((event) => events.node[event], endings.node);
  const last = new Int32Array(nodes.length).fill(-1);
  const before = node.map((one, change) => {
    const known = last[one];
    last[one] = change;
    return known;
  });
  return {
    at: pick((event) => event, endings.at),
    node,
    stage: Uint8Array.from(pick((event) => events.stage[event], endings.stage)),
    remaining: pick((event) => waits[event], endings.remaining),
    before,
  };
}

/** What pictures tell apart of the stages: of each stage whether it is that. */
export interface StageKinds {
  /** The node was evaluated, or only had its gradient captured, or raised. */
  readonly isDone: readonly boolean[];
  /** It is done, or was at least begun. */
  readonly hasRun: readonly boolean[];
  readonly running: number;
  readonly queued: number;
  readonly failed: number;
  readonly captured: number;
}

export function stageKinds({ stages }: Header): StageKinds {
  const [running, queued, failed, captured, completed] = [
    ...(["running", "queued", "failed", "captured", "completed"] as const),
  ].map((name) => stages.indexOf(name));
  const isDone = stages.map((_, at) => [completed, captured, failed].includes(at));
  const hasRun = stages.map((_, at) => isDone[at] || at === running);
  return { isDone, hasRun, running, queued, failed, captured };
}
