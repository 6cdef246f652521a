import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { readPage } from "../../../gradviz/render/page/source/data.ts";
import {
  factsOf,
  sentencesOf,
  storiesOf,
} from "../../../gradviz/render/page/source/explanation.ts";
import type { Facts, Sentence } from "../../../gradviz/render/page/source/templates.ts";
import { named } from "./named.ts";

interface Told {
  name: string;
  data: string;
  nodes: { task: number; node: number; facts: Facts; sentences: string[] }[];
}

/* What `gradviz explain` knows and says: written by test_explanations.py. */
const path = process.env.EXPLANATIONS;
const told: Told[] = path ? JSON.parse(readFileSync(path, "utf-8")) : [];

/** What only the page knows: what a node costs its pass. */
const COSTS = ["on_path", "share", "if_free", "pass_took", "slack"];

function known(facts: Facts): Facts {
  const some = Object.entries(facts).filter(
    ([name, fact]) => fact != null && !COSTS.includes(name),
  );
  return Object.fromEntries(some);
}

for (const { name, data, nodes } of told) {
  test(`the page knows and says what explain does: ${name}`, async () => {
    const page = await readPage(data);
    const stories = storiesOf(page);
    /** As Python has them: passes by their numbers. */
    function numbered(facts: Facts): Facts {
      const ahead = facts.ahead as { some: { tasks: number[] }[] } | undefined;
      if (!ahead) return facts;
      const some = ahead.some.map((one) => ({
        ...one,
        tasks: one.tasks.map((task) => page.header.passes[task].whole),
      }));
      return { ...facts, ahead: { ...ahead, some } };
    }

    for (const { task, node, facts, sentences } of nodes) {
      const found = known(factsOf(page, stories, task, node));
      assert.deepEqual(numbered(found), facts);
      const text = (said: Sentence) =>
        said.map((part) => named(page, part, task)).join("");
      const said = sentencesOf(page, found).map((one) => text(one.said));
      assert.deepEqual(said, sentences);
    }
  });
}
