/* Keys of the whole page. A panel that uses one for itself stops it before it comes here. */

import type { Page } from "./data.ts";
import type { Player } from "./replay.ts";
import type { Store } from "./store.ts";
import { switchTheme } from "./theme.ts";
import { lookAt, timeKey } from "./time_axis.ts";

export function listenToKeys(
  page: Page,
  store: Store,
  player: Player,
  help: HTMLDialogElement,
  signal: AbortSignal,
): void {
  function listen(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey)
      return;
    if (help.open || isWrittenIn(event.target)) return;
    if (isPressed(event)) return;
    if (act(event, page, store, player, help) || timeKey(event, page, store))
      event.preventDefault();
  }
  document.addEventListener("keydown", listen, { signal });
}

/** Whether a key is done with; false lets the browser have it. */
function act(
  event: KeyboardEvent,
  page: Page,
  store: Store,
  player: Player,
  help: HTMLDialogElement,
): boolean {
  switch (event.key) {
    case " ":
      player.play();
      return true;
    case ".":
      player.step(1);
      return true;
    case ",":
      player.step(-1);
      return true;
    case ">":
      player.stepNode(1);
      return true;
    case "<":
      player.stepNode(-1);
      return true;
    case "Home":
      player.jump(0);
      return true;
    case "End":
      player.jump(-1);
      return true;
    case "]":
      player.faster(1);
      return true;
    case "[":
      player.faster(-1);
      return true;
    case "k":
      selectNext(page, store, 1);
      return true;
    case "j":
      selectNext(page, store, -1);
      return true;
    case "f":
      lookAtSelected(page, store);
      return true;
    case "t":
      switchTheme(store);
      return true;
    case "?":
      help.showModal();
      return true;
    case "Escape":
      store.set(store.get().node >= 0 ? { node: -1 } : { moment: -1 });
      return true;
    default:
      return false;
  }
}

/** Letters that are written into a field are no commands. */
function isWrittenIn(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  const isField =
    target instanceof HTMLInputElement &&
    target.type !== "range" &&
    target.type !== "checkbox";
  return (
    isField ||
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement
  );
}

/** What a control that has the focus does itself with its keys. */
function isPressed(event: KeyboardEvent): boolean {
  const { target, key } = event;
  if (target instanceof HTMLButtonElement || target instanceof HTMLAnchorElement)
    return key === " " || key === "Enter";
  if (target instanceof HTMLInputElement && target.type === "range")
    return /^(Arrow|Home|End|Page)/.test(key);
  return false;
}

/** The node that began next after the selected one, or before it. */
function selectNext(page: Page, store: Store, step: 1 | -1): void {
  const { runs } = page;
  const { node, task } = store.get();
  let run = runs.node.indexOf(node);
  while (run >= 0 && runs.task[run] !== task) run = runs.node.indexOf(node, run + 1);
  const next = node < 0 ? (step > 0 ? 0 : runs.length - 1) : run + step;
  if (next < 0 || next >= runs.length) return;
  store.set({ node: runs.node[next], task: runs.task[next], moment: runs.begin[next] });
}

function lookAtSelected(page: Page, store: Store): void {
  const { runs } = page;
  const { node, task } = store.get();
  let run = runs.node.indexOf(node);
  while (run >= 0 && runs.task[run] !== task) run = runs.node.indexOf(node, run + 1);
  if (run >= 0)
    lookAt(
      page,
      store,
      runs.start_ns[run],
      Math.max(runs.end_ns[run], runs.start_ns[run] + 1),
    );
}
