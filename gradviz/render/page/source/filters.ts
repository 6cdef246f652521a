/* Which nodes are meant by what a reader has written or chosen. */

import type { Page } from "./data.ts";
import type { Filters } from "./store.ts";

/** Texts of a node that are searched. */
const SEARCHED = ["name", "module", "parameter", "location"] as const;

/** Of each node whether it is meant; null where all are. */
export function meantBy(page: Page, filters: Filters): Uint8Array | null {
  const { text, device, status } = filters;
  if (!text && !device && !status) return null;
  const { nodes, runs, header } = page;
  const meant = new Uint8Array(nodes.length).fill(1);
  if (text) {
    const words = text.toLowerCase();
    const has = placesWith(page, (one) => one.toLowerCase().includes(words));
    for (let node = 0; node < nodes.length; node++) {
      const isMeant =
        SEARCHED.some((of) => nodes[of][node] >= 0 && has[nodes[of][node]] === 1) ||
        String(nodes.id[node]) === words;
      if (!isMeant) meant[node] = 0;
    }
  }
  if (device) {
    const has = placesWith(page, (one) => one === device);
    for (let node = 0; node < nodes.length; node++) {
      if (nodes.device[node] < 0 || !has[nodes.device[node]]) meant[node] = 0;
    }
  }
  if (status) {
    const wanted = header.statuses.indexOf(status);
    const has = new Uint8Array(nodes.length);
    for (let run = 0; run < runs.length; run++) {
      if (runs.status[run] === wanted) has[runs.node[run]] = 1;
    }
    for (let node = 0; node < nodes.length; node++) meant[node] &= has[node];
  }
  return meant;
}

/** Nodes that a text means, those it means most first: at most so many. */
export function found(page: Page, text: string, most: number): number[] {
  const words = text.trim().toLowerCase();
  const meant = words ? meantBy(page, { text: words, device: "", status: "" }) : null;
  if (!meant) return [];
  const { nodes } = page;
  const ranks: number[][] = [[], [], [], []];
  for (let node = 0; node < nodes.length; node++) {
    if (!meant[node]) continue;
    const name = page.text(nodes.name[node]).toLowerCase();
    const rank =
      String(nodes.id[node]) === words
        ? 0
        : page.text(nodes.parameter[node]).toLowerCase().endsWith(words)
          ? 1
          : name.startsWith(words)
            ? 2
            : 3;
    if (ranks[rank].length < most) ranks[rank].push(node);
  }
  return ranks.flat().slice(0, most);
}

/** Of each text whether it is as wanted: a text is looked at once, however often used. */
function placesWith({ header }: Page, isMeant: (text: string) => boolean): Uint8Array {
  return Uint8Array.from(header.texts, (one) => Number(isMeant(one)));
}
