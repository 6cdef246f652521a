import assert from "node:assert/strict";
import { test } from "node:test";

import {
  createStore,
  fromHash,
  INITIAL,
  type State,
  toHash,
} from "../../../gradviz/render/page/source/store.ts";

function made() {
  const waiting: (() => void)[] = [];
  const store = createStore(INITIAL, (run) => waiting.push(run));
  const frame = () => {
    for (const run of waiting.splice(0)) run();
  };
  return { store, frame };
}

test("who looks at a part hears of its changes, once for a frame", () => {
  const { store, frame } = made();
  const heard: number[] = [];
  store.subscribe((state) => heard.push(state.node), "node");

  store.set({ node: 3 });
  store.set({ node: 5 });
  frame();
  store.set({ moment: 7 });
  frame();

  assert.deepEqual(heard, [5]);
});

test("who looks at nothing in particular hears of all", () => {
  const { store, frame } = made();
  const heard: string[][] = [];
  store.subscribe((_, changed) => heard.push([...changed]));

  store.set({ node: 3, moment: 2 });
  frame();

  assert.deepEqual(heard, [["node", "moment"]]);
});

test("what is set to what it is changes nothing", () => {
  const { store, frame } = made();
  let heard = 0;
  store.subscribe(() => heard++);

  store.set({ node: -1, filters: { ...INITIAL.filters } });
  frame();

  assert.equal(heard, 0);
});

test("who has left hears no more", () => {
  const { store, frame } = made();
  let heard = 0;
  const leave = store.subscribe(() => heard++);

  leave();
  store.set({ node: 3 });
  frame();

  assert.equal(heard, 0);
});

test("a listener may change the state, which is told in the next frame", () => {
  const { store, frame } = made();
  const heard: number[] = [];
  store.subscribe((state) => {
    heard.push(state.moment);
    store.set({ moment: Math.min(state.moment + 1, 2) });
  });

  store.set({ moment: 1 });
  frame();
  frame();
  frame();

  assert.deepEqual(heard, [1, 2]);
});

test("a state comes back from its hash", () => {
  const state: State = {
    ...INITIAL,
    node: 12,
    task: 1,
    moment: 99,
    from_ns: 5,
    until_ns: 10 ** 12,
    open: [1, 2, 3, 9],
    colorBy: "wait",
    critical: false,
    theme: "dark",
    panel: "memory",
    filters: { text: "a&b=#c", device: "sim:0", status: "" },
  };

  assert.deepEqual({ ...INITIAL, ...fromHash(toHash(state)) }, state);
  assert.equal(toHash(INITIAL), "");
});

test("of a hash that says nonsense nothing is believed", () => {
  const hash = "#node=abc&moment=1e9&theme=<b>&panel=<script>&color=green&toString=1";

  assert.deepEqual(fromHash(hash), {});
});
