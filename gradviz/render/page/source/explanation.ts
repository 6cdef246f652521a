/* Why a node ran when it did: its facts, from the tables, under the names that they have in
`explanation_text.py`, whose templates they fill.

Nothing here is guessed. What threads did in passes that are not on the page, only
`explain` tells. */

import { calledIn } from "./calls.ts";
import { type Chains, chained, rowsOf } from "./chains.ts";
import type { Page } from "./data.ts";
import { goesOn } from "./events.ts";
import {
  type Facts,
  type Forms,
  fill,
  type Named,
  type Sentence,
} from "./templates.ts";
import { count, duration, integer } from "./words.ts";

/** So many of each list are told; see `MAX_TOLD` of `moments/explanation.py`. */
const MOST = 10;
/** What takes less is taken to have run all of it; see `processor_time.py`. */
const SHORT_NS = 100_000;

/** A node by its place, or what is said where there is none. */
type NodeFact = number | string;

/** The first things of a list, and how many more there are. */
interface Listed<One> {
  readonly some: readonly One[];
  readonly more: number;
}

/** Nodes whose tasks went first for one reason, and the pass of each. */
interface Overtakers {
  readonly why: string;
  readonly nodes: readonly NodeFact[];
  readonly tasks: readonly number[];
}

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
  readonly hooks: Chains;
  /** By their stay. */
  readonly overtakings: Chains;
}

export function storiesOf(page: Page): Stories {
  const { runs, stays, gradients, events, costs, nodes } = page;
  return {
    runs: chained(runs.node, nodes.length),
    stays: chained(stays.node, nodes.length),
    given: chained(gradients.node, nodes.length),
    handed: chained(gradients.producer, nodes.length),
    events: chained(events.node, nodes.length),
    costs: chained(costs.node, nodes.length),
    streamWaits: chained(page.stream_waits.node, nodes.length),
    crossings: chained(page.crossings.node, nodes.length),
    hooks: chained(page.hooks.node, nodes.length),
    overtakings: chained(page.overtakings.stay, stays.length),
  };
}

export interface Told {
  readonly said: Sentence;
  readonly isAlarm: boolean;
}

/** What is said of a node in a pass, in the order in which it happened. */
export function explained(
  page: Page,
  stories: Stories,
  task: number,
  node: number,
): Told[] {
  return sentencesOf(page, factsOf(page, stories, task, node));
}

/** The sentences for which some facts suffice. */
export function sentencesOf(page: Page, facts: Facts): Told[] {
  const forms = formsOf(page);
  return page.header.explanation.flatMap(([template, isAlarm]) => {
    const said = fill(template, facts, forms);
    return said === null ? [] : [{ said, isAlarm }];
  });
}

/** What is known of a node in a pass. */
export function factsOf(
  page: Page,
  stories: Stories,
  task: number,
  node: number,
): Facts {
  const { gradients, stays, runs, stream_waits: waits } = page;
  const stay = ofTask(rowsOf(stories.stays, node), stays.task, task)[0] ?? -1;
  const run = ofTask(rowsOf(stories.runs, node), runs.task, task)[0] ?? -1;
  const given = ofTask(rowsOf(stories.given, node), gradients.task, task);
  const handed = ofTask(rowsOf(stories.handed, node), gradients.task, task).filter(
    (row) => gradients.remaining[row] === 0,
  );
  const awaited = ofTask(rowsOf(stories.streamWaits, node), waits.task, task);
  const hooks = ofTask(rowsOf(stories.hooks, node), page.hooks.task, task);
  const crossed = crossings(page, stories, task, node);
  const isRoot = stay >= 0 && page.header.pushes[stays.what[stay]] === "root";
  return {
    ...ofLine(page, task, node),
    ...crossed,
    began: isRoot && !crossed.came && !crossed.never_came ? "root" : null,
    ...arrivals(page, task, given),
    ...(stay < 0 ? {} : queued(page, task, stay, run)),
    ahead: stay < 0 ? null : overtaken(page, stories, stay),
    hooks: hooks.length ? hooks.map((row) => page.text(page.hooks.text[row])) : null,
    stream_waits: awaited.length
      ? listed(awaited.map((row) => waits.producer[row]).slice(0, MOST))
      : null,
    ...(run < 0 ? absent(page, stories, task, node) : evaluation(page, task, run)),
    let_start: handed.length ? listed(handed.map((row) => gradients.node[row])) : null,
    ...costs(page, stories, task, node),
  };
}

/** From which worker its gradient came, or to which it sent one: whole sentences. */
function crossings(
  { crossings: table, text, header }: Page,
  stories: Stories,
  task: number,
  node: number,
): Facts {
  const rows = ofTask(rowsOf(stories.crossings, node), table.task, task);
  const said = (row: number): Sentence => {
    const [before, after] = [text(table.before[row]), text(table.after[row])];
    const other = table.other[row];
    return other < 0 ? [before, after] : [before, { node: other }, after];
  };
  return Object.fromEntries(
    rows.map((row) => [header.crossing_facts[table.fact[row]], said(row)]),
  );
}

