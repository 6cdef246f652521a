/* What nodes do, by name and by family. */

import type { Header } from "./data.ts";

/** What a node does, without what all names end in. */
export function operation(name: string): string {
  return name.replace(/Backward\d*$/, "");
}

/** The family that is no operation: nodes that only receive. */
export function leavesOf({ families }: Header): number {
  return families.indexOf("leaves");
}
