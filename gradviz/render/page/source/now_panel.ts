/* The engine at the moment: what lies in the queues, what threads do, who still waits. */

import type { Page } from "./data.ts";
import { el } from "./elements.ts";
import { historyOf } from "./history.ts";
import { type History, type Moment, momentAt } from "./moment.ts";
import { countdownInWords, idleInWords } from "./moment_words.ts";
import { type NodeList, type NodeRow, nodeList } from "./node_list.ts";
import { calledIn } from "./numbering.ts";
import type { Store } from "./store.ts";
import { count, duration } from "./words.ts";

/** Nobody reads lists that change more often than this. */
const LEAST_MS = 50;
/** Of the nodes that have given a gradient so many are named. */
const MOST_GIVERS = 4;

export function mountNow(element: HTMLElement, page: Page, store: Store): void {
  const { header } = page;
  const queues = header.queues.map(({ name }) => nodeList(store, name));
  const threads = header.threads.map(({ name }) => nodeList(store, name));
  const countdowns = nodeList(store, "");
  const hint = el(
    "p",
    { class: "hint" },
    "Play, or click on a time, to see queues, threads and countdowns of a moment.",
  );
  const lists = el(
    "div",
    { class: "lists" },
    group("Queues", queues, "in the order in which tasks would be popped"),
    group("Threads", threads, ""),
    group("Countdowns", [countdowns], "nodes that still wait for gradients"),
  );
  element.append(hint, lists);
  let history: History | undefined;
  let shown = -2;
  let isSeen = false;
  let toldAt = -Infinity;
  let due: ReturnType<typeof setTimeout> | undefined;

  function tell(): void {
    const { moment } = store.get();
    if (moment === shown || !isSeen) return;
    shown = moment;
    toldAt = performance.now();
    hint.hidden = moment >= 0;
    lists.hidden = moment < 0;
    if (moment < 0) return;
    history ??= historyOf(page);
    const now = momentAt(history, moment);
    tellQueues(page, queues, history, now);
    tellThreads(page, threads, history, now);
    tellCountdowns(page, countdowns, history, now);
  }
  function soon(): void {
    if (due !== undefined) return;
    const wait = toldAt + LEAST_MS - performance.now();
    if (wait <= 0) {
      tell();
      return;
    }
    due = setTimeout(() => {
      due = undefined;
      tell();
    }, wait);
  }
  new ResizeObserver(() => {
    isSeen = element.clientHeight > 0;
    tell();
  }).observe(element);
  store.subscribe(soon, "moment");
}

function group(title: string, lists: readonly NodeList[], about: string): HTMLElement {
  return el(
    "div",
    { class: "list" },
    el("h3", {}, title, el("small", {}, about)),
    ...lists.map(({ element }) => element),
  );
}

function tellQueues(
  page: Page,
  lists: readonly NodeList[],
  { queued }: History,
  now: Moment,
): void {
  page.header.queues.forEach(({ id }, at) => {
    const places = now.queues.get(id) ?? [];
    const about = places.length === 0 ? "empty" : count(places.length, "task");
    lists[at].tell(about, places, (place) => {
      const [node, task] = [queued.node[place], queued.task[place]];
      const what = page.header.pushes[queued.what[place]].replaceAll("_", "-");
      const since = sinceBegin(page, now, queued.begin[place]);
      return {
        ...{ node, task },
        label: node < 0 ? what : calledIn(page, node, task),
        about: what === "root" ? `root, ${since}` : since,
      };
    });
  });
}

function tellThreads(
  page: Page,
  lists: readonly NodeList[],
  { running }: History,
  now: Moment,
): void {
  page.header.threads.forEach(({ number }, at) => {
    const places = now.running.get(number) ?? [];
    const asleep = now.asleep.get(number);
    const does = places.length > 0 ? "runs" : idleInWords(page.header, asleep);
    lists[at].tell(does, places, (place) => {
      const [node, task] = [running.node[place], running.task[place]];
      const about = sinceBegin(page, now, running.begin[place]);
      return { node, task, label: calledIn(page, node, task), about };
    });
  });
}

function tellCountdowns(
  page: Page,
  list: NodeList,
  { gradients }: History,
  now: Moment,
): void {
  const waiting = now.countdowns.filter((one) => one.remaining > 0);
  const none = waiting.length === 0 ? "No node waits for another gradient." : "";
  const called = (node: number, task: number) => calledIn(page, node, task);
  list.tell(none, waiting, (one): NodeRow => {
    const { node, task, remaining: waits } = one;
    const about = countdownInWords(page, gradients, one, called, MOST_GIVERS);
    return { node, task, waits, label: called(node, task), about };
  });
}

function sinceBegin({ events }: Page, now: Moment, begin: number): string {
  return `for ${duration(events.at_ns[now.seq] - events.at_ns[begin])}`;
}
