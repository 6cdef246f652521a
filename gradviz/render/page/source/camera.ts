/* Where one looks at a drawing from: what a place of it is on the screen. */

export interface Camera {
  /** The place of the drawing in the corner at the upper left. */
  readonly x: number;
  readonly y: number;
  /** Pixels of the screen for one of the drawing. */
  readonly scale: number;
}

export interface Frame {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

const CLOSEST = 4;
const FARTHEST = 0.002;
const ROOM = 16;

/** Sees all of a frame, in the middle, but nothing larger than it is. */
export function fitted(frame: Frame, width: number, height: number): Camera {
  const wide = Math.max(frame.right - frame.left, 1);
  const high = Math.max(frame.bottom - frame.top, 1);
  const scale = limited(
    Math.min((width - 2 * ROOM) / wide, (height - 2 * ROOM) / high, 1),
  );
  return {
    x: (frame.left + frame.right) / 2 - width / 2 / scale,
    y: (frame.top + frame.bottom) / 2 - height / 2 / scale,
    scale,
  };
}

/** Closer where `factor` is above 1. What is at a place of the screen stays there. */
export function zoomedAt(camera: Camera, factor: number, x: number, y: number): Camera {
  const scale = limited(camera.scale * factor);
  const kept = 1 / camera.scale - 1 / scale;
  return { x: camera.x + x * kept, y: camera.y + y * kept, scale };
}

/** The drawing follows a hand that moves so far over the screen. */
export function dragged(camera: Camera, x: number, y: number): Camera {
  return { ...camera, x: camera.x - x / camera.scale, y: camera.y - y / camera.scale };
}

/** Moved no farther than it takes to see a frame, or its middle if it is too large. */
export function revealing(
  camera: Camera,
  frame: Frame,
  width: number,
  height: number,
): Camera {
  const room = ROOM / camera.scale;
  return {
    ...camera,
    x: moved(camera.x, width / camera.scale, frame.left - room, frame.right + room),
    y: moved(camera.y, height / camera.scale, frame.top - room, frame.bottom + room),
  };
}

/** What is seen of the drawing. */
export function seen(camera: Camera, width: number, height: number): Frame {
  return {
    left: camera.x,
    top: camera.y,
    right: camera.x + width / camera.scale,
    bottom: camera.y + height / camera.scale,
  };
}

function moved(at: number, length: number, from: number, until: number): number {
  if (until - from > length) return (from + until - length) / 2;
  return Math.min(Math.max(at, until - length), from);
}

function limited(scale: number): number {
  return Math.min(Math.max(scale, FARTHEST), CLOSEST);
}
