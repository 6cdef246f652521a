/* How much room the reader gives each part of the page: kept for the next page, too. */

const KEY = "gradviz.room";

/** What a splitter sends up when it has moved. */
export const RESIZED = "resized";

/** How much of the room around it each part takes, and how far it is scrolled. */
export type Room = readonly { readonly grow: string; readonly scrolled: number }[];

export function roomIn(root: HTMLElement): Room {
  return parts(root).map((one) => ({
    grow: one.style.flexGrow,
    scrolled: one.scrollTop,
  }));
}

export function giveRoom(root: HTMLElement, room: Room): void {
  parts(root).forEach((one, at) => {
    if (!room[at]) return;
    one.style.flexGrow = room[at].grow;
    requestAnimationFrame(() => (one.scrollTop = room[at].scrolled));
  });
}

/** Keeps what splitters do, where the browser lets the page keep something. */
export function keepRoom(root: HTMLElement, signal: AbortSignal): void {
  function keep(): void {
    try {
      localStorage.setItem(KEY, JSON.stringify(roomIn(root).map(({ grow }) => grow)));
    } catch {
      // Pages from a disk may be allowed nothing: then the room is that of this page only.
    }
  }
  root.addEventListener(RESIZED, keep, { signal });
}

/** What was kept, of a page with as many parts; nothing where that makes no sense. */
export function keptRoom(root: HTMLElement): Room {
  try {
    return readRoom(localStorage.getItem(KEY) ?? "[]", parts(root).length);
  } catch {
    return [];
  }
}

export function readRoom(text: string, numParts: number): Room {
  const said: unknown = JSON.parse(text);
  if (!Array.isArray(said) || said.length !== numParts) return [];
  const isRoom = (one: unknown) =>
    one === "" || (typeof one === "string" && Number(one) > 0 && Number(one) < 1000);
  return said.every(isRoom) ? said.map((grow) => ({ grow, scrolled: 0 })) : [];
}

function parts(root: HTMLElement): HTMLElement[] {
  return [...root.querySelectorAll<HTMLElement>(".panel, .column, .details, .inside")];
}
