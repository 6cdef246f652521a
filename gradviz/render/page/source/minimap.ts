/* All of a graph, small, with a frame around what is seen of it. */

import { type Camera, type Frame, fitted } from "./camera.ts";
import type { Coloring } from "./colorings.ts";
import { type Colors, colors } from "./colors.ts";
import { canvas, el } from "./elements.ts";
import { type Plan, whole } from "./plan.ts";

/** Around the graph, on the map. */
const ROOM = 12;
const SHARP = 2;

export interface Minimap {
  readonly element: HTMLElement;
  /** What is on it has changed, or what is seen has. */
  again(): void;
}

export function minimapOf(
  shown: () => { plan: Plan; coloring: Coloring },
  view: () => Frame,
  lookAt: (x: number, y: number) => void,
): Minimap {
  const map = canvas("The whole graph", draw);
  map.element.tabIndex = -1;
  const element = el("div", { class: "minimap", "aria-hidden": "true" }, map.element);
  const small = document.createElement("canvas");
  let drawn: { of: Coloring | null; shade: Colors | null } = {
    of: null,
    shade: null,
  };

  function camera(wide: number, high: number): Camera {
    return fitted(whole(shown().plan), wide + 2 * ROOM, high + 2 * ROOM);
  }

  function draw(context: CanvasRenderingContext2D, wide: number, high: number): void {
    const all = whole(shown().plan);
    const part = view();
    const seesAll =
      part.left <= all.left + 1 &&
      part.right >= all.right - 1 &&
      part.top <= all.top + 1 &&
      part.bottom >= all.bottom - 1;
    element.classList.toggle("idle", seesAll);
    if (seesAll) return;
    const far = camera(wide, high);
    const shade = colors();
    if (drawn.of !== shown().coloring || drawn.shade !== shade) {
      drawn = { of: shown().coloring, shade };
      drawBoxes(wide, high, far, shade);
    }
    context.drawImage(small, 0, 0, wide, high);
    const at = (place: number, from: number) => (place - from) * far.scale - ROOM;
    const [left, top] = [at(part.left, far.x), at(part.top, far.y)];
    context.strokeStyle = shade.accent;
    context.lineWidth = 1.5;
    context.strokeRect(
      left,
      top,
      at(part.right, far.x) - left,
      at(part.bottom, far.y) - top,
    );
  }

  /** All boxes: once, and not whenever one looks elsewhere. */
  function drawBoxes(wide: number, high: number, far: Camera, shade: Colors): void {
    small.width = wide * SHARP;
    small.height = high * SHARP;
    const context = small.getContext("2d");
    if (!context) return;
    const { plan, coloring } = shown();
    for (const box of plan.closed) {
      const x = ((plan.x[box] - far.x) * far.scale - ROOM) * SHARP;
      const y = ((plan.y[box] - far.y) * far.scale - ROOM) * SHARP;
      const w = Math.max(plan.width[box] * far.scale * SHARP, 1);
      const h = Math.max(plan.height[box] * far.scale * SHARP, 1);
      context.fillStyle = coloring.of(box, shade) ?? shade.line;
      context.fillRect(x - w / 2, y - h / 2, w, h);
    }
  }

  function look(event: PointerEvent): void {
    const { clientWidth: wide, clientHeight: high } = map.element;
    const far = camera(wide, high);
    lookAt(
      (event.offsetX + ROOM) / far.scale + far.x,
      (event.offsetY + ROOM) / far.scale + far.y,
    );
  }
  map.element.addEventListener("pointerdown", look);
  map.element.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) look(event);
  });
  return { element, again: map.again };
}
