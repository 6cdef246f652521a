/* Tables written out in a test. */
export function tableOf(columns: Record<string, number[]>) {
  const made = Object.entries(columns).map(([name, column]) => [
    name,
    Int32Array.from(column),
  ]);
  return { ...Object.fromEntries(made), length: Object.values(columns)[0].length };
}
