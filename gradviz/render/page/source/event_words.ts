/* Events in words: their facts, from the tables, under the names that they have in
`event_words.py`, whose templates they fill. A clause whose fact no table has is left out. */

import { type Header, type Page, placeOf } from "./data.ts";
import { type Facts, type Forms, firstFilled, type Sentence } from "./templates.ts";
import { count, duration, integer, shorten } from "./words.ts";

/** Longer names, and longer errors, are cut; see `text.py` and `event_words.py`. */
const MAX_TITLE = 44;
const MAX_MESSAGE = 300;

/** Rows that tell more of an event, by its place. */
interface Rows {
  readonly pushed: ReadonlyMap<number, number>;
  readonly popped: ReadonlyMap<number, number>;
  readonly given: ReadonlyMap<number, number>;
  readonly ended: ReadonlyMap<number, number>;
}

/** Tells an event; null if its facts fill no sentence. */
export type EventWords = (event: number) => Sentence | null;

export function eventWordsOf(page: Page): EventWords {
  const [factsOf, forms] = [eventFactsOf(page), eventForms(page.header)];
  return (event) => {
    const templates = page.header.event_sentences[page.events.kind[event]];
    return firstFilled(templates, factsOf(event), forms);
  };
}

/** What the page knows of an event. */
export function eventFactsOf(page: Page): (event: number) => Facts {
  const { events, header } = page;
  let rows: Rows | undefined;
  return (event) => {
    rows ??= rowsOfEvents(page);
    const [task, node] = [events.task[event], events.node[event]];
    return {
      task: task < 0 ? null : task,
      node: node < 0 ? null : node,
      ...factsOfKind(page, rows, header.kinds[events.kind[event]], event),
    };
  };
}

function factsOfKind(page: Page, rows: Rows, kind: string, event: number): Facts {
  const { stays, gradients, runs, header, events } = page;
  const pass = header.passes[events.task[event]];
  const node = events.node[event];
  const row = (of: ReadonlyMap<number, number>) => of.get(event) ?? -1;
  switch (kind) {
    case "task_pushed": {
      const stay = row(rows.pushed);
      if (stay < 0) return {};
      const giver = stays.pushed_by[stay];
      const what = header.pushes[stays.what[stay]];
      return { queue: stays.queue[stay], what, pushed_by: giver < 0 ? null : giver };
    }
    case "task_popped": {
      const stay = row(rows.popped);
      return stay < 0 ? {} : { queue: stays.queue[stay] };
    }
    case "gradient_buffered": {
      const given = row(rows.given);
      if (given < 0) return {};
      const producer = gradients.producer[given];
      return {
        producer: producer < 0 ? "the caller" : producer,
        input_nr: gradients.input_nr[given],
        remaining: gradients.remaining[given] || null,
        size_bytes: gradients.size_bytes[given],
      };
    }
    case "node_failed": {
      const run = row(rows.ended);
      return run < 0 ? {} : { error: page.text(runs.error[run]) };
    }
    case "node_created":
      return {
        location: placeOf(page.text(page.nodes.location[node])) || null,
        sequence_nr: numberMade(page, node),
      };
    case "task_begun": {
      const parent = header.passes.findIndex((one) => one.task === pass.parent);
      return {
        location: placeOf(pass.location) || null,
        parent: parent < 0 ? null : parent,
      };
    }
    case "task_failed":
      return { error: pass.error };
  }
  return {};
}

function numberMade({ nodes }: Page, node: number): number | string {
  return nodes.sequence_nr[node] < 0 ? "max" : nodes.sequence_nr[node];
}

function rowsOfEvents({ stays, gradients, runs, events }: Page): Rows {
  const places = (column: ArrayLike<number>) =>
    new Map(Array.from(column, (event, row) => [event, row]));
  // A stay may end by another event than its pop: with its pass.
  const isOwn = (row: number, event: number) =>
    events.node[event] === stays.node[row] && events.task[event] === stays.task[row];
  return {
    pushed: places(stays.pushed),
    popped: new Map(
      Array.from(stays.popped, (event, row): [number, number] => [event, row]).filter(
        ([event, row]) => isOwn(row, event),
      ),
    ),
    given: places(gradients.at),
    ended: places(runs.end),
  };
}

/** How facts are written here; their names are those of Python's. */
export function eventForms(header: Header): Forms {
  const counted = ["edge", "gradient", "node", "root", "task", "thread"];
  const counts = counted.map((noun) => [
    `${noun}s`,
    (number: number) => [count(number, noun)],
  ]);
  return {
    ...Object.fromEntries(counts),
    bytes: (size: number) => [size < 0 ? "unknown size" : count(size, "byte")],
    duration: (ns: number) => [duration(ns)],
    id: (number: number | string) => [String(number)],
    message: (text: string) => [shorten(text, MAX_MESSAGE)],
    name: (text: string) => [shorten(text, MAX_TITLE)],
    node: (one: number | string) => [typeof one === "string" ? one : { node: one }],
    number: (number: number) => [integer(number)],
    pass: (at: number) => {
      const { whole, worker } = header.passes[at];
      return [worker === null ? `${whole}` : `${whole} on worker ${worker}`];
    },
    queue: (queue: number) => {
      const name = header.queues.find(({ id }) => id === queue)?.name ?? "?";
      return [`queue ${queue} (${shorten(name, MAX_TITLE)})`];
    },
    text: (text: string) => [text],
  };
}
