import assert from "node:assert/strict";
import { test } from "node:test";

import type { Page } from "../../../gradviz/render/page/source/data.ts";
import { INITIAL } from "../../../gradviz/render/page/source/store.ts";
import { carriedOver } from "../../../gradviz/render/page/source/succession.ts";

/** A page of one pass whose nodes have these ids and names. */
function made(task: number, nodes: [id: number, name: string][], duration_ns = 100) {
  const texts = [...new Set(nodes.map(([, name]) => name))];
  const none = nodes.map(() => -1);
  return {
    header: { passes: [{ task }], duration_ns },
    events: { length: 10 * nodes.length },
    nodes: {
      length: nodes.length,
      id: nodes.map(([id]) => id),
      name: nodes.map(([, name]) => texts.indexOf(name)),
      module: none,
      parameter: none,
    },
    text: (place: number) => texts[place] ?? "",
  } as unknown as Page;
}

const before = made(1, [
  [10, "Mul"],
  [11, "Sin"],
  [12, "Mul"],
]);

test("in more of the same pass the same node stays selected, wherever it is", () => {
  const more = made(1, [
    [13, "Add"],
    [10, "Mul"],
    [12, "Mul"],
    [11, "Sin"],
  ]);
  const state = carriedOver({ ...INITIAL, node: 2, moment: 7 }, before, more);
  assert.deepEqual([state.node, state.moment], [2, 7]);
  assert.equal(carriedOver({ ...INITIAL, node: 1 }, before, more).node, 3);
});

test("in another pass it is the node called the same that came as late", () => {
  const next = made(2, [
    [20, "Mul"],
    [21, "Add"],
    [22, "Sin"],
    [23, "Mul"],
  ]);
  const select = (node: number) => carriedOver({ ...INITIAL, node }, before, next);
  assert.deepEqual(
    [0, 1, 2, -1].map((node) => select(node).node),
    [0, 2, 3, -1],
  );
  assert.equal(carriedOver({ ...INITIAL, moment: 4 }, before, next).moment, -1);
});

test("a node that the other pass does not have is selected no longer", () => {
  const next = made(2, [[20, "Mul"]]);
  assert.equal(carriedOver({ ...INITIAL, node: 2 }, before, next).node, -1);
});

test("the part of the time that is seen stays, if there is as much time", () => {
  const seen = { ...INITIAL, from_ns: 20, until_ns: 80, depth: 2, panel: "graph" };
  assert.deepEqual(carriedOver(seen, before, made(2, [])), seen);
  const { from_ns, until_ns } = carriedOver(seen, before, made(2, [], 70));
  assert.deepEqual([from_ns, until_ns], [0, 0]);
});
