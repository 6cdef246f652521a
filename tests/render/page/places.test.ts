import assert from "node:assert/strict";
import { test } from "node:test";

import { read, written } from "../../../gradviz/render/page/source/places.ts";

test("places that follow each other are written as their first and last", () => {
  assert.equal(written([4, 12, 3, 5, 7, 4]), "3-5.7.12");
  assert.equal(written([]), "");
});

test("what was written is read", () => {
  for (const places of [[], [0], [1, 2, 3], [0, 2, 4, 5, 90, 91, 400]])
    assert.deepEqual(read(written(places)), places);
});

test("of what nobody wrote nothing is believed, and no more than there is room for", () => {
  assert.deepEqual(read("x.3-.-4.5e3.1-2-3"), []);
  assert.equal(read("0-999999999").length, 100_000);
});
