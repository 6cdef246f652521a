import assert from "node:assert/strict";
import { test } from "node:test";

import { cutInto } from "../../../gradviz/render/page/source/paper.ts";
import { SvgContext, written } from "../../../gradviz/render/page/source/svg.ts";

const measure = (text: string) => 6 * text.length;

function drawn(draw: (context: SvgContext) => void): string {
  const context = new SvgContext(measure);
  draw(context);
  return written(context.picture(100, 0, 50));
}

test("a picture has its size, and what was drawn in its order", () => {
  const svg = drawn((context) => {
    context.fillStyle = "#123456";
    context.fillRect(1, 2, 3, 4);
    context.fillText("one", 5, 6);
  });

  assert.match(
    svg,
    /^<svg xmlns="[^"]+" viewBox="0 0 100 50" width="100" height="50">/,
  );
  assert.match(
    svg,
    /<path d="M1 2L4 2L4 6L1 6Z" fill="#123456"><\/path><text x="5" y="6"/,
  );
});

test("what is drawn is moved and scaled as on a canvas", () => {
  const svg = drawn((context) => {
    context.save();
    context.scale(2);
    context.translate(-10, 5);
    context.lineWidth = 1.5;
    context.strokeRect(11, 0, 4, 4);
    context.restore();
    context.beginPath();
    context.moveTo(1, 1);
    context.lineTo(2, 2);
    context.stroke();
  });

  assert.match(svg, /d="M2 10L10 10L10 18L2 18Z"[^>]* stroke-width="3"/);
  assert.match(svg, /d="M1 1L2 2"[^>]* stroke-width="1"/);
});

test("a clip ends with what was saved before it, and is in those that came before", () => {
  const svg = drawn((context) => {
    for (const x of [1, 2]) {
      context.save();
      context.beginPath();
      context.rect(x, x, 9, 9);
      context.clip();
    }
    context.fillRect(0, 0, 1, 1);
    context.restore();
    context.fillRect(0, 0, 2, 2);
    context.restore();
    context.fillRect(0, 0, 3, 3);
  });

  const [, outer, inner] = /id="([^"]+)".*id="([^"]+)" clip-path="url\(#\1\)"/.exec(
    svg,
  )!;
  assert.match(svg, new RegExp(`L0 1Z"[^>]*clip-path="url\\(#${inner}\\)"`));
  assert.match(svg, new RegExp(`L0 2Z"[^>]*clip-path="url\\(#${outer}\\)"`));
  assert.match(svg, /L0 3Z" fill="#000000"><\/path>/);
});

test("texts stay texts, and what no XML can have is replaced", () => {
  const svg = drawn((context) =>
    context.fillText('</text><script>&"\u0000\u001b\ud800', 0, 0),
  );

  assert.ok(svg.includes("&lt;/text&gt;&lt;script&gt;&amp;&quot;\ufffd\ufffd\ufffd<"));
});

test("a text that is too wide is drawn as narrow as there is room", () => {
  const svg = drawn((context) => {
    context.fillText("wide", 0, 0, 20);
    context.fillText("so", 0, 0, 20);
  });

  assert.equal(svg.match(/textLength="20"/g)?.length, 1);
});

test("clips of two pictures on one page have names of their own", () => {
  const [one, other] = [0, 1].map(() =>
    drawn((context) => {
      context.rect(0, 0, 1, 1);
      context.clip();
    }),
  );
  const nameOf = (svg: string) => /id="([^"]+)"/.exec(svg)?.[1];

  assert.notEqual(nameOf(one), nameOf(other));
});

test("sheets are cut where nothing is that must be whole", () => {
  const kept = [
    [0, 40],
    [50, 90],
    [80, 120],
    [130, 170],
  ] as const;

  assert.deepEqual(cutInto({ height: 180, kept }, 100), [
    [0, 50],
    [50, 130],
    [130, 180],
  ]);
});

test("what is longer than a sheet is cut none the less, and nothing is left out", () => {
  const pieces = cutInto({ height: 250, kept: [[0, 250]] }, 100);

  assert.deepEqual(pieces, [
    [0, 100],
    [100, 200],
    [200, 250],
  ]);
});
