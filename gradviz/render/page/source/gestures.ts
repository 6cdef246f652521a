/* Wheel, drag and pinch over a picture, as what they ask for. */
export interface Asked {
  /** `factor` above 1 looks closer, about a place of the picture. */
  readonly zoom: (factor: number, x: number, y: number) => void;
  /** The picture follows the hand: to the left where `x` is below zero. */
  readonly pan: (x: number, y: number) => void;
  /** `reach` is how large what is clicked is at the least: a finger hits nothing smaller. */
  readonly click: (x: number, y: number, reach: number) => void;
  readonly hover: (x: number, y: number) => void;
  readonly leave: () => void;
  /** Whether it is higher than there is room. */
  readonly scrolls: () => boolean;
}

/** A finger moves so far, in pixels, before it is no longer a click. */
const SLOP = 4;

/** The size of what a finger hits, in pixels. */
const FINGER = 44;

interface Place {
  x: number;
  y: number;
}

/**
 * Listen to gestures over an element.
 *
 * The wheel zooms with Control or Command, as a pinch on a touch pad does, and without
 * where there is nothing to scroll; else it scrolls: sideways over
 * time, down through lanes.
 */
export function listen(element: HTMLElement, asked: Asked): void {
  const fingers = new Map<number, Place>();
  let moved = 0;
  const placeOf = (event: MouseEvent): Place => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  element.style.touchAction = "none";
  element.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const unit = event.deltaMode === 1 ? 20 : event.deltaMode === 2 ? 400 : 1;
      const { x, y } = placeOf(event);
      if (
        event.ctrlKey ||
        event.metaKey ||
        (!asked.scrolls() && !event.shiftKey && event.deltaX === 0)
      ) {
        const step = Math.min(Math.max(event.deltaY * unit, -120), 120);
        asked.zoom(Math.exp(-step * (event.ctrlKey ? 0.008 : 0.0022)), x, y);
      } else if (event.shiftKey) asked.pan(-(event.deltaY + event.deltaX) * unit, 0);
      else asked.pan(-event.deltaX * unit, -event.deltaY * unit);
    },
    { passive: false },
  );
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    if (fingers.size === 0) moved = 0;
    fingers.set(event.pointerId, placeOf(event));
  });
  element.addEventListener("pointermove", (event) => {
    const now = placeOf(event);
    const before = fingers.get(event.pointerId);
    if (before === undefined) {
      asked.hover(now.x, now.y);
      return;
    }
    moved += Math.hypot(now.x - before.x, now.y - before.y);
    const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
    if (other !== undefined) {
      const was = Math.max(Math.hypot(before.x - other.x, before.y - other.y), 10);
      const is = Math.max(Math.hypot(now.x - other.x, now.y - other.y), 10);
      asked.zoom(is / was, (now.x + other.x) / 2, (now.y + other.y) / 2);
      asked.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    } else if (moved > SLOP) {
      asked.leave();
      asked.pan(now.x - before.x, now.y - before.y);
    }
    fingers.set(event.pointerId, now);
  });
  const released = (event: PointerEvent): void => {
    const place = fingers.get(event.pointerId);
    fingers.delete(event.pointerId);
    if (
      place !== undefined &&
      event.type === "pointerup" &&
      moved <= SLOP &&
      fingers.size === 0
    ) {
      asked.click(place.x, place.y, event.pointerType === "touch" ? FINGER : 0);
    }
  };
  element.addEventListener("pointerup", released);
  element.addEventListener("pointercancel", released);
  element.addEventListener("pointerleave", () => asked.leave());
}