/** Which of the nodes like it that its line made for the pass it is; no leaf is made there. */
export function ofLine({ nodes, runs }: Page, task: number, node: number): Facts {
  const { name, location, sequence_nr, id } = nodes;
  if (location[node] < 0 || sequence_nr[node] < 0) return {};
  const isAlike = (one: number) =>
    name[one] === name[node] && location[one] === location[node];
  const alike = new Set(
    runs.node.filter((one, run) => runs.task[run] === task && isAlike(one)),
  );
  if (alike.size < 2 || !alike.has(node)) return {};
  const isBefore = (one: number) =>
    sequence_nr[one] < sequence_nr[node] ||
    (sequence_nr[one] === sequence_nr[node] && id[one] < id[node]);
  const before = [...alike].filter((one) => sequence_nr[one] >= 0 && isBefore(one));
  return { line_number: before.length + 1, line_count: alike.size };
}

function arrivals(page: Page, task: number, given: readonly number[]): Facts {
  const { gradients, events } = page;
  if (!given.length) return {};
  const [before, last] = [given.at(-2) ?? -1, given[given.length - 1]];
  const left = gradients.remaining[last];
  const producer = by(gradients.producer[last]);
  const facts = {
    num_given: given.length,
    given_after: since(page, task, gradients.at[last]),
    num_missing: left || null,
  };
  if (before < 0) return { ...facts, only_giver: producer };
  if (left) return { ...facts, last_giver: producer };
  const [from, to] = [
    events.at_ns[gradients.at[before]],
    events.at_ns[gradients.at[last]],
  ];
  return {
    ...facts,
    last_giver: producer,
    giver_before: by(gradients.producer[before]),
    given_later: to - from,
  };
}

/** Its time in the queue, and what the thread that took it did meanwhile. */
function queued(page: Page, task: number, stay: number, run: number): Facts {
  const { stays, header, events, runs } = page;
  const facts = {
    queue: header.queues.find(({ id }) => id === stays.queue[stay])?.name ?? "?",
    pushed_by: stays.pushed_by[stay] < 0 ? null : stays.pushed_by[stay],
  };
  const [pushing, popping] = [stays.thread[stay], stays.popped_by[stay]];
  if (stays.popped[stay] < 0 || popping < 0)
    return {
      ...facts,
      left: goesOn(page, task) ? "after the page" : "never",
      came_after: since(page, task, stays.pushed[stay]),
    };
  const [busy, slept] = [stays.busy_ns[stay] || null, stays.slept_ns[stay] || null];
  const isHandedOver = pushing !== popping;
  const known = busy ? (slept ? "both" : "busy") : slept ? "slept" : null;
  return {
    ...{ ...facts, busy, slept },
    left: "popped",
    lay: events.at_ns[stays.popped[stay]] - events.at_ns[stays.pushed[stay]],
    pushing_thread: isHandedOver ? pushing : null,
    popping_thread: isHandedOver ? popping : null,
    taker: known && runs.thread[run],
    meanwhile: known,
  };
}

/** What left its queue while it lay there, that of one reason together. */
function overtaken(page: Page, stories: Stories, stay: number) {
  const { stays, header, overtakings } = page;
  const rows = [...rowsOf(stories.overtakings, stay)];
  if (!rows.length || stays.popped_by[stay] < 0) return null;
  const reasons = new Map<
    string,
    { why: string; nodes: NodeFact[]; tasks: number[] }
  >();
  for (const row of rows) {
    const ahead = overtakings.ahead[row];
    const [node, task] = [stays.node[ahead], stays.task[ahead]];
    const why = header.precedences[overtakings.why[row]] ?? "none";
    const kind = why === "deeper" ? `${why} ${header.passes[task].whole}` : why;
    const known = reasons.get(kind) ?? { why, nodes: [], tasks: [] };
    known.nodes.push(node < 0 ? "wake-up" : node);
    known.tasks.push(task);
    reasons.set(kind, known);
  }
  return { some: [...reasons.values()], more: stays.num_ahead[stay] - rows.length };
}

/** How a node ran, and how it usually does. */
function evaluation(page: Page, task: number, run: number): Facts {
  const { runs, header } = page;
  const outcome = header.statuses[runs.status[run]];
  const took = runs.end_ns[run] - runs.start_ns[run];
  return {
    outcome,
    thread: runs.thread[run],
    began_after: since(page, task, runs.begin[run]),
    took: outcome === "unfinished" ? null : took,
    error: outcome === "failed" ? page.text(runs.error[run]) : null,
    on_processor: ifLong(took, runs.thread_time_ns[run]),
    not_running: runs.processor_wait_ns[run] || null,
    ...called(page, run),
    ...(runs.num_alike[run] > 1 ? usual(page, run) : {}),
  };
}

function usual({ runs }: Page, run: number): Facts {
  const took = runs.usual_ns[run];
  return {
    num_alike: runs.num_alike[run],
    usual: took < 0 ? null : took,
    usual_on_processor: ifLong(took, runs.usual_thread_time_ns[run]),
  };
}

