import assert from "node:assert/strict";
import { test } from "node:test";

import type { Page } from "../../../gradviz/render/page/source/data.ts";
import { found, meantBy } from "../../../gradviz/render/page/source/filters.ts";

const TEXTS = ["MulBackward0", "AccumulateGrad", "Net.encoder", "Net.encoder.weight"];
const MORE = ["cpu", "sim:0", "a/mul.py:7"];

/** Mul (3) on sim:0, its leaf (12) on cpu, and another Mul (7), which failed. */
const page = {
  header: { texts: [...TEXTS, ...MORE], statuses: ["completed", "failed"] },
  nodes: {
    id: Int32Array.of(3, 12, 7),
    name: Int32Array.of(0, 1, 0),
    module: Int32Array.of(2, -1, -1),
    parameter: Int32Array.of(-1, 3, -1),
    location: Int32Array.of(-1, 6, -1),
    device: Int32Array.of(5, 4, 4),
    length: 3,
  },
  runs: { node: Int32Array.of(0, 1, 2), status: Int32Array.of(0, 0, 1), length: 3 },
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

test("a number means the node of this id, and no part of another one", () => {
  assert.deepEqual(meant({ text: "3" }), [1, 0, 0]);
  assert.deepEqual(meant({ text: "1" }), [0, 0, 0]);
});

test("several filters have to hold together", () => {
  assert.deepEqual(meant({ device: "cpu" }), [0, 1, 1]);
  assert.deepEqual(meant({ status: "failed" }), [0, 0, 1]);
  assert.deepEqual(meant({ device: "cpu", text: "mul" }), [0, 1, 1]);
  assert.deepEqual(meant({ device: "sim:0", status: "failed" }), [0, 0, 0]);
});

test("a search finds ids first, then parameters, then names", () => {
  assert.deepEqual(found(page, "weight", 5), [1]);
  assert.deepEqual(found(page, "mul", 5), [0, 2, 1]);
  assert.deepEqual(found(page, "7", 5), [2, 1]);
  assert.deepEqual(found(page, "mul", 2), [0, 2]);
  assert.deepEqual(found(page, "  ", 5), []);
});
