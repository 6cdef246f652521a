/* Why a node ran when it did, in sentences: those of `gradviz explain`, from the tables.

Nothing here is guessed. What threads did in passes that are not on the page, only
`explain` tells. */

import { calledIn } from "./calls.ts";
import { chained, type Chains, rowsOf } from "./chains.ts";
import type { Page } from "./data.ts";
import { goesOn } from "./events.ts";
import { count, duration } from "./words.ts";

const WAKE_UP = 2;
const ROOT = 1;
/** So many of each list are told; see `MAX_TOLD` of `explanation.py`. */
const MOST = 10;
/** What takes less is taken to have run all of it; see `processor_time.py`. */
const SHORT_NS = 100_000;

/** A sentence: words, and the nodes and passes that it names, by their places. */
export type Sentence = readonly (string | Named)[];
export type Named = { readonly node: number } | { readonly pass: number };

/** The rows that tell of each node. */
export interface Stories {
  readonly runs: Chains;
  readonly stays: Chains;
  readonly given: Chains;
  readonly handed: Chains;
  readonly events: Chains;
  readonly costs: Chains;
  readonly streamWaits: Chains;
  readonly crossings: Chains;
  /** The stays of each queue, in the order in which they came. */
  readonly queues: ReadonlyMap<number, readonly number[]>;
}

export function storiesOf(page: Page): Stories {
  const { runs, stays, gradients, events, costs, nodes } = page;
  const queues = new Map<number, number[]>();
  for (let row = 0; row < stays.length; row++) {
    const own = queues.get(stays.queue[row]);
    if (own) own.push(row);
    else queues.set(stays.queue[row], [row]);
  }
  return {
    runs: chained(runs.node, nodes.length),
    stays: chained(stays.node, nodes.length),
    given: chained(gradients.node, nodes.length),
    handed: chained(gradients.producer, nodes.length),
    events: chained(events.node, nodes.length),
    costs: chained(costs.node, nodes.length),
    streamWaits: chained(page.stream_waits.node, nodes.length),
    crossings: chained(page.crossings.node, nodes.length),
    queues,
  };
}

export function explained(
  page: Page,
  stories: Stories,
  task: number,
  node: number,
): Sentence[] {
  const found: Sentence[] = [];
  const { gradients, stays, runs } = page;
  const given = ofTask(rowsOf(stories.given, node), gradients.task, task);
  const stay = ofTask(rowsOf(stories.stays, node), stays.task, task)[0] ?? -1;
  const run = ofTask(rowsOf(stories.runs, node), runs.task, task)[0] ?? -1;
  const came = crossings(page, stories, task, node, 0);
  if (came.length) found.push(...came);
  else if (stay >= 0 && stays.what[stay] === ROOT) found.push(["The pass began with it."]);
  if (given.length) found.push(arrivals(page, task, given));
  if (stay >= 0) {
    found.push(queued(page, task, stay, run));
    const ahead = overtaken(page, stories, stay);
    if (ahead.length) found.push(["Before it left: ", ...ahead, "."]);
  }
  const waits = ofTask(rowsOf(stories.streamWaits, node), page.stream_waits.task, task);
  if (waits.length) {
    const producers = waits.slice(0, MOST).map((row) => page.stream_waits.producer[row]);
    found.push(["Its stream had to wait for the work of ", ...listed(producers), "."]);
  }
  if (run < 0) found.push(absent(page, stories, task, node));
  else found.push(...evaluation(page, task, run));
  found.push(...crossings(page, stories, task, node, 1));
  const handed = ofTask(rowsOf(stories.handed, node), gradients.task, task).filter(
    (row) => gradients.remaining[row] === 0,
  );
  if (handed.length) {
    const receivers = handed.map((row) => gradients.node[row]);
    found.push(["It gave the last gradient to ", ...listed(receivers), "."]);
  }
  found.push(...costs(page, stories, task, node));
  return found;
}

