/* Numbers for people, as `gradviz.render.words.text` writes them. */

const UNITS: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

const SIZES: [number, string][] = [
  [2 ** 40, "TiB"],
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
];

/** Nanoseconds in three digits: `412 µs`, `1.24 ms`. */
export function duration(ns: number): string {
  for (const [factor, unit] of UNITS) {
    if (ns >= factor) return `${threeDigits(ns / factor)} ${unit}`;
  }
  return "0 ns";
}

/** Bytes in three digits: `412 B`, `1.24 MiB`. */
export function size(bytes: number): string {
  for (const [factor, unit] of SIZES) {
    if (bytes >= factor) return `${threeDigits(bytes / factor)} ${unit}`;
  }
  return `${bytes} B`;
}

const COUNTS = new Intl.NumberFormat("en");

/** A whole number: `1,797`. */
export function integer(number: number): string {
  return COUNTS.format(number);
}

/** How many nodes ran, and how often where that is another number. */
export function nodesRan(runs: number, nodes: number): string {
  const told = count(nodes, "node");
  return runs === nodes ? told : `${count(runs, "run")} of ${told}`;
}

/** A number and its noun: `1 node`, `1,797 nodes`, `2 passes`. */
export function count(number: number, noun: string): string {
  const ending = number === 1 ? "" : /[sx]$/.test(noun) ? "es" : "s";
  return `${integer(number)} ${noun}${ending}`;
}

/** At most so many characters of a text. */
export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, Math.max(length - 1, 0))}…`;
}

function threeDigits(value: number): string {
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  const written = rounded(value, digits);
  return written.includes(".") ? written.replace(/\.?0+$/, "") : written;
}

/** Written with so many decimals; what lies in the middle becomes even, as in Python. */
function rounded(value: number, digits: number): string {
  const halves = value * 2 ** (digits + 1);
  const isTie = Number.isInteger(halves) && Math.abs(halves) % 2 === 1;
  if (!isTie) return value.toFixed(digits);
  const low = Math.floor(value * 10 ** digits);
  return ((low + (low % 2)) / 10 ** digits).toFixed(digits);
}
