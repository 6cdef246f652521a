/* Which operation has which colour: those that took most time have one of their own. */

import { NUM_OPERATIONS } from "./colours.ts";
import type { Page } from "./data.ts";

const LEAF = "AccumulateGrad";
/** Colours beyond those of the palette. */
export const LEAF_COLOUR = NUM_OPERATIONS;
export const REST_COLOUR = LEAF_COLOUR + 1;

/** What a node does, without what all names end in. */
export function operation(name: string): string {
  return name.replace(/Backward\d*$/, "");
}

export interface Operations {
  /** Those that have a colour, by colour. */
  readonly names: readonly string[];
  /** The colour of each node. */
  readonly colour: Uint8Array;
}

export function operationsOf(page: Page): Operations {
  const { runs, nodes } = page;
  const took = new Map<string, number>();
  const of = page.header.texts.map(operation);
  for (let run = 0; run < runs.length; run++) {
    const key = of[nodes.name[runs.node[run]]] ?? "";
    if (key === LEAF) continue;
    took.set(key, (took.get(key) ?? 0) + runs.end_ns[run] - runs.start_ns[run]);
  }
  const ranked = [...took].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const names = ranked.slice(0, LEAF_COLOUR).map(([name]) => name);
  const colourOf = of.map((name) => {
    const place = names.indexOf(name);
    return name === LEAF ? LEAF_COLOUR : place < 0 ? REST_COLOUR : place;
  });
  return { names, colour: Uint8Array.from(nodes.name, (name) => colourOf[name] ?? REST_COLOUR) };
}
