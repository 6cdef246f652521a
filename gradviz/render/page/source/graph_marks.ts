/* What of a graph is marked: the critical path, and the ways of what one looks at. */

import type { Page } from "./data.ts";
import type { Passages } from "./passages.ts";
import type { Plan } from "./plan.ts";

export interface Marks {
  readonly criticalBoxes: ReadonlySet<number>;
  readonly criticalWays: ReadonlySet<number>;
  readonly nearWays: ReadonlySet<number>;
}

interface Wanted {
  readonly node: number;
  /** The box that is pointed at. */
  readonly pointed: number;
  readonly critical: boolean;
}

export function marksOf(
  page: Page,
  plan: Plan,
  passages: Passages,
  task: number,
  { node, pointed, critical }: Wanted,
): Marks {
  const { segments, edges, header } = page;
  const { boxOf } = plan;
  const [criticalBoxes, criticalWays, nearWays] = [0, 0, 0].map(
    () => new Set<number>(),
  );
  if (critical && task === header.critical_task) {
    let before = -1;
    for (let row = 0; row < segments.length; row++) {
      const box = segments.node[row] < 0 ? -1 : boxOf[segments.node[row]];
      if (box < 0) continue;
      criticalBoxes.add(box);
      for (const way of passages(before, box)) criticalWays.add(way);
      before = box;
    }
  }
  const near = new Set(
    [node < 0 ? -1 : boxOf[node], pointed].filter((box) => box >= 0),
  );
  for (let row = 0; near.size && row < edges.length; row++) {
    const [one, other] = [boxOf[edges.producer[row]], boxOf[edges.consumer[row]]];
    if (!near.has(one) && !near.has(other)) continue;
    for (const way of passages(one, other)) nearWays.add(way);
  }
  return { criticalBoxes, criticalWays, nearWays };
}
