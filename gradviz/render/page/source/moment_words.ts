/* What nodes and threads do at a moment, in the words of `gradviz replay`. */

import type { Header, Page } from "./data.ts";
import type { Countdown, Gradients } from "./moment.ts";
import { type Facts, type Forms, firstFilled } from "./templates.ts";
import { count, integer, size } from "./words.ts";

const FORMS: Forms = {
  gradients: (number: number) => [count(number, "gradient")],
  number: (number: number) => [integer(number)],
  size: (bytes: number) => [size(bytes)],
  text: (text: string) => [text],
};

/** What has become of a node, by its stage and the gradients that it waits for. */
export function stageInWords(header: Header, stage: number, remaining: number): string {
  const facts = { stage: header.stages[stage], remaining: remaining || null };
  return said(header.node_at, facts);
}

/** What a thread does that runs no node: it may sleep on a queue. */
export function idleInWords(header: Header, asleepOn: number | undefined): string {
  const queue = header.queues.find(({ id }) => id === asleepOn);
  const name = queue && `${queue.id} ${queue.name}`;
  return said(header.thread_at, {
    queue: asleepOn === undefined ? null : (name ?? String(asleepOn)),
  });
}

/** What a node waits for that has got gradients, and from which nodes they are.
 *
 * `called` names a node in a pass; of more than `most` nodes the number is told. */
export function countdownInWords(
  { header, gradients: table }: Page,
  gradients: Gradients,
  { task, remaining, gradients: given }: Countdown,
  called: (node: number, task: number) => string,
  most: number,
): string {
  const total = remaining + given.length;
  const producers = [...new Set(given.map((place) => gradients.producer[place]))];
  const names = producers
    .slice(0, most)
    .map((node) => (node < 0 ? "the caller" : called(node, task)));
  return said(header.countdown, {
    ...{ total, remaining: remaining || null, several: total > 1 ? total : null },
    has: given.reduce((sum, place) => sum + table.size_bytes[place], 0),
    givers: names.join(", "),
    more: Math.max(producers.length - most, 0) || null,
  });
}

function said(templates: readonly string[], facts: Facts): string {
  return firstFilled(templates, facts, FORMS)?.join("") ?? "";
}
