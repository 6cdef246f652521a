/* The engine at the moment: what lies in the queues, what threads do, who still waits. */

import type { Page } from "./data.ts";
import { button, el } from "./elements.ts";
import { historyOf } from "./history.ts";
import { type History, type Moment, momentAt } from "./moment.ts";
import type { Store } from "./store.ts";
import { calledIn, numberingOf } from "./numbering.ts";
import { count, duration } from "./words.ts";

/** So many rows of each list are shown; of more it is said how many there are. */
const MAX_ROWS = 60;

export function mountNow(element: HTMLElement, page: Page, store: Store): void {
  const history = historyOf(page);
  const [queues, workers, countdowns] = [el("div"), el("div"), el("div")];
  const hint = el(
    "p",
    { class: "hint" },
    "Play, or click on a time, to see queues, threads and countdowns of a moment.",
  );
  const lists = el(
    "div",
    { class: "lists" },
    list("Queues", queues, "in the order in which tasks would be popped"),
    list("Threads", workers, ""),
    list("Countdowns", countdowns, "nodes that still wait for gradients"),
  );
  element.append(hint, lists);
  let shown = -2;
  function tell(): void {
    const { moment } = store.get();
    if (moment === shown || element.clientHeight === 0) return;
    shown = moment;
    hint.hidden = moment >= 0;
    lists.hidden = moment < 0;
    if (moment < 0) return;
    const focused = buttons().indexOf(document.activeElement as HTMLButtonElement);
    const now = momentAt(history, moment);
    queues.replaceChildren(...queueRows(page, store, history, now));
    workers.replaceChildren(...workerRows(page, store, history, now));
    countdowns.replaceChildren(...countdownRows(page, store, history, now));
    // Whoever steps with the focus on a node stays in the lists.
    if (focused >= 0) buttons()[Math.min(focused, buttons().length - 1)]?.focus();
  }
  function buttons(): HTMLButtonElement[] {
    return [...lists.querySelectorAll("button")];
  }
  new ResizeObserver(tell).observe(element);
  store.subscribe(tell, "moment", "panel");
  tell();
}

function list(title: string, rows: HTMLElement, about: string): HTMLElement {
  return el(
    "div",
    { class: "list" },
    el("h3", {}, title, el("small", {}, about)),
    rows,
  );
}

function queueRows(
  page: Page,
  store: Store,
  { queued }: History,
  now: Moment,
): HTMLElement[] {
  return page.header.queues.map(({ id, name }) => {
    const places = now.queues.get(id) ?? [];
    const rows = places.slice(0, MAX_ROWS).map((place) => {
      const task = queued.task[place];
      const what = ["", "root", "wake-up"][queued.what[place]];
      const label =
        queued.node[place] < 0 ? what : calledIn(page, queued.node[place], task);
      const since = duration(
        page.events.at_ns[now.seq] - page.events.at_ns[queued.begin[place]],
      );
      return row(
        store,
        queued.node[place],
        task,
        label,
        `${what === "root" ? "root, " : ""}for ${since}`,
      );
    });
    const head = el(
      "h4",
      {},
      name,
      el("small", {}, places.length === 0 ? "empty" : count(places.length, "task")),
    );
    return el("div", {}, head, el("ol", {}, ...rows), ...more(places.length));
  });
}

function workerRows(
  page: Page,
  store: Store,
  { running }: History,
  now: Moment,
): HTMLElement[] {
  const queueNames = new Map(page.header.queues.map(({ id, name }) => [id, name]));
  return page.header.threads.map(({ number, name }) => {
    const nodes = now.running.get(number) ?? [];
    const rows = nodes.map((place) => {
      const since = duration(
        page.events.at_ns[now.seq] - page.events.at_ns[running.begin[place]],
      );
      return row(
        store,
        running.node[place],
        running.task[place],
        calledIn(page, running.node[place], running.task[place]),
        `for ${since}`,
      );
    });
    const asleep = now.asleep.get(number);
    const does =
      nodes.length > 0
        ? "runs"
        : asleep !== undefined
          ? `asleep on ${queueNames.get(asleep) ?? "its queue"}`
          : "between nodes";
    return el(
      "div",
      {},
      el("h4", {}, name, el("small", {}, does)),
      el("ol", {}, ...rows),
    );
  });
}

function countdownRows(
  page: Page,
  store: Store,
  { gradients }: History,
  now: Moment,
): HTMLElement[] {
  const waiting = now.countdowns.filter((one) => one.remaining > 0);
  const rows = waiting.slice(0, MAX_ROWS).map((one) => {
    const from = one.gradients
      .map((place) => gradients.producer[place])
      .filter((node) => node >= 0)
      .map((node) => numberingOf(page).of(node, one.task));
    const has =
      from.length > 0
        ? `has those of ${from.slice(0, 4).join(", ")}${from.length > 4 ? " …" : ""}`
        : "";
    const made = row(
      store,
      one.node,
      one.task,
      calledIn(page, one.node, one.task),
      has,
    );
    made.prepend(
      el(
        "b",
        { class: "countdown", title: `waits for ${count(one.remaining, "gradient")}` },
        String(one.remaining),
      ),
    );
    return made;
  });
  if (rows.length === 0)
    return [el("p", { class: "hint" }, "No node waits for another gradient.")];
  return [el("ol", {}, ...rows), ...more(waiting.length)];
}

function row(
  store: Store,
  node: number,
  task: number,
  label: string,
  about: string,
): HTMLElement {
  const name =
    node < 0
      ? el("span", {}, label)
      : button(label, () => store.set({ node, task }), { class: "node" });
  return el("li", {}, name, el("small", {}, about));
}

function more(number: number): HTMLElement[] {
  return number > MAX_ROWS
    ? [el("p", { class: "hint" }, `and ${count(number - MAX_ROWS, "more node")}`)]
    : [];
}
