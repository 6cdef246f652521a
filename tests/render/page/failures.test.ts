import assert from "node:assert/strict";
import { test } from "node:test";

import type { Header } from "../../../gradviz/render/page/source/data.ts";
import { failures } from "../../../gradviz/render/page/source/failures.ts";

type Part = [whole: number, worker: number | null, status: string, error?: string];

function headerOf(...parts: Part[]): Header {
  const passes = parts.map(([whole, worker, status, error = ""]) => ({
    whole,
    worker,
    status,
    error,
    thread: 0,
  }));
  return { passes, threads: [] } as unknown as Header;
}

test("passes that completed are not told", () => {
  assert.deepEqual(failures(headerOf([1, null, "completed"])), []);
});

test("the first passes that did not complete are told, the others counted", () => {
  const parts = [1, 2, 3, 4, 5].map((one): Part => [one, null, "failed", `E${one}`]);
  assert.deepEqual(failures(headerOf(...parts)), [
    "pass 1 failed: E1",
    "pass 2 failed: E2",
    "pass 3 failed: E3",
    "and 2 more passes that did not complete",
  ]);
});

test("a pass of several workers is one, told by the part that failed", () => {
  const parts = [1, 2, 3, 4].flatMap((one): Part[] => [
    [one, 0, "unfinished"],
    [one, 1, "failed", "no"],
    [one, 2, "failed", "another"],
  ]);
  assert.deepEqual(failures(headerOf(...parts)), [
    "pass 1 on worker 1 failed: no",
    "pass 2 on worker 1 failed: no",
    "pass 3 on worker 1 failed: no",
    "and 1 more pass that did not complete",
  ]);
});
