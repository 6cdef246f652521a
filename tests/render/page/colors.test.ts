import assert from "node:assert/strict";
import { test } from "node:test";

import { contrast, textOn } from "../../../gradviz/render/page/source/colors.ts";

test("contrast is that of WCAG: 21 of black on white, 1 of a color on itself", () => {
  assert.equal(contrast("#000000", "#ffffff"), 21);
  assert.equal(contrast("#ffffff", "#000000"), 21);
  assert.equal(contrast("#33618d", "#33618d"), 1);
});

test("a label can be read on any color", () => {
  for (let red = 0; red < 256; red += 15) {
    for (let green = 0; green < 256; green += 15) {
      for (let blue = 0; blue < 256; blue += 51) {
        const parts = [red, green, blue].map((one) =>
          one.toString(16).padStart(2, "0"),
        );
        const color = `#${parts.join("")}`;
        assert.ok(contrast(textOn(color), color) > 4, color);
      }
    }
  }
});
