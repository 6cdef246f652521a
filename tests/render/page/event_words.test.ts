/* The page knows of an event what tables have, and fills the templates of Python with it
as Python does; see `test_event_words.py`, which writes both down. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { type Page, readPage } from "../../../gradviz/render/page/source/data.ts";
import {
  eventFactsOf,
  eventForms,
  eventWordsOf,
} from "../../../gradviz/render/page/source/event_words.ts";
import {
  type Facts,
  firstFilled,
  type Sentence,
} from "../../../gradviz/render/page/source/templates.ts";
import { named } from "./named.ts";

interface Told {
  name: string;
  data: string;
  events: { facts: Facts; sentence: string }[];
}

const path = process.env.EVENTS;
const all: Told[] = path ? JSON.parse(readFileSync(path, "utf8")) : [];

/** Kinds of which the page has all that a sentence needs; of others it shows the name. */
const TOLD = [
  ...["task_begun", "task_completed", "task_failed", "task_pushed", "task_popped"],
  ...["node_started", "node_completed", "node_failed", "gradient_buffered"],
  ...["gradient_accumulated", "capture_taken", "buffer_freed", "reentrant_entered"],
];

for (const told of all) {
  test(`the page says of events what a replay does: ${told.name}`, async () => {
    const page = await readPage(told.data);
    const [factsOf, words] = [eventFactsOf(page), eventWordsOf(page)];
    const forms = eventForms(page.header);
    assert.equal(page.events.length, told.events.length);
    told.events.forEach(({ facts, sentence }, event) => {
      const kind = page.header.kinds[page.events.kind[event]];
      for (const [name, fact] of Object.entries(factsOf(event)))
        if (fact !== null)
          assert.deepEqual(fact, facts[name] ?? fact, `${kind}: ${name}`);
      const said = firstFilled(
        page.header.event_sentences[page.events.kind[event]],
        facts,
        forms,
      );
      assert.equal(text(page, said ?? [], page.events.task[event]), sentence);
      assert.ok(words(event) !== null || !TOLD.includes(kind), kind);
    });
  });
}

/** A sentence as Python writes it. */
function text(page: Page, said: Sentence, task: number): string {
  return said.map((part) => named(page, part, task)).join("");
}
