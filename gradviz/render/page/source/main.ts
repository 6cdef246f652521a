/* The page: reads the data, makes the store, and puts the panels in their places. */

import "./shell.css";
import "./page.css";
import { readPage, type Page } from "./data.ts";
import { button, el } from "./elements.ts";
import { mountGraph } from "./graph.ts";
import { help } from "./help.ts";
import { listenToKeys } from "./keyboard.ts";
import { mountMemory } from "./memory_panel.ts";
import { mountNow } from "./now_panel.ts";
import { mountQueues } from "./queues_panel.ts";
import { mountReplay } from "./replay.ts";
import { mountSearch } from "./search.ts";
import { layOut } from "./shell.ts";
import { createStore, fromHash, INITIAL, type State, toHash } from "./store.ts";
import { mountStory } from "./story.ts";
import { followTheme, switchTheme } from "./theme.ts";
import { mountTimeline } from "./timeline_panel.ts";

function start(page: Page) {
  const root = document.getElementById("page")!;
  const asked = () => inPage(page, fromHash(location.hash));
  const store = createStore({ ...INITIAL, ...asked() });
  followTheme(store);
  const places = layOut(root, page, store);
  mountSearch(places.search, page, store);
  mountTimeline(places.timeline, page, store);
  mountQueues(places.queues, page, store);
  mountMemory(places.memory, page, store);
  mountGraph(places.graph, page, store);
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
  listenToKeys(page, store, player, dialog);
  // Browsers do not like a history that is written sixty times a second.
  let due: ReturnType<typeof setTimeout> | undefined;
  store.subscribe(() => {
    clearTimeout(due);
    due = setTimeout(() => {
      history.replaceState(
        null,
        "",
        toHash(store.get()) || location.pathname + location.search,
      );
    }, 250);
  });
  window.addEventListener("hashchange", () => store.set(asked()));
}

/** What an address says, without places that this page does not have. */
function inPage({ nodes, events, header }: Page, said: Partial<State>): Partial<State> {
  const ends = { node: nodes.length, moment: events.length, task: header.passes.length };
  for (const part of ["node", "moment", "task"] as const) {
    const place = said[part];
    if (place !== undefined && !(place >= INITIAL[part] && place < ends[part]))
      delete said[part];
  }
  return said;
}

readPage(document.getElementById("data")!.textContent ?? "")
  .then(start)
  .catch((error) => {
    document.getElementById("page")!.append(el("p", { role: "alert" }, String(error)));
  });
