import assert from "node:assert/strict";
import { test } from "node:test";

import { type Context, wrapped } from "../../../gradviz/render/page/source/axis.ts";

/** Letters are one wide. */
const context = {
  measureText: (text: string) => ({ width: text.length }),
} as unknown as Context;

test("a text that has room is one line", () => {
  assert.deepEqual(wrapped(context, "queue of cuda:0", 15, 3), ["queue of cuda:0"]);
});

test("a long text is broken at spaces, and a long word anywhere", () => {
  assert.deepEqual(wrapped(context, "queue of the caller", 10, 3), [
    "queue of",
    "the caller",
  ]);
  assert.deepEqual(wrapped(context, "abcdefghijkl", 6, 3), ["abcde", "fghij", "kl"]);
});

test("what has no room on the last line is left out", () => {
  assert.deepEqual(wrapped(context, "queue of the caller", 10, 1), ["queue of …"]);
  assert.deepEqual(wrapped(context, "queue of the long caller", 10, 2), [
    "queue of",
    "the long …",
  ]);
});

test("where there is no room at all there is no text", () => {
  assert.deepEqual(wrapped(context, "queue", 0, 3), [""]);
});
