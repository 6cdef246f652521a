/* What a tooltip of the graph says. */

import type { Page } from "./data.ts";
import { numberingOf } from "./numbering.ts";
import { around, type Parts, taskOf } from "./parts.ts";
import type { Hit } from "./plan.ts";
import { count, duration, size } from "./words.ts";

export function wordsOf(page: Page, parts: Parts, hit: Hit): string[] {
  const { boxes, text } = page;
  const { box, node, isTitle } = hit;
  if (isTitle || boxes.num_nodes[box] > 1) {
    const numbers = text(boxes.badge[box]);
    const lines = [
      titleIn(page, box),
      [count(boxes.num_nodes[box], "node"), numbers].filter(Boolean).join(", "),
    ];
    if (isTitle) return [...lines, "click: close it"];
    const canOpen = parts.inside[box] >= 0;
    return [
      ...lines,
      text(boxes.subtitle[box]),
      canOpen
        ? "double click: open it"
        : "its nodes have no boxes of their own on this page",
    ];
  }
  if (node < 0) return [text(boxes.title[box])];
  const called =
    parts.inside[box] < 0 ? [] : ["double click: see the pass that it called"];
  return [...wordsOfNode(page, taskOf(page, box), node), ...called];
}

function wordsOfNode(page: Page, task: number, node: number): string[] {
  const { nodes, runs, text } = page;
  const number = numberingOf(page).of(node, task);
  const called = number < 0 ? "" : `${number} `;
  const lines = [`${called}${text(nodes.name[node])} (id ${nodes.id[node]})`];
  for (const of of ["parameter", "shape", "module", "location", "device"] as const) {
    if (nodes[of][node] >= 0) lines.push(text(nodes[of][node]));
  }
  const run = runs.node.findIndex(
    (one, row) => one === node && runs.task[row] === task,
  );
  if (run < 0) return [...lines, "did not run in this pass"];
  const status = page.header.statuses[runs.status[run]];
  if (status === "captured") return [...lines, "its gradient was captured"];
  lines.push(`ran for ${duration(runs.end_ns[run] - runs.start_ns[run])}`);
  if (runs.waited_ns[run] >= 0)
    lines.push(`was queued for ${duration(runs.waited_ns[run])}`);
  const kept = nodes.saved_bytes[node];
  if (kept) lines.push(kept < 0 ? "what it kept is unknown" : `kept ${size(kept)}`);
  if (runs.error[run] >= 0) lines.push(text(runs.error[run]));
  return lines;
}

/** What a part is called with all that it is a part of. */
function titleIn(page: Page, box: number): string {
  const titles = [];
  for (let at = box; at >= 0; at = around(page, at))
    titles.unshift(page.text(page.boxes.title[at]));
  return titles.join(" › ");
}
