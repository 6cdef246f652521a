/* The bars between panels, with which the reader gives one more room and another less. */

import { el } from "./elements.ts";
import { RESIZED } from "./room.ts";

/** No panel becomes smaller than this, in pixels. */
const LEAST = 60;
const STEP = 24;

/** A bar between the element before it and the one after it, in a flex container. */
export function splitter(label: string): HTMLElement {
  const bar = el("div", {
    class: "splitter",
    role: "separator",
    tabindex: "0",
    "aria-label": label,
  });
  bar.setAttribute("aria-valuemin", "0");
  bar.setAttribute("aria-valuemax", "100");
  bar.setAttribute("aria-valuenow", "50");
  function isRow(): boolean {
    return getComputedStyle(bar.parentElement!).flexDirection === "row";
  }
  function turn(): void {
    bar.setAttribute("aria-orientation", isRow() ? "vertical" : "horizontal");
  }
  function move(pixels: number): void {
    const [one, other] = [bar.previousElementSibling, bar.nextElementSibling];
    if (!(one instanceof HTMLElement && other instanceof HTMLElement)) return;
    const side = isRow() ? "offsetWidth" : "offsetHeight";
    const both = one[side] + other[side];
    const grown =
      Number(getComputedStyle(one).flexGrow) + Number(getComputedStyle(other).flexGrow);
    const size = Math.min(
      Math.max(one[side] + pixels, LEAST),
      Math.max(both - LEAST, LEAST),
    );
    one.style.flexGrow = String((size / both) * grown);
    other.style.flexGrow = String((1 - size / both) * grown);
    bar.setAttribute("aria-valuenow", String(Math.round((size / both) * 100)));
    turn();
    tell();
  }
  function tell(): void {
    bar.dispatchEvent(new Event(RESIZED, { bubbles: true }));
  }
  let from: number | undefined;
  bar.addEventListener("pointerdown", (event) => {
    bar.setPointerCapture(event.pointerId);
    from = isRow() ? event.clientX : event.clientY;
    event.preventDefault();
    bar.focus();
  });
  bar.addEventListener("pointermove", (event) => {
    if (from === undefined) return;
    const to = isRow() ? event.clientX : event.clientY;
    move(to - from);
    from = to;
  });
  bar.addEventListener("lostpointercapture", () => (from = undefined));
  bar.addEventListener("dblclick", () => {
    for (const one of [bar.previousElementSibling, bar.nextElementSibling]) {
      if (one instanceof HTMLElement) one.style.removeProperty("flex-grow");
    }
    tell();
  });
  bar.addEventListener("keydown", (event) => {
    const step = {
      ArrowLeft: -STEP,
      ArrowUp: -STEP,
      ArrowRight: STEP,
      ArrowDown: STEP,
    }[event.key];
    if (step === undefined) return;
    move(step);
    event.preventDefault();
    event.stopPropagation();
  });
  bar.addEventListener("focus", turn);
  return bar;
}
