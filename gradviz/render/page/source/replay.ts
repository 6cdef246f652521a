/* The bar that replays a pass: event by event, forwards and backwards. */

import type { Page } from "./data.ts";
import { button, el } from "./elements.ts";
import { type EventWords, eventWordsOf } from "./event_words.ts";
import { nextOf } from "./events.ts";
import { calledIn } from "./numbering.ts";
import type { Store } from "./store.ts";
import type { Sentence } from "./templates.ts";
import { reach } from "./time_axis.ts";
import { duration, integer } from "./words.ts";

/** Events a second. */
const SPEEDS = [1, 2, 5, 10, 30, 100, 300, 1000, 10_000];

/** What keys and buttons do with the moment. */
export interface Player {
  step(events: number): void;
  /** To the next node that begins, or the one before. */
  stepNode(step: 1 | -1): void;
  jump(moment: number): void;
  play(): void;
  faster(steps: number): void;
}

export function mountReplay(element: HTMLElement, page: Page, store: Store): Player {
  const last = page.events.length - 1;
  const say = eventWordsOf(page);
  let speed = SPEEDS.indexOf(store.get().speed);
  let playing = 0;
  const slider = el("input", {
    type: "range",
    min: "-1",
    max: String(last),
    step: "1",
    class: "moments",
    "aria-label": "Moment of the pass",
  });
  slider.addEventListener("input", () => jump(Number(slider.value)));
  const speeds = el("select", { "aria-label": "Speed", title: "Speed" });
  for (const [at, one] of SPEEDS.entries())
    speeds.append(el("option", { value: String(at) }, `${integer(one)}/s`));
  speeds.value = String(speed);
  speeds.addEventListener("change", () => hurry(Number(speeds.value)));
  const play = button("", toggle, { class: "play" });
  const told = el("output", { class: "told", "aria-live": "off" });
  element.append(
    el(
      "div",
      { class: "buttons", role: "group", "aria-label": "Replay" },
      button("|◀", () => jump(0), named("First event", "Home")),
      button("‹", () => step(-1), named("One event back", ",")),
      play,
      button("›", () => step(1), named("One event on", ".")),
      button("▶|", () => jump(last), named("Last event", "End")),
    ),
    speeds,
    slider,
    told,
  );

  function jump(moment: number): void {
    const next = Math.min(Math.max(moment, -1), last);
    store.set({ moment: next });
    if (next >= 0) reach(page, store, page.events.at_ns[next]);
  }
  function hurry(place: number): void {
    speed = Math.min(Math.max(place, 0), SPEEDS.length - 1);
    speeds.value = String(speed);
    store.set({ speed: SPEEDS[speed] });
  }
  function step(events: number): void {
    stop();
    jump(Math.max(store.get().moment + events, 0));
  }
  function stop(): void {
    cancelAnimationFrame(playing);
    playing = 0;
    tell();
  }
  function toggle(): void {
    if (playing !== 0) {
      stop();
      return;
    }
    if (store.get().moment >= last) jump(0);
    let due = store.get().moment;
    let before = performance.now();
    function frame(now: number): void {
      due += ((now - before) / 1000) * SPEEDS[speed];
      before = now;
      // Where the reader has gone elsewhere meanwhile, it goes on from there.
      if (Math.abs(Math.floor(due) - store.get().moment) > SPEEDS[speed] + 1)
        due = store.get().moment;
      if (Math.floor(due) !== store.get().moment) jump(Math.floor(due));
      if (store.get().moment >= last) stop();
      else playing = requestAnimationFrame(frame);
    }
    playing = requestAnimationFrame(frame);
    tell();
  }
  function tell(): void {
    const { moment } = store.get();
    slider.value = String(moment);
    const words = moment < 0 ? "the whole pass" : status(page, say, moment);
    slider.setAttribute("aria-valuetext", words);
    told.textContent = words;
    const isPlaying = playing !== 0;
    play.textContent = isPlaying ? "❚❚" : "▶";
    for (const [name, value] of Object.entries(
      named(isPlaying ? "Pause" : "Play", "Space"),
    )) {
      play.setAttribute(name, value);
    }
  }
  store.subscribe(tell, "moment");
  tell();
  return {
    step,
    jump(moment) {
      stop();
      jump(moment < 0 ? last + 1 + moment : moment);
    },
    stepNode(direction) {
      stop();
      const next = nextOf(page, "node_started", store.get().moment, direction);
      if (next < 0) return;
      jump(next);
      store.set({ node: page.events.node[next], task: page.events.task[next] });
    },
    play: toggle,
    faster(steps) {
      hurry(speed + steps);
    },
  };
}

function named(label: string, key: string): Record<string, string> {
  return { "aria-label": label, title: `${label} (${key})`, "aria-keyshortcuts": key };
}

/** Which event it is of how many, when it was, and what. */
function status(page: Page, say: EventWords, moment: number): string {
  const { events, header } = page;
  const [task, node] = [events.task[moment], events.node[moment]];
  const kind = header.kinds[events.kind[moment]].replaceAll("_", " ");
  const what = say(moment) ?? (node < 0 ? [kind] : [`${kind}: `, { node }]);
  const thread = header.threads.find(
    ({ number }) => number === events.thread[moment],
  )?.name;
  const of = `event ${integer(moment + 1)} of ${integer(events.length)}`;
  const named = (part: Sentence[number]) =>
    typeof part === "string"
      ? part
      : "node" in part
        ? calledIn(page, part.node, task)
        : String(header.passes[part.pass].whole);
  const when = duration(events.at_ns[moment]);
  return [of, when, what.map(named).join(""), ...(thread ? [thread] : [])].join(" · ");
}
