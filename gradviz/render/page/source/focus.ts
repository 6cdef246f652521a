/* Where the keyboard is in the page: kept when that is given other data. */

/** An element, by its place in each of those that it is in, the outermost first. */
export interface Focus {
  readonly places: readonly number[];
  readonly tag: string;
  readonly text: string | null;
}

export function focusIn(root: Element): Focus | undefined {
  const focused = document.activeElement;
  if (!focused || focused === root || !root.contains(focused)) return undefined;
  const places: number[] = [];
  for (let one = focused; one !== root; one = one.parentElement!) {
    places.unshift([...one.parentElement!.children].indexOf(one));
  }
  return { places, tag: focused.localName, text: focused.textContent };
}

/** Focuses what is in the same place, unless that is something else now. */
export function focusAgain(root: Element, { places, tag, text }: Focus): void {
  let found: Element | undefined = root;
  for (const place of places) found = found?.children[place];
  if (
    found instanceof HTMLElement &&
    found.localName === tag &&
    found.textContent === text
  )
    found.focus({ preventScroll: true });
}
