import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { readPage } from "../../../gradviz/render/page/source/data.ts";

/* What Python packed, and what it says that this is: written by test_source.py. */
const told = JSON.parse(readFileSync(process.env.PAGE ?? "", "utf-8")) as {
  data: string;
  columns: Record<string, number[]>;
};

test("every column is read as it was packed", async () => {
  const page = await readPage(told.data);

  const found: Record<string, number[]> = {};
  for (const [name, table] of Object.entries(page)) {
    if (["header", "text"].includes(name)) continue;
    for (const [field, numbers] of Object.entries(table as object)) {
      if (field !== "length") found[`${name}.${field}`] = [...(numbers as Int32Array)];
    }
  }
  assert.deepEqual(found, told.columns);
});

test("a text is found by its place, and none is empty", async () => {
  const page = await readPage(told.data);

  assert.equal(page.text(0), page.header.texts[0]);
  assert.equal(page.text(-1), "");
});

test("data of another version is refused", async () => {
  const bytes = Buffer.from(told.data, "base64");
  const { gunzipSync, gzipSync } = await import("node:zlib");
  const plain = gunzipSync(bytes);
  const other = plain.toString("latin1").replace(/"version":\d+,/, '"version":0,');

  await assert.rejects(
    readPage(gzipSync(Buffer.from(other, "latin1")).toString("base64")),
    /gradviz.page 0: write the page anew/,
  );
});
