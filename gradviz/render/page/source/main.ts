/* The page: reads the data, makes the store, and puts the panels in their places. */

import "./shell.css";
import "./page.css";
import type { Camera } from "./camera.ts";
import { type Page, readPage } from "./data.ts";
import { button, el } from "./elements.ts";
import { focusAgain, focusIn } from "./focus.ts";
import { mountGraph } from "./graph.ts";
import { help } from "./help.ts";
import { listenToKeys } from "./keyboard.ts";
import { mountMemory } from "./memory_panel.ts";
import { mountNow } from "./now_panel.ts";
import { mountQueues } from "./queues_panel.ts";
import { mountReplay } from "./replay.ts";
import { giveRoom, keepRoom, keptRoom, roomIn } from "./room.ts";
import { mountSearch } from "./search.ts";
import { layOut } from "./shell.ts";
import {
  createStore,
  fromHash,
  INITIAL,
  type State,
  type Store,
  toHash,
} from "./store.ts";
import { mountStory } from "./story.ts";
import { carriedOver } from "./succession.ts";
import { followTheme, switchTheme } from "./theme.ts";
import { mountTimeline } from "./timeline_panel.ts";

/** What is on the screen, until other data takes its place. */
interface Shown {
  page: Page;
  store: Store;
  camera(): Camera | undefined;
  end(): void;
}

function show(page: Page, before?: Shown): Shown {
  const root = document.getElementById("page")!;
  const asked = () => inPage(page, fromHash(location.hash));
  const state = before
    ? carriedOver(before.store.get(), before.page, page)
    : { ...INITIAL, ...asked() };
  const store = createStore(state);
  const ended = new AbortController();
  const { signal } = ended;
  followTheme(store, signal);
  const room = before && roomIn(root);
  const focus = before && focusIn(root);
  before?.end();
  root.replaceChildren();
  const places = layOut(root, page, store);
  giveRoom(root, room ?? keptRoom(root));
  keepRoom(root, signal);
  mountSearch(places.search, page, store, signal);
  mountTimeline(places.timeline, page, store, before === undefined);
  mountQueues(places.queues, page, store);
  mountMemory(places.memory, page, store);
  const camera = mountGraph(places.graph, page, store, before?.camera());
  mountNow(places.now, page, store);
  mountStory(places.story, page, store);
  const player = mountReplay(places.replay, page, store);
  const dialog = help();
  root.append(dialog);
  places.actions.append(
    button("◐", () => switchTheme(store), {
      "aria-label": "Light or dark",
      title: "Light or dark (T)",
    }),
    button("?", () => dialog.showModal(), {
      "aria-label": "Keys and help",
      title: "Keys and help (?)",
    }),
  );
  listenToKeys(page, store, player, dialog, signal);
  if (focus) focusAgain(root, focus);
  // Browsers do not like a history that is written sixty times a second.
  let due: ReturnType<typeof setTimeout> | undefined;
  function tellAddress(): void {
    clearTimeout(due);
    due = setTimeout(() => {
      history.replaceState(
        null,
        "",
        toHash(store.get()) || location.pathname + location.search,
      );
    }, 250);
  }
  store.subscribe(tellAddress);
  if (before) tellAddress();
  window.addEventListener("hashchange", () => store.set(asked()), { signal });
  function end(): void {
    clearTimeout(due);
    ended.abort();
  }
  return { page, store, camera, end };
}

/** What an address says, without places that this page does not have. */
function inPage({ nodes, events, header }: Page, said: Partial<State>): Partial<State> {
  const ends = {
    node: nodes.length,
    moment: events.length,
    task: header.passes.length,
  };
  for (const part of ["node", "moment", "task"] as const) {
    const place = said[part];
    if (place !== undefined && !(place >= INITIAL[part] && place < ends[part]))
      delete said[part];
  }
  return said;
}

async function start(): Promise<void> {
  let shown = show(await readPage(document.getElementById("data")!.textContent ?? ""));
  // Whoever serves the page of a recording that goes on has other data for it later.
  document.addEventListener("gradviz-data", async (event) => {
    const page = await readPage((event as CustomEvent<string>).detail);
    shown = show(page, shown);
  });
}

/** Panels are measured and drawn in a first frame: seen they are by the second.
 *
 * What the store changes meanwhile is drawn in a third. */
async function seen(): Promise<void> {
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
}

start()
  .then(seen)
  .catch((error) => {
    document.getElementById("page")!.append(el("p", { role: "alert" }, String(error)));
  })
  .finally(() => document.getElementById("page")!.removeAttribute("aria-busy"));
