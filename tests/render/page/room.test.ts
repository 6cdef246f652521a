import assert from "node:assert/strict";
import { test } from "node:test";

import { readRoom } from "../../../gradviz/render/page/source/room.ts";

test("room that was kept is given again", () => {
  assert.deepEqual(
    readRoom('["", "2.5"]', 2).map(({ grow }) => grow),
    ["", "2.5"],
  );
});

test("what makes no sense, or is of a page with other parts, gives no room", () => {
  for (const text of ['["1"]', "{}", "null", '["", 2]', '["", "-1"]', '["", "x"]'])
    assert.deepEqual(readRoom(text, 2), []);
});
