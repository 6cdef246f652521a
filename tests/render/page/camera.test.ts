import assert from "node:assert/strict";
import { test } from "node:test";

import {
  dragged,
  fitted,
  revealing,
  seen,
  zoomedAt,
} from "../../../gradviz/render/page/source/camera.ts";

const FRAME = { left: 100, top: 50, right: 2100, bottom: 1050 };

test("what is fitted is all seen, in the middle", () => {
  const view = seen(fitted(FRAME, 640, 480), 640, 480);

  assert.ok(view.left < FRAME.left && view.right > FRAME.right);
  assert.ok(view.top < FRAME.top && view.bottom > FRAME.bottom);
  assert.ok(Math.abs(view.left + view.right - (FRAME.left + FRAME.right)) < 1e-9);
  assert.ok(Math.abs(view.top + view.bottom - (FRAME.top + FRAME.bottom)) < 1e-9);
});

test("what is small is not made larger than it is", () => {
  assert.equal(fitted({ left: 0, top: 0, right: 10, bottom: 10 }, 640, 480).scale, 1);
});

test("what is under the pointer stays there when one looks closer", () => {
  const camera = { x: 30, y: -20, scale: 0.5 };
  const closer = zoomedAt(camera, 1.7, 200, 90);

  assert.ok(Math.abs(closer.x + 200 / closer.scale - (30 + 200 / 0.5)) < 1e-9);
  assert.ok(Math.abs(closer.y + 90 / closer.scale - (-20 + 90 / 0.5)) < 1e-9);
});

test("there is a closest and a farthest, at which nothing moves", () => {
  const closest = zoomedAt({ x: 3, y: 4, scale: 1 }, 1e9, 0, 0);

  assert.deepEqual(zoomedAt(closest, 2, 50, 60), closest);
  assert.ok(zoomedAt(closest, 1e-12, 0, 0).scale > 0);
});

test("a drawing follows the hand", () => {
  const camera = dragged({ x: 10, y: 10, scale: 2 }, 20, -6);

  assert.deepEqual(camera, { x: 0, y: 13, scale: 2 });
});

test("what is seen already is left where it is, and what is not comes into view", () => {
  const camera = { x: 0, y: 0, scale: 1 };
  const near = { left: 100, top: 100, right: 200, bottom: 130 };
  const far = { left: 900, top: 100, right: 1000, bottom: 130 };

  assert.deepEqual(revealing(camera, near, 640, 480), camera);
  const moved = revealing(camera, far, 640, 480);
  assert.deepEqual([moved.y, moved.x + 640], [0, 1016]);
});
