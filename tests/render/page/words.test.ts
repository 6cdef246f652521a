import assert from "node:assert/strict";
import { test } from "node:test";

import {
  count,
  duration,
  shorten,
  size,
} from "../../../gradviz/render/page/source/words.ts";

test("durations have three digits, rounded as Python rounds them", () => {
  const expected: [number, string][] = [
    [0, "0 ns"],
    [999, "999 ns"],
    [8_625, "8.62 µs"],
    [8_635, "8.63 µs"],
    [2_675, "2.67 µs"],
    [12_250, "12.2 µs"],
    [12_350, "12.3 µs"],
    [1_240_000, "1.24 ms"],
    [35_000_000_000, "35 s"],
  ];
  assert.deepEqual(
    expected.map(([ns]) => duration(ns)),
    expected.map(([, text]) => text),
  );
});

test("bytes are counted in powers of 1024", () => {
  assert.deepEqual([412, 1300, 1 << 20, 3 * 2 ** 40].map(size), [
    "412 B",
    "1.27 KiB",
    "1 MiB",
    "3 TiB",
  ]);
});

test("a noun has the ending of its number", () => {
  assert.deepEqual(
    [count(1, "node"), count(1797, "node"), count(2, "pass"), count(0, "box")],
    ["1 node", "1,797 nodes", "2 passes", "0 boxes"],
  );
});

test("a long text ends in an ellipsis", () => {
  assert.deepEqual([shorten("abcdef", 6), shorten("abcdef", 4)], ["abcdef", "abc…"]);
});
