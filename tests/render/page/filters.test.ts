import assert from "node:assert/strict";
import { test } from "node:test";

import type { Page } from "../../../gradviz/render/page/source/data.ts";
import { found, meantBy } from "../../../gradviz/render/page/source/filters.ts";

const TEXTS = ["MulBackward0", "AccumulateGrad", "Net.encoder", "Net.encoder.weight"];
const MORE = ["cpu", "sim:0", "a/mul.py:7"];

/** Mul (3) on sim:0, its leaf (12) on cpu, and another Mul (7), which failed. */
const page = {
  header: {
    texts: [...TEXTS, ...MORE],
    statuses: ["completed", "failed"],
    passes: [{}],
  },
  nodes: {
    id: Int32Array.of(3, 12, 7),
    name: Int32Array.of(0, 1, 0),
    module: Int32Array.of(2, -1, -1),
    parameter: Int32Array.of(-1, 3, -1),
    location: Int32Array.of(-1, 6, -1),
    device: Int32Array.of(5, 4, 4),
    shape: Int32Array.of(-1, -1, -1),
    sequence_nr: Int32Array.of(40, -1, 12),
    length: 3,
  },
  runs: {
    node: Int32Array.of(0, 1, 2),
    status: Int32Array.of(0, 0, 1),
    task: Int32Array.of(0, 0, 0),
    length: 3,
  },
  text: (place: number) => [...TEXTS, ...MORE][place] ?? "",
} as unknown as Page;

const ALL = { text: "", device: "", status: "" };

function meant(filters: Partial<typeof ALL>): number[] | null {
  const found = meantBy(page, { ...ALL, ...filters });
  return found && [...found];
}

test("no filter means all, without a look at them", () => {
  assert.equal(meant({}), null);
});

test("a text means names, modules, parameters and lines that have it, whatever its case", () => {
  assert.deepEqual(meant({ text: "mulb" }), [1, 0, 1]);
  assert.deepEqual(meant({ text: "ENCODER" }), [1, 1, 0]);
  assert.deepEqual(meant({ text: "mul.py" }), [0, 1, 0]);
});

test("a number means the nodes that have it, and no part of another one", () => {
  assert.deepEqual(meant({ text: "3" }), [1, 0, 0]); // its id
  assert.deepEqual(meant({ text: "1" }), [0, 1, 0]); // it ran as number 1
  assert.deepEqual(meant({ text: "40" }), [1, 0, 0]); // the order in which it was made
  assert.deepEqual(meant({ text: "12" }), [0, 1, 1]); // an id, and such an order
  assert.deepEqual(meant({ text: "4" }), [0, 0, 0]);
});

test("a word with a key is looked for nowhere else", () => {
  assert.deepEqual(meant({ text: "id=12" }), [0, 1, 0]);
  assert.deepEqual(meant({ text: "sequence=12" }), [0, 0, 1]);
  assert.deepEqual(meant({ text: "number=0" }), [1, 0, 0]);
  assert.deepEqual(meant({ text: "name=MulB" }), [1, 0, 1]);
  assert.deepEqual(meant({ text: "module=encoder" }), [1, 0, 0]);
  assert.deepEqual(meant({ text: "device=sim" }), [1, 0, 0]);
  assert.deepEqual(meant({ text: "nothing=12" }), [0, 0, 0]);
});

test("of several words a node must have each", () => {
  assert.deepEqual(meant({ text: "mul encoder" }), [1, 1, 0]);
  assert.deepEqual(meant({ text: "name=mulb encoder" }), [1, 0, 0]);
  assert.deepEqual(meant({ text: "module=net  name=accumulate" }), [0, 0, 0]);
});

test("several filters have to hold together", () => {
  assert.deepEqual(meant({ device: "cpu" }), [0, 1, 1]);
  assert.deepEqual(meant({ status: "failed" }), [0, 0, 1]);
  assert.deepEqual(meant({ device: "cpu", text: "mul" }), [0, 1, 1]);
  assert.deepEqual(meant({ device: "sim:0", status: "failed" }), [0, 0, 0]);
});

test("a search finds numbers first, then parameters, then names", () => {
  assert.deepEqual(found(page, "weight", 5), [1]);
  assert.deepEqual(found(page, "mul", 5), [0, 2, 1]);
  assert.deepEqual(found(page, "7", 5), [2, 1]);
  assert.deepEqual(found(page, "mul", 2), [0, 2]);
  assert.deepEqual(found(page, "  ", 5), []);
});
