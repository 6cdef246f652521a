import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import type { Frame } from "../../../gradviz/render/page/source/camera.ts";
import { composed } from "../../../gradviz/render/page/source/composition.ts";
import { type Page, readPage } from "../../../gradviz/render/page/source/data.ts";
import {
  levelsOf,
  opened,
  openedFirst,
} from "../../../gradviz/render/page/source/opening.ts";
import {
  around,
  openable,
  partsOf,
} from "../../../gradviz/render/page/source/parts.ts";
import { passagesOf } from "../../../gradviz/render/page/source/passages.ts";
import {
  frameOf,
  type Plan,
  TITLE_HEIGHT,
} from "../../../gradviz/render/page/source/plan.ts";
import { random } from "./random.ts";

/* Pages of programs: written by test_drawings.py. */
const path = process.env.PAGES;
const told = path
  ? (JSON.parse(readFileSync(path, "utf-8")) as Record<string, string>)
  : {};

for (const [name, data] of Object.entries(told)) {
  test(`boxes open in place, and nothing meets that did not: ${name}`, async () => {
    const page = await readPage(data);
    const parts = partsOf(page);
    const chosen = random(7);

    for (const task of parts.roots.keys()) {
      const all = openable(parts, task);
      for (const chance of [0, 0.3, 0.7, 1]) {
        const open = new Set(all.filter(() => chosen() < chance));
        check(page, composed(page, parts, task, open), open);
      }
    }
  });

  test(`every edge is drawn from one closed box to the other: ${name}`, async () => {
    const page = await readPage(data);
    const parts = partsOf(page);

    for (const task of parts.roots.keys()) {
      const { open } = levelsOf(parts, task).at(-1)!;
      for (const opened of [open, open.filter((_, at) => at % 2), []]) {
        const plan = composed(page, parts, task, new Set(opened));
        const passages = passagesOf(page, plan);
        for (let edge = 0; edge < page.edges.length; edge++) {
          const one = plan.boxOf[page.edges.producer[edge]];
          const other = plan.boxOf[page.edges.consumer[edge]];
          if (one < 0 || other < 0 || one === other || isChip(page, edge)) continue;
          isConnected(plan, passages(one, other), one, other);
        }
      }
    }
  });

  test(`at first few boxes are shown, and each node can be: ${name}`, async () => {
    const page = await readPage(data);
    const parts = partsOf(page);
    const first = new Set(openedFirst(parts));

    for (const task of parts.roots.keys()) {
      const levels = levelsOf(parts, task);
      for (const { open, numBoxes } of levels)
        assert.equal(
          composed(page, parts, task, new Set(open)).closed.length,
          numBoxes,
        );
      const shown = composed(page, parts, task, first).closed.length;
      assert.ok(shown <= Math.max(60, levels[0].numBoxes));
      const [member] = [
        page.members.box.findIndex((box) => taskOf(page, box) === task),
      ];
      const box = page.members.box[member];
      const plan = composed(page, parts, task, new Set(opened(page, [], box)));
      assert.equal(plan.boxOf[page.members.node[member]], box);
    }
  });
}

function taskOf({ parts, boxes }: Page, box: number): number {
  return parts.task[boxes.part[box]];
}

/** Whether an edge leads to a leaf that is drawn in a box, and not as one. */
function isChip({ edges, chips }: Page, edge: number): boolean {
  return chips.node.includes(edges.consumer[edge]);
}

function check(page: Page, plan: Plan, open: ReadonlySet<number>): void {
  const frames = new Map(
    [...plan.closed, ...plan.opened].map((box) => [box, frameOf(plan, box)]),
  );
  for (const [box, frame] of frames) {
    const outer = around(page, box);
    if (outer < 0) {
      assert.ok(frame.left >= -1 && frame.right <= plan.wide + 1);
      assert.ok(frame.top >= -1 && frame.bottom <= plan.high + 1);
      continue;
    }
    assert.ok(open.has(outer));
    const border = frames.get(outer)!;
    assert.ok(frame.left > border.left && frame.right < border.right);
    assert.ok(frame.top >= border.top + TITLE_HEIGHT && frame.bottom < border.bottom);
  }
  const shown = plan.closed.map((box) => frames.get(box)!);
  shown.sort((one, other) => one.top - other.top);
  shown.forEach((one, at) => {
    for (
      let next = at + 1;
      next < shown.length && shown[next].top < one.bottom - 1;
      next++
    )
      assert.ok(!meet(one, shown[next]), "two boxes meet");
  });
  for (const box of plan.opened) {
    for (const other of plan.closed) {
      if (!isIn(page, other, box))
        assert.ok(!meet(frames.get(box)!, frames.get(other)!));
    }
  }
}

function isIn(page: Page, box: number, outer: number): boolean {
  for (let at = box; at >= 0; at = around(page, at)) if (at === outer) return true;
  return false;
}

function meet(one: Frame, other: Frame): boolean {
  const more = 1; // places are rounded
  return (
    one.left + more < other.right &&
    other.left + more < one.right &&
    one.top + more < other.bottom &&
    other.top + more < one.bottom
  );
}

/** Ways follow each other without a gap, from the lower side of one to the upper of the other. */
function isConnected(plan: Plan, ways: number[], one: number, other: number): void {
  const { x, y, end } = plan.ways;
  const first = (way: number) => (way ? end[way - 1] : 0);
  const ends = new Set(ways.map((way) => `${x[end[way] - 1]} ${y[end[way] - 1]}`));
  const begins = new Set(ways.map((way) => `${x[first(way)]} ${y[first(way)]}`));
  const [from, to] = [frameOf(plan, one), frameOf(plan, other)];
  const leave = ways.filter((way) => Math.abs(y[first(way)] - from.bottom) < 1.6);
  const arrive = ways.filter((way) => Math.abs(y[end[way] - 1] - to.top) < 1.6);
  assert.ok(ways.length > 0 && leave.length > 0 && arrive.length > 0);
  assert.ok(
    leave.every((way) => x[first(way)] >= from.left && x[first(way)] <= from.right),
  );
  assert.ok(
    arrive.every((way) => x[end[way] - 1] >= to.left && x[end[way] - 1] <= to.right),
  );
  // All but the last piece end where another one begins.
  const open = [...ends].filter((place) => !begins.has(place));
  assert.ok(
    open.every((place) => Number(place.split(" ")[1]) >= to.top - 1.6),
    open.join(),
  );
}
