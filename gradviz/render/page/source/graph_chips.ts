/* Leaves, as chips at the lower end of the boxes that lead to them. */

import type { Page } from "./data.ts";
import { FONT, type Look, SMALL_TEXT } from "./graph_look.ts";
import { CHIP_HEIGHT, chipFrame, type Plan } from "./plan.ts";
import { shorten } from "./words.ts";

export function drawChip(
  context: CanvasRenderingContext2D,
  page: Page,
  plan: Plan,
  look: Look,
  box: number,
  number: number,
  row: number,
  scale: number,
): void {
  const { colors } = look;
  const node = page.chips.node[row];
  const frame = chipFrame(page, plan, box, number);
  const { stages } = look;
  const stage = node < 0 ? -1 : look.progress.stage[node];
  const isDone = stage < 0 || stages.isDone[stage];
  context.beginPath();
  context.roundRect(
    frame.left,
    frame.top,
    frame.right - frame.left,
    CHIP_HEIGHT,
    CHIP_HEIGHT / 2,
  );
  context.fillStyle = isDone && look.isReplay ? colors.faintLine : colors.background;
  context.fill();
  const isChosen = node >= 0 && node === look.node;
  const isRunning =
    look.isReplay && (stage === stages.running || stage === stages.queued);
  context.strokeStyle =
    stage === stages.failed
      ? colors.alarm
      : isChosen || isRunning
        ? colors.accent
        : colors.line;
  context.lineWidth = isChosen ? 2.5 : isRunning ? 2 : 1;
  context.stroke();
  if (scale < SMALL_TEXT) return;
  context.fillStyle = colors.ink;
  context.font = `10px ${FONT}`;
  context.textAlign = "center";
  const wide = frame.right - frame.left;
  context.fillText(
    shorten(page.text(page.chips.text[row]), 60),
    (frame.left + frame.right) / 2,
    frame.top + 11.5,
    wide - 10,
  );
}
