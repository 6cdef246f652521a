/* What of a graph is marked, and how: all that pictures of it need besides places. */

import type { Coloring } from "./colorings.ts";
import type { Colors } from "./colors.ts";
import type { Progress, StageKinds } from "./progress.ts";

/** Below these scales there are no small texts, no texts, no curves. */
export const SMALL_TEXT = 0.6;
export const TEXT = 0.36;
export const CURVES = 0.2;

export const FONT = 'Helvetica, Arial, "Liberation Sans", "DejaVu Sans", sans-serif';

export interface Look {
  readonly colors: Colors;
  readonly coloring: Coloring;
  readonly progress: Progress;
  /** Whether a moment is shown, and not the whole pass. */
  readonly isReplay: boolean;
  /** Of each node whether a search or a filter means it; null where all are. */
  readonly meant: Uint8Array | null;
  /** The stage of each node at the end of this pass. */
  readonly outcome: Uint8Array;
  readonly stages: StageKinds;
  /** Boxes and ways of the critical path. */
  readonly criticalBoxes: ReadonlySet<number>;
  readonly criticalWays: ReadonlySet<number>;
  /** The ways of what is selected, or pointed at. */
  readonly nearWays: ReadonlySet<number>;
  /** The selected node, and the closed box that it is in; -1 for none. */
  readonly node: number;
  readonly selected: number;
  /** The box that is pointed at. */
  readonly hovered: number;
}
