/* What stays chosen when a page is given other data: more of a pass, or another one. */

import type { Page } from "./data.ts";
import { INITIAL, type State } from "./store.ts";

/** The state of a page that comes after another, as far as that has the same things. */
export function carriedOver(state: Readonly<State>, from: Page, to: Page): State {
  const task = Math.min(state.task, Math.max(to.header.passes.length - 1, 0));
  const isSame = from.header.passes[state.task]?.task === to.header.passes[task]?.task;
  const isThere = state.until_ns <= to.header.duration_ns;
  return {
    ...state,
    task,
    node: isSame ? nodeById(state.node, from, to) : nodeLike(state.node, from, to),
    hover: -1,
    moment: isSame ? Math.min(state.moment, to.events.length - 1) : INITIAL.moment,
    from_ns: isThere ? state.from_ns : INITIAL.from_ns,
    until_ns: isThere ? state.until_ns : INITIAL.until_ns,
    open:
      state.open &&
      openLike(state.open, namedBoxes(from, state.task), namedBoxes(to, task)),
  };
}

/** The boxes that are called as those which were open. */
function openLike(open: readonly number[], from: string[], to: string[]): number[] {
  const names = new Set(open.map((box) => from[box]));
  return [...to.keys()].filter((box) => names.has(to[box]));
}

/** What boxes are called, after all that they are in and how many came before them. */
function namedBoxes({ boxes, parts, text }: Page, task: number): string[] {
  const names: string[] = [];
  const met = new Map<string, number>();
  for (let box = 0; box < boxes.length; box++) {
    const [part, outer] = [boxes.part[box], parts.box[boxes.part[box]]];
    const within = outer < 0 ? String(parts.task[part] - task) : names[outer];
    const name = `${within}\n${text(boxes.title[box])}`;
    met.set(name, (met.get(name) ?? 0) + 1);
    names.push(`${name} ${met.get(name)}`);
  }
  return names;
}

function nodeById(node: number, from: Page, to: Page): number {
  return node < 0 ? -1 : to.nodes.id.indexOf(from.nodes.id[node]);
}

/** The node of another pass that is called the same: of several the one as late. */
function nodeLike(node: number, from: Page, to: Page): number {
  if (node < 0) return -1;
  const name = nameOf(node, from);
  let earlier = 0;
  for (let one = 0; one < node; one++) if (nameOf(one, from) === name) earlier++;
  for (let one = 0; one < to.nodes.length; one++) {
    if (nameOf(one, to) === name && earlier-- === 0) return one;
  }
  return -1;
}

function nameOf(node: number, { nodes, text }: Page): string {
  const parts = [nodes.name[node], nodes.module[node], nodes.parameter[node]];
  return parts.map(text).join("\n");
}