/** For how long a thread was running; null where that is not known or not measured. */
function ifLong(took: number, own: number): number | null {
  return own < 0 || took < SHORT_NS ? null : own;
}

function absent(page: Page, stories: Stories, task: number, node: number): Facts {
  const { header, events } = page;
  const pass = header.passes[task];
  if (goesOn(page, task)) return { outcome: "after the page" };
  const skipped = header.kinds.indexOf("node_skipped");
  const own = ofTask(rowsOf(stories.events, node), events.task, task);
  const isSkipped = own.some((row) => events.kind[row] === skipped);
  const whole = {
    completed: "not reached",
    failed: "failed before",
    unfinished: "after the trace",
  };
  const outcome = isSkipped ? "skipped" : whole[pass?.status ?? "completed"];
  return { outcome, error: pass?.error ?? "" };
}

/** The passes that a node called while it ran. */
function called(page: Page, run: number): Facts {
  const { passes } = page.header;
  const calls = calledIn(page, run);
  const took = calls.reduce((sum, place) => {
    const { pass_begin_ns: begin_ns, pass_end_ns: end_ns } = passes[place];
    return sum + (end_ns ?? begin_ns) - begin_ns;
  }, 0);
  return { calls: calls.length ? listed(calls) : null, calls_took: took };
}

/** What it costs its pass, if the page has the critical path of that. */
function costs(page: Page, stories: Stories, task: number, node: number): Facts {
  const { costs, header } = page;
  const row = ofTask(rowsOf(stories.costs, node), costs.task, task)[0];
  if (row === undefined) return {};
  const pass = header.passes[header.critical_task];
  const took = pass?.pass_end_ns == null ? null : pass.pass_end_ns - pass.pass_begin_ns;
  const own = costs.on_path_ns[row];
  if (own <= 0) return { slack: costs.slack_ns[row] < 0 ? null : costs.slack_ns[row] };
  return {
    on_path: own,
    share: took && (100 * own) / took,
    if_free: costs.if_free_ns[row] < 0 ? null : costs.if_free_ns[row],
    pass_took: took,
  };
}

export function ofTask(
  rows: Iterable<number>,
  column: ArrayLike<number>,
  task: number,
): number[] {
  return [...rows].filter((row) => column[row] === task);
}

function listed<One>(all: readonly One[]): Listed<One> {
  return { some: all.slice(0, MOST), more: Math.max(all.length - MOST, 0) };
}

function by(node: number): NodeFact {
  return node < 0 ? "the caller" : node;
}

function since({ events, header }: Page, task: number, moment: number): number {
  return events.at_ns[moment] - (header.passes[task]?.pass_begin_ns ?? 0);
}

/** How facts are written here; their names are those of Python's. */
function formsOf(page: Page): Forms {
  const { header } = page;
  const words = (write: (value: number) => string) => (value: number) => [write(value)];
  const node = (one: NodeFact, task?: number): Sentence => [
    typeof one === "string" ? one : { node: one, task },
  ];
  function joined(parts: readonly Sentence[], more: number): Sentence {
    const all = more ? [...parts, [`${integer(more)} more`]] : parts;
    return all.flatMap((part, at) =>
      at === 0 ? part : [at === all.length - 1 ? " and " : ", ", ...part],
    );
  }
  function overtakers({ some, more }: Listed<Overtakers>): Sentence {
    const parts = some.map(({ why, nodes, tasks }) => [
      ...joined(
        nodes.map((one, at) => node(one, tasks[at])),
        0,
      ),
      " (",
      ...(fill(header.reasons[why], { pass: header.passes[tasks[0]].whole }, forms) ??
        []),
      ")",
    ]);
    if (more) parts.push([`and ${integer(more)} more`]);
    return parts.flatMap((part, at) => (at ? ["; ", ...part] : part));
  }
  const short = (thread: number) => `thread ${thread}`;
  const forms: Forms = {
    duration: words(duration),
    gradient: words((number) => count(number, "gradient")),
    hooks: (texts: readonly string[]) => [texts.join("; ")],
    id: words(String),
    node: (one: NodeFact) => node(one),
    nodes: ({ some, more }: Listed<NodeFact>) =>
      joined(
        some.map((one) => node(one)),
        more,
      ),
    number: words(integer),
    overtakers,
    pass: words((number) => count(number, "pass")),
    passes: ({ some, more }: Listed<number>) => [
      some.length + more === 1 ? "pass " : "passes ",
      ...joined(
        some.map((pass): [Named] => [{ pass }]),
        more,
      ),
    ],
    percent: words((share) => `${share.toFixed(1)} %`),
    sentence: (said: Sentence) => said,
    short_thread: words(short),
    text: (text: string) => [text],
    thread: words((thread) => {
      const name = header.threads.find(({ number }) => number === thread)?.name;
      return name ? `${short(thread)} ${name}` : short(thread);
    }),
  };
  return forms;
}
