/* A few lines beside the pointer. */

import { el } from "./elements.ts";

let box: HTMLElement | undefined;

/** At a place of a picture. The first line is a title. */
export function showTooltip(
  picture: HTMLElement,
  lines: readonly string[],
  x: number,
  y: number,
): void {
  if (box === undefined) {
    box = el("div", { class: "tooltip", role: "tooltip" });
    document.body.append(box);
  }
  box.replaceChildren(
    ...lines.map((line, at) => el(at === 0 ? "strong" : "span", {}, line)),
  );
  box.hidden = false;
  const corner = picture.getBoundingClientRect();
  const [left, top] = [corner.left + x, corner.top + y];
  const { offsetWidth: wide, offsetHeight: high } = box;
  box.style.left = `${Math.max(4, Math.min(left + 14, innerWidth - wide - 6))}px`;
  box.style.top = `${top + 18 + high > innerHeight ? Math.max(4, top - high - 12) : top + 18}px`;
}

export function hideTooltip(): void {
  if (box !== undefined) box.hidden = true;
}
