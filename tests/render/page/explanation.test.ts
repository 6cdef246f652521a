import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { readPage } from "../../../gradviz/render/page/source/data.ts";
import {
  explained,
  type Named,
  storiesOf,
} from "../../../gradviz/render/page/source/explanation.ts";

/* What `gradviz explain` says: written by test_explanations.py. */
const path = process.env["EXPLANATIONS"];
const told = path
  ? (JSON.parse(readFileSync(path, "utf-8")) as {
      name: string;
      data: string;
      nodes: [number, number, string[]][];
    }[])
  : [];

/** What only the page says: what a node costs its pass, and who pushed it. */
const COSTS = /^(It is not on the critical path|If it took no time)|of the critical path are/;

function asExplained(sentence: string): string {
  if (!sentence.startsWith("It was pushed")) return sentence;
  return sentence
    .replace(/ by \S+ \(\d+\) (?=and lay|after)/, " ")
    .replace(/, pushed by thread [^;]* and popped by thread [^;.]*(?=[;.])/, "");
}

for (const { name, data, nodes } of told) {
  test(`sentences are those of explain: ${name}`, async () => {
    const page = await readPage(data);
    const stories = storiesOf(page);
    const named = (node: number) =>
      `${page.text(page.nodes.name[node])} (${page.nodes.id[node]})`;
    const written = (part: Named) =>
      "node" in part ? named(part.node) : String(page.header.passes[part.pass].task);

    for (const [task, node, expected] of nodes) {
      const said = explained(page, stories, task, node)
        .map((one) =>
          one.map((part) => (typeof part === "string" ? part : written(part))).join(""),
        )
        .filter((one) => !COSTS.test(one))
        .map(asExplained);
      assert.deepEqual(said, expected);
    }
  });
}
