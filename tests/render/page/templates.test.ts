import assert from "node:assert/strict";
import { test } from "node:test";

import { fill } from "../../../gradviz/render/page/source/templates.ts";

const FORMS = {
  text: (text: string) => [text],
  node: (node: number) => [{ node }],
};

test("a sentence is said if its facts are known, and a clause if its own are", () => {
  const template = "{was=run}It ran[ on {on:text}][{how=late}, but late].";
  const said = (facts: Record<string, unknown>) =>
    fill(template, facts, FORMS)?.join("");

  assert.equal(said({ was: "run" }), "It ran.");
  assert.equal(
    said({ was: "run", on: "cpu", how: "late" }),
    "It ran on cpu, but late.",
  );
  assert.equal(said({ was: "run", on: null, how: "soon" }), "It ran.");
  assert.equal(said({ was: "skipped", on: "cpu" }), undefined);
  assert.equal(said({}), undefined);
});

test("a node stands in a sentence by its place", () => {
  assert.deepEqual(fill("It gave one to {node:node}.", { node: 0 }, FORMS), [
    "It gave one to ",
    { node: 0 },
    ".",
  ]);
});

test("what stands in a fact is no place, and no markup", () => {
  const error = "{node:node} [of {was=x}] <b>$&</b>";

  assert.deepEqual(fill("It failed: {error:text}", { error, node: 3 }, FORMS), [
    "It failed: ",
    error,
  ]);
});
