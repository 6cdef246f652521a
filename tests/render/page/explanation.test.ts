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
      begins: string[];
      programs: { name: string; data: string; nodes: [number, number, string[]][] }[];
    })
  : { begins: [], programs: [] };

for (const { name, data, nodes } of told.programs) {
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
        .filter((one) => told.begins.some((begin) => one.startsWith(begin)));
      assert.deepEqual(said, expected, named(node));
    }
  });
}
