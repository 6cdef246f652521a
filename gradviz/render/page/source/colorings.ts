/* What the colors of boxes in the graph stand for, and the words that explain them. */

import { rowsOf } from "./chains.ts";
import { type Colors, NUM_PALETTE } from "./colors.ts";
import type { Page } from "./data.ts";
import { numberingOf } from "./numbering.ts";
import { leavesOf } from "./operations.ts";
import { taskOf } from "./parts.ts";
import type { Plan } from "./plan.ts";
import { duration, size } from "./words.ts";

/** As `--color` of `gradviz render graph` has them, in the words of the page. */
export const COLORINGS = {
  op: "kind of work",
  order: "order",
  time: "time",
  memory: "memory kept",
  wait: "time queued",
  device: "device",
} as const;
export type ColorBy = keyof typeof COLORINGS;

export function isColoring(text: string): text is ColorBy {
  return Object.hasOwn(COLORINGS, text);
}

export interface Coloring {
  /** The color of a box that is shown closed, null where there is nothing to tell. */
  of(box: number, colors: Colors): string | null;
  /** Whether it is unknown, at least for some nodes of a box, how much that is. */
  isUnknown?(box: number): boolean;
  /** The names of colors that have names. */
  legend(colors: Colors): { name: string; color: string }[];
  /** The least and the most, if colors are on a scale. */
  readonly scale: { low: string; high: string } | null;
}

export function coloringOf(
  page: Page,
  plan: Plan,
  tasks: readonly number[],
  by: ColorBy,
): Coloring {
  switch (by) {
    case "op":
      return byFamily(page, plan, tasks);
    case "device":
      return byDevice(page, plan);
    case "memory": {
      const unknown = unknownIn(page, plan);
      return {
        ...onScale(plan, SCALES[by](page, plan, tasks), by),
        ...(unknown.size ? { isUnknown: (box) => unknown.has(box) } : {}),
      };
    }
    default:
      return onScale(plan, SCALES[by](page, plan, tasks), by);
  }
}

const SCALES: Record<
  Exclude<ColorBy, "op" | "device">,
  (page: Page, plan: Plan, tasks: readonly number[]) => Float64Array
> = {
  order: (page, plan) => {
    const numbering = numberingOf(page);
    return summed(
      page,
      plan,
      (node, box) => numbering.of(node, taskOf(page, box)),
      Math.min,
    );
  },
  time: (page, plan, tasks) => {
    const took = tookIn(page, tasks);
    return summed(page, plan, (node) => took[node], add);
  },
  memory: (page, plan) =>
    summed(page, plan, (node) => page.nodes.saved_bytes[node] || -1, add),
  wait: (page, plan, tasks) => {
    const { runs, nodes } = page;
    const waited = new Float64Array(nodes.length).fill(-1);
    for (let run = 0; run < runs.length; run++) {
      if (tasks.includes(runs.task[run])) waited[runs.node[run]] = runs.waited_ns[run];
    }
    return summed(page, plan, (node) => waited[node], add);
  },
};

/** The closed boxes with nodes of which it is unknown what they kept. */
function unknownIn({ boxes, members, nodes }: Page, plan: Plan): Set<number> {
  return new Set(
    plan.closed.filter((box) =>
      [...rowsOf(plan.members, box)].some((row) => {
        const node = members.node[row];
        const isOwn = boxes.num_nodes[box] > 1 || node === boxes.node[box];
        return node >= 0 && isOwn && nodes.saved_bytes[node] < 0;
      }),
    ),
  );
}

const add = (one: number, other: number) => one + other;

/** Of each closed box the values of its nodes together; -1 where none is known. */
function summed(
  { boxes, members }: Page,
  plan: Plan,
  worth: (node: number, box: number) => number,
  join: (one: number, other: number) => number,
): Float64Array {
  const found = new Float64Array(boxes.length).fill(-1);
  for (const box of plan.closed) {
    for (const row of rowsOf(plan.members, box)) {
      const node = members.node[row];
      const isOwn = boxes.num_nodes[box] > 1 || node === boxes.node[box];
      const value =
        node < 0 || !isOwn || plan.boxOf[node] !== box ? -1 : worth(node, box);
      if (value >= 0) found[box] = found[box] < 0 ? value : join(found[box], value);
    }
  }
  return found;
}