/** From which worker its gradient came, or to which it sent one, as `crossing_text.py`. */
function crossings(
  { crossings: table, text }: Page,
  stories: Stories,
  task: number,
  node: number,
  hasLeft: number,
): Sentence[] {
  return ofTask(rowsOf(stories.crossings, node), table.task, task)
    .filter((row) => table.has_left[row] === hasLeft)
    .map((row): Sentence => {
      const [before, other, after] = [table.before[row], table.other[row], table.after[row]];
      return other < 0
        ? [`${text(before)}${text(after)}`]
        : [text(before), { node: other }, text(after)];
    });
}

function arrivals(page: Page, task: number, given: readonly number[]): Sentence {
  const { gradients } = page;
  const last = given[given.length - 1];
  const after = duration(since(page, task, gradients.at[last]));
  const left = gradients.remaining[last];
  const waits = left ? `; it waits for ${left} more` : "";
  const many = `It was given ${count(given.length, "gradient")}`;
  const producer = by(gradients.producer[last]);
  if (given.length === 1)
    return [`${many}, by `, producer, `, ${after} after the pass began${waits}.`];
  if (left) return [`${many}; the last one came from `, producer, `, ${after} after the pass began${waits}.`];
  const before = given[given.length - 2];
  const later = duration(
    page.events.at_ns[gradients.at[last]] - page.events.at_ns[gradients.at[before]],
  );
  return [
    `${many}; the last one came from `,
    producer,
    `, ${after} after the pass began, ${later} after that of `,
    by(gradients.producer[before]),
    ".",
  ];
}

function queued(page: Page, task: number, stay: number, run: number): Sentence {
  const { stays, header, events, runs } = page;
  const name = header.queues.find(({ id }) => id === stays.queue[stay])?.name ?? "?";
  const where = `It was pushed to the queue of ${name} `;
  const pushed: Sentence =
    stays.pushed_by[stay] < 0 ? [where] : [where, "by ", { node: stays.pushed_by[stay] }, " "];
  if (stays.popped[stay] < 0 || stays.popped_by[stay] < 0) {
    const left = goesOn(page, task) ? "was still there where this page ends" : "never left it";
    return [...pushed, `after ${duration(since(page, task, stays.pushed[stay]))} and ${left}.`];
  }
  const lay = events.at_ns[stays.popped[stay]] - events.at_ns[stays.pushed[stay]];
  const between =
    stays.thread[stay] === stays.popped_by[stay]
      ? ""
      : `, pushed by ${threadName(page, stays.thread[stay])} and popped by ` +
        threadName(page, stays.popped_by[stay]);
  const thread = run < 0 ? -1 : runs.thread[run];
  const [busy, slept] = [busyNs(page, thread, stay), sleptNs(page, thread, stay)];
  const parts = [
    ...(busy ? [`ran other nodes for ${duration(busy)}`] : []),
    ...(slept ? [`woke up ${duration(slept)} later`] : []),
  ];
  const meanwhile = parts.length ? `; thread ${thread} ${parts.join(" and ")}` : "";
  return [...pushed, `and lay there for ${duration(lay)}${between}${meanwhile}.`];
}

/** How long a thread ran other nodes, that were done by then, before it took a task. */
function busyNs({ stays, events, runs }: Page, thread: number, stay: number): number {
  const begin = events.at_ns[stays.pushed[stay]];
  const end = events.at_ns[stays.popped[stay]];
  let [reached, busy] = [begin, 0];
  for (let run = 0; run < runs.length; run++) {
    // One that is about to end, because it pushed the task there, is not meant.
    const isPusher =
      runs.node[run] === stays.pushed_by[stay] && runs.task[run] === stays.task[stay];
    if (runs.thread[run] !== thread || isPusher) continue;
    if (runs.end_ns[run] <= begin || runs.end_ns[run] > end) continue;
    // What lies inside of another one counts once; runs are in order of start.
    busy += Math.max(runs.end_ns[run] - Math.max(runs.start_ns[run], reached), 0);
    reached = Math.max(reached, runs.end_ns[run]);
  }
  return busy;
}

