/* Which nodes are meant by what a reader has written or chosen.

Words are looked for one by one, and a node must have all of them. A word is a part of
a text of the node, or one of its numbers; `module=encoder` looks in the module only. */

import type { Page } from "./data.ts";
import { numberingOf } from "./numbering.ts";
import type { Filters } from "./store.ts";

/** Texts of a node that are searched, and what a reader may call them. */
const TEXTS = {
  name: "name",
  module: "module",
  parameter: "parameter",
  line: "location",
  shape: "shape",
  device: "device",
} as const;
type Text = keyof typeof TEXTS;

/** Its number in pictures, in the trace, and in the order in which it was made. */
const NUMBERS = ["number", "id", "sequence"] as const;

/** What may stand before a `=`. */
export const KEYS: readonly string[] = [...Object.keys(TEXTS), ...NUMBERS];

/** Without a key these texts are searched: shapes and devices are the same in many. */
const SEARCHED: readonly Text[] = ["name", "module", "parameter", "line"];

/** Of each node whether it is meant; null where all are. */
export function meantBy(page: Page, filters: Filters): Uint8Array | null {
  const { text, device, status } = filters;
  if (!text && !device && !status) return null;
  const { nodes, runs, header } = page;
  const meant = new Uint8Array(nodes.length).fill(1);
  for (const word of text.toLowerCase().split(/\s+/).filter(Boolean)) {
    const has = wordOf(page, word);
    for (let node = 0; node < nodes.length; node++) meant[node] &= Number(has(node));
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
  const isNumber = numbersOf(page, words);
  const ranks: number[][] = [[], [], [], []];
  for (let node = 0; node < nodes.length; node++) {
    if (!meant[node]) continue;
    const name = page.text(nodes.name[node]).toLowerCase();
    const rank =
      isNumber.number(node) || isNumber.id(node)
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

/** Tells of a node whether a word is in it. */
function wordOf(page: Page, word: string): (node: number) => boolean {
  const { nodes } = page;
  const [, key, value] = /^([a-z]+)=(.*)$/.exec(word) ?? [];
  const isKnown = key !== undefined && KEYS.includes(key);
  const wanted = isKnown ? value : word;
  const has = placesWith(page, (one) => one.toLowerCase().includes(wanted));
  const isNumber = numbersOf(page, wanted);
  const tests = (isKnown ? [key] : [...SEARCHED, ...NUMBERS]).map((of) => {
    if (of in isNumber) return isNumber[of as (typeof NUMBERS)[number]];
    const column = nodes[TEXTS[of as Text]];
    return (node: number) => column[node] >= 0 && has[column[node]] === 1;
  });
  return (node) => tests.some((test) => test(node));
}

/** Tell of a node whether one of its numbers is written so. */
function numbersOf(page: Page, text: string) {
  const wanted = /^\d+$/.test(text) ? Number(text) : NaN;
  const { ofRun } = numberingOf(page);
  const numbered = new Uint8Array(page.nodes.length);
  for (let run = 0; run < page.runs.length; run++) {
    if (ofRun[run] === wanted) numbered[page.runs.node[run]] = 1;
  }
  return {
    number: (node: number) => numbered[node] === 1,
    id: (node: number) => page.nodes.id[node] === wanted,
    sequence: (node: number) => page.nodes.sequence_nr[node] === wanted,
  };
}

/** Of each text whether it is as wanted: a text is looked at once, however often used. */
function placesWith({ header }: Page, isMeant: (text: string) => boolean): Uint8Array {
  return Uint8Array.from(header.texts, (one) => Number(isMeant(one)));
}
