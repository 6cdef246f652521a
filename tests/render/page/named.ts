/* Nodes and passes as Python names them in sentences. */

import type { Page } from "../../../gradviz/render/page/source/data.ts";
import { numberingOf } from "../../../gradviz/render/page/source/numbering.ts";
import type { Named } from "../../../gradviz/render/page/source/templates.ts";

/** A part of a sentence in a pass: `#5 MulBackward0 (12)` of a node. */
export function named(page: Page, part: string | Named, task: number): string {
  if (typeof part === "string") return part;
  if ("pass" in part) return String(page.header.passes[part.pass].whole);
  const number = numberingOf(page).of(part.node, part.task ?? task);
  const called = `${page.text(page.nodes.name[part.node])} (${page.nodes.id[part.node]})`;
  return number < 0 ? called : `#${number} ${called}`;
}