/** How long after a push the thread woke that slept by then. */
function sleptNs({ stays, events, sleeps }: Page, thread: number, stay: number): number {
  const begin = events.at_ns[stays.pushed[stay]];
  const end = events.at_ns[stays.popped[stay]];
  let slept = 0;
  for (let row = 0; row < sleeps.length; row++) {
    const woken = sleeps.end_ns[row];
    const isMeant = woken > begin && woken <= end && sleeps.begin_ns[row] <= begin;
    if (isMeant && sleeps.thread[row] === thread) slept = Math.max(slept, woken - begin);
  }
  return slept;
}

/** What left its queue while it lay there, those of one reason together. */
function overtaken(page: Page, { queues }: Stories, stay: number): Sentence {
  const { stays } = page;
  const [from, until] = [stays.pushed[stay], stays.popped[stay]];
  if (until < 0 || stays.popped_by[stay] < 0) return [];
  const ahead = (queues.get(stays.queue[stay]) ?? []).filter(
    (other) => stays.popped[other] > from && stays.popped[other] < until,
  );
  ahead.sort((one, other) => stays.popped[one] - stays.popped[other]);
  const total = ahead.length;
  const reasons = new Map<string, number[]>();
  for (const other of ahead.slice(0, MOST)) {
    const why = reason(page, other, stay);
    reasons.set(why, [...(reasons.get(why) ?? []), stays.node[other]]);
  }
  const parts = [...reasons].map(
    ([why, nodes]): Sentence => [...listed(nodes), ` (${why})`],
  );
  const joined = parts.flatMap((part, at): Sentence => (at ? ["; ", ...part] : part));
  return total > MOST ? [...joined, `; and ${total - MOST} more`] : joined;
}

function reason({ stays, header }: Page, one: number, other: number): string {
  if (stays.what[one] === WAKE_UP) return "a wake-up goes first";
  const deeper = stays.depth[one] - stays.depth[other];
  if (deeper > 0) return `pass ${header.passes[stays.task[one]]?.task} is nested deeper`;
  const [mine, its] = [rank(stays.sequence_nr[one]), rank(stays.sequence_nr[other])];
  if (deeper < 0 || mine < its) return "not by PyTorch's order";
  return mine > its ? "made later by the forward" : "equal to it, and on top of the heap";
}

/** How a node ran, and how it usually does. */
function evaluation(page: Page, task: number, run: number): Sentence[] {
  const { runs } = page;
  const found = [ran(page, task, run)];
  if (runs.processor_wait_ns[run] > 0)
    found.push([
      `For ${duration(runs.processor_wait_ns[run])} of that its thread was not running, ` +
        `and nothing recorded says why: another thread had the processor or the ` +
        `interpreter's lock, or it slept.`,
    ]);
  const calls = called(page, run);
  if (calls.length) found.push(calls);
  if (runs.num_alike[run] > 1 && runs.usual_ns[run] >= 0)
    found.push([
      `The median of ${count(runs.num_alike[run], "pass")} of this shape is ` +
        `${duration(runs.usual_ns[run])}` +
        `${onProcessor(runs.usual_ns[run], runs.usual_thread_time_ns[run])}.`,
    ]);
  return found;
}

/** For how long of it a thread was running, where that was measured. */
function onProcessor(took: number, own: number): string {
  return own < 0 || took < SHORT_NS ? "" : `, ${duration(own)} of it on a processor`;
}

function ran(page: Page, task: number, run: number): Sentence {
  const { runs, header } = page;
  const thread = threadName(page, runs.thread[run]);
  const took_ns = runs.end_ns[run] - runs.start_ns[run];
  const took = duration(took_ns);
  const processor = onProcessor(took_ns, runs.thread_time_ns[run]);
  switch (header.statuses[runs.status[run]]) {
    case "captured":
      return [`Its gradient was captured on ${thread}; it did not have to run.`];
    case "unfinished":
      return [
        `Since ${duration(since(page, task, runs.begin[run]))} ${thread} runs it: its end is missing.`,
      ];
    case "failed":
      return [`It failed on ${thread} after ${took}: ${page.text(runs.error[run])}`];
    default:
      return [`It ran on ${thread} for ${took}${processor}.`];
  }
}

