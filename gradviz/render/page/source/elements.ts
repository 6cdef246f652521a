/* Elements of the page. Texts are only ever set as text: never as markup. */

type Children = (Node | string)[];

/** An element with attributes and children; of attributes that are "" only the name. */
export function el<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Record<string, string> = {},
  ...children: Children
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A button that does something. */
export function button(
  label: string,
  act: () => void,
  attributes: Record<string, string> = {},
): HTMLButtonElement {
  const made = el("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
}

/** A color or a length that the style sheet defines: `variable("--ink")`. */
export function variable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A canvas as sharp as the screen, redrawn when its size or the theme changes.
 *
 * `draw` gets a context in CSS pixels. Call `again` whenever something has changed: it
 * draws once for a frame. A new size is drawn in the frame that first has it, so that no
 * frame shows an empty picture. */
export function canvas(
  label: string,
  draw: (context: CanvasRenderingContext2D, width: number, height: number) => void,
): { element: HTMLCanvasElement; again: () => void } {
  const element = el("canvas", { "aria-label": label, tabindex: "0", role: "img" });
  let waits = false;
  // Who asks the element makes the browser lay out what else has changed in this frame.
  let [width, height] = [0, 0];
  function now() {
    waits = false;
    if (!width || !height) return;
    const ratio = window.devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (element.width !== wide || element.height !== high) {
      element.width = wide;
      element.height = high;
    }
    const context = element.getContext("2d");
    if (!context) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    draw(context, width, height);
  }
  function again() {
    if (waits) return;
    waits = true;
    requestAnimationFrame(now);
  }
  new ResizeObserver(() => {
    [width, height] = [element.clientWidth, element.clientHeight];
    now();
  }).observe(element);
  document.addEventListener("themechange", function hear() {
    if (element.isConnected) again();
    else document.removeEventListener("themechange", hear);
  });
  return { element, again };
}
