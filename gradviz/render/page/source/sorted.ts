/* Places in columns that are sorted. */
/** How many numbers are below `value`: the place of the first that is not. */
export function firstAtLeast(
  column: ArrayLike<number>,
  value: number,
  low = 0,
  high = column.length,
): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (column[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How many numbers are `value` or below: the place of the first above. */
export function firstAbove(
  column: ArrayLike<number>,
  value: number,
  low = 0,
  high = column.length,
): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (column[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
