/* The rows of a table that have something in common, without looking at the others. */
export interface Chains {
  readonly first: Int32Array;
  readonly next: Int32Array;
}

/** The rows by what a column says of them: a place in a table of `size`, or below zero. */
export function chained(key: ArrayLike<number>, size: number): Chains {
  const first = new Int32Array(size).fill(-1);
  const next = new Int32Array(key.length).fill(-1);
  for (let row = key.length - 1; row >= 0; row--) {
    const one = key[row];
    if (one < 0 || one >= size) continue;
    next[row] = first[one];
    first[one] = row;
  }
  return { first, next };
}

/** The rows that say `key`, in order. */
export function* rowsOf({ first, next }: Chains, key: number): Generator<number> {
  for (let row = first[key] ?? -1; row >= 0; row = next[row]) yield row;
}
