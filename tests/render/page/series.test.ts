import assert from "node:assert/strict";
import { test } from "node:test";

import { lengths, series, steps } from "../../../gradviz/render/page/source/series.ts";
import { indexed, NEVER, openAt } from "../../../gradviz/render/page/source/spans.ts";
import { random } from "./random.ts";

test("how many there are goes up and down with what comes and goes", () => {
  const { time, value } = lengths(Float64Array.of(1, 2, 5), Float64Array.of(2, 3, 9));

  assert.deepEqual([...time], [1, 2, 2, 3, 5, 9]);
  assert.deepEqual([...value], [1, 2, 1, 0, 1, 0]);
});

test("steps lie end to end, and each is the most of its time", () => {
  const next = random(11);
  const time = new Float64Array(2000);
  for (let i = 1; i < 2000; i++)
    time[i] = time[i - 1] + 1 + Math.floor(next() ** 5 * 200);
  const some = series(
    time,
    Float64Array.from(time, () => Math.floor(next() * 1000)),
  );
  for (const [from, until, slice] of [
    [0, time[1999], 1],
    [0, time[1999], 25],
    [500, 900, 3],
    [0, time[1999], time[1999]],
  ]) {
    let reached: number | undefined;
    steps(some, from, until, slice, (place, begin, end) => {
      if (reached !== undefined) assert.equal(begin, reached);
      else assert.ok(begin <= from);
      let most = 0;
      for (let i = 0; i < 2000; i++) {
        const last = i + 1 < 2000 ? time[i + 1] : Infinity;
        if (time[i] < end && last > begin) most = Math.max(most, some.value[i]);
      }
      assert.equal(some.value[place], most, `${begin} to ${end}`);
      reached = end;
    });
    assert.ok(reached !== undefined && reached >= until);
  }
});

test("before the first change there is nothing to draw", () => {
  let num = 0;
  steps(series(Float64Array.of(50), Float64Array.of(3)), 0, 40, 1, () => num++);

  assert.equal(num, 0);
});

test("what is open at a moment has begun and has not ended", () => {
  const next = random(12);
  const size = 70_000;
  const begin = Uint32Array.from({ length: size }, (_, i) => 2 * i);
  const end = begin.map((one) => {
    const length = Math.floor(next() ** 9 * 60_000) + 1;
    return next() < 0.0005 ? NEVER : one + length;
  });
  const spans = indexed(begin, end);
  for (const seq of [0, 1, 511, 512, 70_001, 131_072, 139_998, 150_000]) {
    const wanted = [];
    for (let i = 0; i < size; i++) if (begin[i] <= seq && end[i] > seq) wanted.push(i);
    assert.deepEqual(openAt(spans, seq), wanted, String(seq));
  }
});
