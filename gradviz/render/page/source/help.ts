/* What keys do, over the page. */

import { button, el } from "./elements.ts";

const KEYS: readonly (readonly [
  title: string,
  keys: readonly (readonly [string, string])[],
])[] = [
  [
    "Replay",
    [
      ["Space", "play, pause"],
      [". and ,", "one event on, one back"],
      ["> and <", "to the next node that begins, to the one before"],
      ["Home and End", "first and last event"],
      ["] and [", "faster, slower"],
    ],
  ],
  [
    "Time",
    [
      ["← → or A D", "back and on; with Shift by half of what is seen"],
      ["+ − or W S", "closer, farther"],
      ["0", "all of it"],
      ["F", "the selected node"],
      ["↑ ↓", "scroll lanes"],
    ],
  ],
  [
    "Nodes",
    [
      ["K and J", "the next in execution order, the one before"],
      ["/", "search: words, numbers, or module=encoder, sequence=12 and such"],
      ["↓ ↑ Enter", "in the list of a search: choose, select"],
      ["Escape", "select nothing, then show the whole pass"],
    ],
  ],
  [
    "Graph, when it has the focus",
    [
      ["arrows", "move"],
      ["+ − 0", "closer, farther, all of it"],
      ["Shift with ↓ ↑", "to where the node's gradients go, to where they come from"],
      ["Enter", "open the selected box; of a node, the pass that it called"],
      ["Shift with Enter", "open all boxes around the selected node"],
      ["Backspace", "close the box around what is selected"],
      ["E and C", "expand all boxes, collapse all"],
    ],
  ],
  [
    "Page",
    [
      ["T", "light or dark"],
      ["?", "this help"],
      ["Tab", "from panel to panel; arrows move the bars between them"],
    ],
  ],
  [
    "Mouse and touch",
    [
      ["wheel", "closer, farther; with Shift back and on"],
      ["wheel", "where lanes scroll: scroll; with Control closer, farther"],
      ["drag, pinch", "move, zoom"],
      ["click", "select what is there, or the moment; on ▸ and ▾ open and close a box"],
      ["double click", "open a box of the graph"],
    ],
  ],
];

/** The overlay; `showModal()` opens it and Escape closes it. */
export function help(): HTMLDialogElement {
  const dialog = el("dialog", { id: "help", "aria-labelledby": "help-title" });
  const close = button("Close", () => dialog.close(), { autofocus: "" });
  dialog.append(
    el("h2", { id: "help-title" }, "Keys"),
    el(
      "div",
      { class: "keys" },
      ...KEYS.map(([title, keys]) =>
        el(
          "section",
          {},
          el("h3", {}, title),
          el(
            "dl",
            {},
            ...keys.flatMap(([key, what]) => [
              el("dt", {}, el("kbd", {}, key)),
              el("dd", {}, what),
            ]),
          ),
        ),
      ),
    ),
    close,
  );
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
  });
  return dialog;
}