/** How long each node took in some passes, -1 where it did not run. */
function tookIn({ runs, nodes }: Page, tasks: readonly number[]): Float64Array {
  const took = new Float64Array(nodes.length).fill(-1);
  for (let run = 0; run < runs.length; run++) {
    if (tasks.includes(runs.task[run]))
      took[runs.node[run]] = runs.end_ns[run] - runs.start_ns[run];
  }
  return took;
}

/** Logarithmic, but for the order. */
function onScale(plan: Plan, values: Float64Array, by: ColorBy): Coloring {
  const known = plan.closed.map((box) => values[box]).filter((value) => value >= 0);
  const least = known.reduce((one, other) => Math.min(one, other), Infinity);
  const most = known.reduce((one, other) => Math.max(one, other), 0);
  const place = (value: number) =>
    by === "order" ? value : Math.log(Math.max(value, 1));
  const [low, high] = [place(least), place(most)];
  const words = (value: number) =>
    by === "order"
      ? `number ${value}`
      : by === "memory"
        ? size(value)
        : duration(value);
  return {
    of: (box, { ramp }) =>
      values[box] < 0
        ? null
        : ramp[
            Math.round(
              ((place(values[box]) - low) / Math.max(high - low, 1e-9)) *
                (ramp.length - 1),
            )
          ],
    legend: () => [],
    scale: known.length ? { low: words(least), high: words(most) } : null,
  };
}

/** That which took most of the time of a box; leaves count where there is nothing else. */
function byFamily(page: Page, plan: Plan, tasks: readonly number[]): Coloring {
  const { boxes, members, nodes, header } = page;
  const leaves = leavesOf(header);
  const took = tookIn(page, tasks);
  const found = new Uint8Array(boxes.length).fill(header.families.indexOf("other"));
  const used = new Set<number>();
  for (const box of plan.closed) {
    if (boxes.node[box] >= 0) found[box] = nodes.family[boxes.node[box]];
    if (boxes.num_nodes[box] > 1) {
      const sums = new Float64Array(header.families.length);
      for (const row of rowsOf(plan.members, box)) {
        const node = members.node[row];
        if (node >= 0 && nodes.family[node] !== leaves)
          sums[nodes.family[node]] += Math.max(took[node], 0) + 1;
      }
      if (sums.some((sum) => sum > 0)) found[box] = sums.indexOf(Math.max(...sums));
    }
    used.add(found[box]);
  }
  return {
    of: (box, { families }) => families[found[box]],
    legend: ({ families }) =>
      [...used]
        .sort((one, other) => one - other)
        .map((at) => ({ name: header.families[at], color: families[at] })),
    scale: null,
  };
}

/** The device of the first node of a box, as far as there are colors. */
function byDevice(page: Page, { closed }: Plan): Coloring {
  const { nodes, boxes } = page;
  const names = [
    ...new Set([...new Set(nodes.device)].map((place) => page.text(place))),
  ];
  const sorted = names
    .filter(Boolean)
    .sort(
      (one, other) =>
        Number(other === "cpu") - Number(one === "cpu") || (one < other ? -1 : 1),
    );
  const placeOf = (box: number) =>
    boxes.node[box] < 0 ? -1 : sorted.indexOf(page.text(nodes.device[boxes.node[box]]));
  const used = new Set(closed.map(placeOf));
  const colorOf = (place: number, { palette }: Colors) =>
    palette[Math.min(place, NUM_PALETTE)];
  return {
    of: (box, colors) => (placeOf(box) < 0 ? null : colorOf(placeOf(box), colors)),
    legend: (colors) =>
      sorted
        .map((name, place) => ({ name, place }))
        .filter(({ place }) => used.has(place))
        .map(({ name, place }) => ({ name, color: colorOf(place, colors) })),
    scale: null,
  };
}
