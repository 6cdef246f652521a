/* What part of the time is seen, and where on the screen each moment lies. */
/** Times are nanoseconds from the begin of the page's trace. A value: never changed. */
export interface Viewport {
  readonly from: number;
  readonly until: number;
  /** All there is: nobody can look further than that. */
  readonly duration: number;
  /** Pixels that it is drawn on. */
  readonly width: number;
}

/** Closer than this nothing can be looked at, for nothing is shorter. */
const SHORTEST_NS = 100;

export function whole(duration: number, width: number): Viewport {
  const all = Math.max(duration, SHORTEST_NS);
  return { from: 0, until: all, duration: all, width: Math.max(width, 1) };
}

export function pixelOf(view: Viewport, time: number): number {
  return ((time - view.from) / (view.until - view.from)) * view.width;
}

export function timeOf(view: Viewport, pixel: number): number {
  return view.from + (pixel / view.width) * (view.until - view.from);
}

export function nsPerPixel(view: Viewport): number {
  return (view.until - view.from) / view.width;
}

/** `factor` above 1 looks closer. What lies at `pixel` stays there. */
export function zoomed(
  view: Viewport,
  factor: number,
  pixel = view.width / 2,
): Viewport {
  const time = timeOf(view, pixel);
  const wanted = (view.until - view.from) / factor;
  const length = Math.min(Math.max(wanted, SHORTEST_NS), view.duration);
  return shown(view, time - (pixel / view.width) * length, length);
}

/** To the right by so many pixels: later moments come into view. */
export function panned(view: Viewport, pixels: number): Viewport {
  return shown(view, view.from + pixels * nsPerPixel(view), view.until - view.from);
}

/** From one time to another, with a little room on both sides. */
export function around(view: Viewport, from: number, until: number): Viewport {
  const room = (until - from) * 0.08;
  const length = Math.max(until - from + 2 * room, SHORTEST_NS);
  return shown(view, (from + until - length) / 2, Math.min(length, view.duration));
}

/** The view itself where it shows a moment, otherwise moved so that it does. */
export function showing(view: Viewport, time: number): Viewport {
  const length = view.until - view.from;
  if (time >= view.from && time <= view.until) return view;
  return shown(view, time - length / 2, length);
}

function shown(view: Viewport, from: number, length: number): Viewport {
  const start = Math.min(Math.max(from, 0), view.duration - length);
  return { ...view, from: start, until: start + length };
}
