/* Where an axis of time has its marks, and how they are written. */

const TIME_UNITS: readonly (readonly [number, string])[] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];
/** A moment, written as exactly as the distance of marks needs. */
export function moment(ns: number, step: number): string {
  const [factor, unit] = unitOf(Math.max(Math.abs(ns), step), TIME_UNITS);
  const digits = Math.max(0, Math.ceil(-Math.log10(step / factor) - 1e-9));
  return `${(ns / factor).toFixed(Math.min(digits, 9))} ${unit}`;
}

/** Round numbers from one to another, at most `most` of them, and their distance. */
export function ticks(
  from: number,
  until: number,
  most: number,
): { at: number[]; step: number } {
  const rough = (until - from) / Math.max(most, 1);
  const step = roundUp(Math.max(rough, 1));
  const at: number[] = [];
  for (let one = Math.ceil(from / step); one * step <= until; one++)
    at.push(one * step);
  return { at, step };
}

/** 1, 2 or 5 times a power of ten. */
function roundUp(number: number): number {
  const power = 10 ** Math.floor(Math.log10(number));
  for (const one of [1, 2, 5])
    if (one * power >= number * (1 - 1e-9)) return one * power;
  return 10 * power;
}

function unitOf(value: number, units: typeof TIME_UNITS): readonly [number, string] {
  return units.find(([factor]) => value >= factor) ?? units[units.length - 1];
}
