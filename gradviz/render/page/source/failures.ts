/** The passes that did not complete, in words. */

import { type Header, passName } from "./data.ts";
import { count } from "./words.ts";

/** Of more passes the number is told. */
const MAX_FAILED = 3;

/** A sentence for each of the first passes that did not complete, and one for the rest.
 *
 * A pass of several workers has one: that of its first part that failed, or else of the
 * first that never ended.
 */
export function failures(header: Header): string[] {
  const worst = new Map<number, number>();
  header.passes.forEach(({ whole, status }, at) => {
    if (status === "completed") return;
    const known = worst.get(whole);
    const isWorse =
      known !== undefined &&
      status === "failed" &&
      header.passes[known].status !== "failed";
    if (known === undefined || isWorse) worst.set(whole, at);
  });
  const said = [...worst.values()].slice(0, MAX_FAILED).map((at) => {
    const { status, error } = header.passes[at];
    return `${passName(header, at)} ${status}${error ? `: ${error}` : ""}`;
  });
  if (worst.size > MAX_FAILED) {
    const more = count(worst.size - MAX_FAILED, "more pass");
    said.push(`and ${more} that did not complete`);
  }
  return said;
}
