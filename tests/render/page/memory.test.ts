import assert from "node:assert/strict";
import { test } from "node:test";

import type { Page } from "../../../gradviz/render/page/source/data.ts";
import { partsAt, stackOf } from "../../../gradviz/render/page/source/memory_panel.ts";

/** A page that holds a curve for each purpose. */
function held(
  curves: Record<string, [number, number][]>,
  unknown_purposes: string[] = [],
): Page {
  const purposes = [
    "total",
    "buffers",
    "saved",
    "gradients",
    "results",
    "perhaps besides",
  ];
  const rows = purposes.flatMap((name, purpose) =>
    (curves[name] ?? []).map(([at, size]) => [purpose, at, size]),
  );
  return {
    header: { purposes, unknown_purposes },
    memory: {
      length: rows.length,
      purpose: Int32Array.from(rows, ([purpose]) => purpose),
      at_ns: Float64Array.from(rows, ([, at]) => at),
      size_bytes: Float64Array.from(rows, ([, , size]) => size),
    },
  } as unknown as Page;
}

test("a stack has at each change what each purpose held then", () => {
  const stack = stackOf(
    held({
      total: [
        [0, 100],
        [10, 140],
        [30, 40],
      ],
      buffers: [[10, 40]],
      saved: [
        [0, 100],
        [30, 0],
      ],
      "perhaps besides": [[30, 7]],
    }),
  );

  assert.deepEqual([...stack.total.time], [0, 10, 30]);
  assert.deepEqual(
    [0, 1, 2].map((place) => partsAt(stack, place)),
    [
      [0, 100, 0, 0, 0],
      [40, 100, 0, 0, 0],
      [40, 0, 0, 0, 7],
    ],
  );
  assert.equal(stack.most, 140);
});

test("what is unclaimed is beside the total, and the picture has room for it", () => {
  const stack = stackOf(
    held({ total: [[0, 10]], saved: [[0, 10]], "perhaps besides": [[0, 5]] }),
  );

  assert.equal(stack.total.value[0], 10);
  assert.equal(stack.most, 15);
});

test("parts of a slice that were largest at different moments fill the total", () => {
  const stack = stackOf(
    held({ total: [[0, 90]], buffers: [[0, 60]], saved: [[0, 60]] }),
  );

  assert.deepEqual(partsAt(stack, 0), [45, 45, 0, 0, 0]);
});

test("where nothing is known of memory there is no stack", () => {
  const stack = stackOf(held({}, ["buffers", "saved", "gradients", "results"]));

  assert.equal(stack.total.time.length, 0);
  assert.equal(stack.isKnown, false);
});

test("what is unknown of memory is told beside what is known", () => {
  const stack = stackOf(held({ total: [[0, 9]], buffers: [[0, 9]] }, ["saved"]));

  assert.equal(stack.isKnown, true);
  assert.deepEqual(stack.unknown, ["saved"]);
});
