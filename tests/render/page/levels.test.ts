import assert from "node:assert/strict";
import { test } from "node:test";

import { nested } from "../../../gradviz/render/page/source/lanes.ts";
import {
  leveled,
  longestOf,
  marks,
  placeAt,
} from "../../../gradviz/render/page/source/levels.ts";
import { random } from "./random.ts";

function row(size: number, seed: number, longest = 5) {
  const next = random(seed);
  const [start, end] = [new Float64Array(size), new Float64Array(size)];
  let now = 0;
  for (let i = 0; i < size; i++) {
    now += Math.floor(next() * 4);
    start[i] = now;
    now += 1 + Math.floor(next() ** 6 * longest);
    end[i] = now;
  }
  return leveled({ start, end, item: Uint32Array.from(start.keys()) });
}

function drawn(
  one: ReturnType<typeof row>,
  from: number,
  until: number,
  slice: number,
) {
  const found: { place: number; start: number; end: number; num: number }[] = [];
  marks(one, from, until, slice, (place, start, end, num) => {
    found.push({ place, start, end, num });
  });
  return found;
}

test("of marks each span between two times is in one, and none in two", () => {
  const one = row(3000, 1, 400);
  const all = one.end[2999];
  for (const [from, until, slice] of [
    [0, all + 1, 1],
    [0, all + 1, 37],
    [all / 3, all / 2, 7],
    [0, all + 1, all * 2],
  ]) {
    let num = 0;
    for (const mark of drawn(one, from, until, slice)) num += mark.num;
    let wanted = 0;
    for (let i = 0; i < 3000; i++) {
      if (one.end[i] > from && one.start[i] < until) wanted++;
    }
    // A mark that begins in view may hold spans that begin just outside of it.
    assert.ok(num >= wanted && num <= wanted + slice, `${num} of ${wanted}`);
  }
});

test("there are never more marks than twice as many as slices", () => {
  const one = row(50_000, 2, 300);
  const all = one.end[49_999];

  assert.ok(drawn(one, 0, all, all / 800).length <= 1600);
});

test("a mark has the longest of its spans, wherever the picture begins", () => {
  const one = row(4000, 3, 90);
  for (const slice of [20, 333]) {
    for (const { place, start, num } of drawn(one, 0, one.end[3999], slice)) {
      const first = one.start.indexOf(start);
      let best = first;
      for (let i = first; i < first + num; i++) {
        if (one.end[i] - one.start[i] > one.end[best] - one.start[best]) best = i;
      }
      assert.equal(place, best);
    }
  }
});

test("what is wider than a slice is drawn as itself, at any zoom", () => {
  const one = row(4000, 4, 500);
  const slice = 60;
  const alone = drawn(one, 0, one.end[3999], slice).filter(({ num }) => num === 1);
  const places = new Set(alone.map(({ place }) => place));
  for (let i = 0; i < 4000; i++) {
    if (one.end[i] - one.start[i] >= slice) assert.ok(places.has(i), String(i));
  }
});

test("where the picture begins does not change the marks inside of it", () => {
  const one = row(4000, 5, 50);
  const slice = 64;
  const key = ({ place, start, num }: { place: number; start: number; num: number }) =>
    `${place} ${start} ${num}`;
  const all = new Set(drawn(one, 0, one.end[3999], slice).map(key));
  const some = drawn(one, 3000, 6000, slice).slice(1);

  assert.ok(some.length > 10);
  for (const mark of some) assert.ok(all.has(key(mark)), key(mark));
});

test("the longest of any range is found", () => {
  const one = row(1500, 6, 3000);
  const next = random(7);
  for (let i = 0; i < 300; i++) {
    const from = Math.floor(next() * 1499);
    const until = from + 1 + Math.floor(next() * (1500 - from));
    let best = from;
    for (let j = from; j < until; j++) {
      if (one.end[j] - one.start[j] > one.end[best] - one.start[best]) best = j;
    }
    assert.equal(longestOf(one, from, until), best);
  }
});

test("a span is hit where it is, and beside it within the slack", () => {
  const one = leveled({
    start: Float64Array.of(10, 30),
    end: Float64Array.of(20, 40),
    item: Uint32Array.of(0, 1),
  });

  assert.deepEqual(
    [9, 10, 15, 20, 24, 26, 40, 41].map((time) => placeAt(one, time)),
    [-1, 0, 0, 0, -1, -1, 1, -1],
  );
  assert.deepEqual(
    [6, 7, 24, 26, 43, 44].map((time) => placeAt(one, time, 4)),
    [0, 0, 0, 1, 1, 1],
  );
  assert.equal(placeAt(one, 25, 4), -1);
  assert.equal(placeAt(one, 45, 4), -1);
});

test("spans inside of others lie in rows below them, and those of a row never meet", () => {
  const start = Float64Array.of(0, 1, 2, 5, 10, 12, 14);
  const end = Float64Array.of(10, 4, 3, 9, 20, 15, 16);
  const { rows, omitted } = nested(start, end, [0, 1, 2, 3, 4, 5, 6]);

  assert.deepEqual(
    rows.map(({ item }) => [...item]),
    [
      [0, 4],
      [1, 3, 5],
      [2, 6],
    ],
  );
  assert.equal(omitted, 0);
});

test("what lies too deep is counted and not drawn", () => {
  const size = 60;
  const start = Float64Array.from({ length: size }, (_, i) => i);
  const end = Float64Array.from({ length: size }, (_, i) => 1000 - i);
  const { rows, omitted } = nested(start, end, [...start.keys()]);

  assert.equal(rows.length, 50);
  assert.equal(omitted, 10);
});
