/* Which ways of a graph a gradient takes from one node to another, part by part. */

import type { Page } from "./data.ts";
import { around } from "./parts.ts";
import type { Plan } from "./plan.ts";

/** Finds the ways, as numbers in `Plan.ways`, from one closed box to another. */
export type Passages = (producer: number, consumer: number) => number[];

export function passagesOf(page: Page, { ways }: Plan): Passages {
  const { boxes } = page;
  const numbers = new Map<string, number[]>();
  for (let way = 0; way < ways.length; way++) {
    const row = ways.row[way];
    const name = `${page.ways.part[row]} ${page.ways.producer[row]} ${page.ways.consumer[row]}`;
    numbers.set(name, [...(numbers.get(name) ?? []), way]);
  }
  const between = (part: number, producer: number, consumer: number) =>
    numbers.get(`${part} ${producer} ${consumer}`) ?? [];

  return (producer, consumer) => {
    if (producer < 0 || consumer < 0 || producer === consumer) return [];
    const parts = new Set<number>();
    for (let box = consumer; box >= 0; box = around(page, box))
      parts.add(boxes.part[box]);
    const found: number[] = [];
    let one = producer;
    for (; !parts.has(boxes.part[one]); one = around(page, one))
      found.push(...between(boxes.part[one], one, -1));
    let other = consumer;
    for (; boxes.part[other] !== boxes.part[one]; other = around(page, other))
      found.push(...between(boxes.part[other], -1, other));
    return [...found, ...between(boxes.part[one], one, other)];
  };
}
