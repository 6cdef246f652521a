/* Lists of places as they stand in an address: `3-7.12`. */

/** Who writes a longer list has not got it from us. */
const MOST = 100_000;

export function written(places: readonly number[]): string {
  const sorted = [...new Set(places)].sort((one, other) => one - other);
  const runs: [number, number][] = [];
  for (const place of sorted) {
    const last = runs.at(-1);
    if (last && place === last[1] + 1) last[1] = place;
    else runs.push([place, place]);
  }
  return runs
    .map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`))
    .join(".");
}

/** Nothing of what is written wrongly. */
export function read(text: string): number[] {
  const found = new Set<number>();
  for (const run of text.split(".")) {
    const [, from, to] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(run) ?? [];
    for (let place = Number(from); place <= Number(to ?? from); place++) {
      if (found.size >= MOST) return [...found];
      found.add(place);
    }
  }
  return [...found];
}