function absent(page: Page, stories: Stories, task: number, node: number): Sentence {
  const { header, events } = page;
  if (goesOn(page, task)) return ["It did not run by then: this page ends inside its pass."];
  const pass = header.passes[task];
  const skipped = header.kinds.indexOf("node_skipped");
  const own = ofTask(rowsOf(stories.events, node), events.task, task);
  if (own.some((row) => events.kind[row] === skipped))
    return [`It did not run: its pass had failed by then (${pass?.error}).`];
  if (pass?.status === "failed")
    return [`It did not run: its pass failed before (${pass.error}).`];
  if (pass?.status === "unfinished")
    return ["It did not run as far as the trace goes, which ends inside its pass."];
  return ["It did not run: no gradient came to it, or nobody asked for it."];
}

/** The passes that a node called while it ran. */
function called(page: Page, run: number): Sentence {
  const { header } = page;
  const calls = calledIn(page, run);
  if (!calls.length) return [];
  const took = calls.reduce((sum, place) => {
    const { begin_ns, end_ns } = header.passes[place];
    return sum + (end_ns ?? begin_ns) - begin_ns;
  }, 0);
  const some = calls
    .slice(0, MOST)
    .flatMap((pass, at): Sentence => (at ? [", ", { pass }] : [{ pass }]));
  const rest = calls.length > MOST ? ` and ${calls.length - MOST} more` : "";
  const which = calls.length === 1 ? "pass" : "passes";
  return [
    `Meanwhile it called ${which} `,
    ...some,
    `${rest}, which took ${duration(took)} of that.`,
  ];
}

function costs(page: Page, stories: Stories, task: number, node: number): Sentence[] {
  const { costs, header } = page;
  const row = ofTask(rowsOf(stories.costs, node), costs.task, task)[0];
  if (row === undefined) return [];
  const pass = header.passes[header.critical_task];
  const took = pass?.end_ns == null ? null : pass.end_ns - pass.begin_ns;
  const found: Sentence[] = [];
  if (costs.on_path_ns[row] > 0) {
    const part = took ? ` (${((100 * costs.on_path_ns[row]) / took).toFixed(1)} %)` : "";
    found.push([
      `${duration(costs.on_path_ns[row])} of the critical path are its own${part}.`,
    ]);
    if (took !== null && costs.if_free_ns[row] >= 0)
      found.push([
        `If it took no time, the pass would take ${duration(costs.if_free_ns[row])} ` +
          `instead of ${duration(took)}.`,
      ]);
  } else if (costs.slack_ns[row] >= 0)
    found.push([
      `It is not on the critical path: it could take ${duration(costs.slack_ns[row])} ` +
        `longer, and the pass would not.`,
    ]);
  return found;
}

export function ofTask(
  rows: Iterable<number>,
  column: ArrayLike<number>,
  task: number,
): number[] {
  return [...rows].filter((row) => column[row] === task);
}

function listed(nodes: readonly number[]): (string | { node: number })[] {
  const some = nodes.slice(0, MOST);
  const rest = nodes.length - some.length;
  const parts = some.flatMap((node, at) => {
    const isLast = at === some.length - 1 && !rest;
    const what = node < 0 ? "wake-up" : { node };
    return at ? [isLast ? " and " : ", ", what] : [what];
  });
  return rest ? [...parts, ` and ${rest} more`] : parts;
}

function by(node: number): string | { node: number } {
  return node < 0 ? "the caller" : { node };
}

function since({ events, header }: Page, task: number, moment: number): number {
  return events.at_ns[moment] - (header.passes[task]?.begin_ns ?? 0);
}

function threadName({ header }: Page, thread: number): string {
  const name = header.threads.find(({ number }) => number === thread)?.name;
  return `thread ${thread}${name ? ` ${name}` : ""}`;
}

/** A sequence number of -1 is the largest. */
function rank(sequenceNr: number): number {
  return sequenceNr < 0 ? Infinity : sequenceNr;
}
