/* The lanes of a page: what its threads and streams did, as bars in rows. */

import { type Crossings, crossingsOf } from "./critical.ts";
import { type Page, passName } from "./data.ts";
import { byLane, nested } from "./lanes.ts";
import { leveled } from "./levels.ts";
import { numberingOf } from "./numbering.ts";
import { operation } from "./operations.ts";
import { type StreamWaits, streamWaitsOf } from "./stream_waits.ts";
import {
  BACKWARD,
  type Bars,
  BLOCKED,
  KERNEL,
  type Lane,
  NODE,
  WAIT,
} from "./timeline.ts";
import { count } from "./words.ts";

/** What the bars are made of: their numbers run through these tables one after the other. */
export interface Arranged {
  readonly lanes: readonly Lane[];
  readonly bars: Bars;
  /** The first bar of each kind; runs begin at 0. */
  readonly firstSleep: number;
  readonly firstKernel: number;
  readonly firstBlocked: number;
  readonly firstPass: number;
  readonly laneOf: Int32Array;
  readonly rowOf: Uint8Array;
  /** Bars that are nested too deep to be drawn. */
  readonly omitted: number;
  /** Where the critical path goes from lane to lane. */
  readonly crossings: Crossings;
  readonly streamWaits: StreamWaits;
}

export function arranged(page: Page, isMeant: (node: number) => boolean): Arranged {
  const { runs, events, sleeps, kernels, blocked, header } = page;
  const numRuns = runs.length;
  const firstSleep = numRuns;
  const firstKernel = firstSleep + sleeps.length;
  const firstBlocked = firstKernel + kernels.length;
  const firstPass = firstBlocked + blocked.length;
  // Of a single pass nobody needs to be told when it ran.
  const shownPasses = header.passes.length > 1 ? header.passes : [];
  const size = firstPass + shownPasses.length;
  const start = new Float64Array(size);
  const end = new Float64Array(size);
  const kind = new Uint8Array(size);
  const status = new Uint8Array(size);
  const family = new Uint8Array(size);
  const lane = new Int32Array(size);
  const threads = new Map(header.threads.map((one, place) => [one.number, place]));
  const streams = new Map(
    [...new Set(kernels.stream)]
      .sort((one, other) => (page.text(one) < page.text(other) ? -1 : 1))
      .map((stream, at) => [stream, header.threads.length + at]),
  );
  start.set(runs.start_ns);
  for (let run = 0; run < numRuns; run++) {
    // What never ended is over with its pass, if that is.
    const over = runs.end[run] < 0 ? header.duration_ns : events.at_ns[runs.end[run]];
    end[run] = runs.end_ns[run] > runs.start_ns[run] ? runs.end_ns[run] : over;
    lane[run] = threads.get(runs.thread[run]) ?? 0;
  }
  status.set(runs.status);
  for (let run = 0; run < numRuns; run++)
    family[run] = page.nodes.family[runs.node[run]];
  for (let i = 0; i < sleeps.length; i++) {
    const at = firstSleep + i;
    kind[at] = WAIT;
    lane[at] = threads.get(sleeps.thread[i]) ?? 0;
    start[at] = sleeps.begin_ns[i];
    end[at] = sleeps.end_ns[i];
  }
  for (let i = 0; i < kernels.length; i++) {
    const at = firstKernel + i;
    kind[at] = KERNEL;
    family[at] = kernels.family[i];
    lane[at] = streams.get(kernels.stream[i])!;
    start[at] = kernels.begin_ns[i];
    end[at] = kernels.end_ns[i];
  }
  for (let i = 0; i < blocked.length; i++) {
    const at = firstBlocked + i;
    kind[at] = BLOCKED;
    lane[at] = streams.get(blocked.stream[i])!;
    start[at] = blocked.begin_ns[i];
    end[at] = blocked.end_ns[i];
  }
  shownPasses.forEach((one, i) => {
    const at = firstPass + i;
    kind[at] = BACKWARD;
    status[at] = ["completed", "captured", "failed", "unfinished"].indexOf(one.status);
    lane[at] = threads.get(one.thread) ?? 0;
    start[at] = one.begin_ns;
    end[at] = one.end_ns ?? header.duration_ns;
  });
  const numLanes = header.threads.length + streams.size;
  const { segments } = page;
  const laneOfSegment = Int32Array.from({ length: segments.length }, (_, at) => {
    const known =
      segments.stream[at] < 0
        ? threads.get(segments.thread[at])
        : streams.get(segments.stream[at]);
    return known ?? numLanes;
  });
  const critical = byLane(
    segments.begin_ns,
    segments.end_ns,
    laneOfSegment,
    numLanes + 1,
  );
  const names = [
    ...header.threads.map((one) => one.name_at_owner),
    ...[...streams.keys()].map((one) => page.text(one)),
  ];
  const rowOf = new Uint8Array(size);
  let omitted = 0;
  const lanes = byLane(start, end, lane, numLanes).map((items, at) => {
    const found = nested(start, end, items);
    omitted += found.omitted;
    found.rows.forEach((row, number) => {
      for (const item of row.item) rowOf[item] = number;
    });
    const num = items.reduce(
      (sum, item) => sum + Number(kind[item] === NODE || kind[item] === KERNEL),
      0,
    );
    const path = nested(segments.begin_ns, segments.end_ns, critical[at]).rows[0];
    return {
      heading: headingOf(page, at),
      name: names[at],
      detail: count(num, at < header.threads.length ? "node" : "kernel"),
      rows: found.rows.map(leveled),
      critical: leveled(path ?? nested(start, end, []).rows[0] ?? EMPTY),
    };
  });
  const bars: Bars = {
    start,
    end,
    kind,
    status,
    family,
    label: (item) => labelOf(page, item, firstKernel, firstBlocked, firstPass),
    isFaint: (item) => item < numRuns && !isMeant(runs.node[item]),
    blocked: (item) => (item < numRuns ? blockedPart(page, item) : 0),
  };
  return {
    lanes,
    bars,
    firstSleep,
    firstKernel,
    firstBlocked,
    firstPass,
    laneOf: lane,
    rowOf,
    omitted,
    crossings: crossingsOf(segments.end_ns, laneOfSegment, numLanes),
    streamWaits: streamWaitsOf(page, (kernel) => lane[firstKernel + kernel]),
  };
}

const EMPTY = {
  start: new Float64Array(0),
  end: new Float64Array(0),
  item: new Uint32Array(0),
};

function labelOf(
  page: Page,
  item: number,
  firstKernel: number,
  firstBlocked: number,
  firstPass: number,
): string {
  if (item < page.runs.length) {
    const name = operation(page.text(page.nodes.name[page.runs.node[item]]));
    return `${numberingOf(page).ofRun[item]} ${name}`;
  }
  if (item < firstKernel) return "";
  if (item < firstBlocked) return page.text(page.kernels.name[item - firstKernel]);
  if (item < firstPass) return "";
  return `backward ${passName(page.header, item - firstPass)}`;
}

/** Which part of a node its thread did not run: it was preempted, or waited for a lock. */
function blockedPart({ runs }: Page, run: number): number {
  const took = runs.end_ns[run] - runs.start_ns[run];
  const ran = runs.thread_time_ns[run];
  return ran < 0 || took <= 0 ? 0 : Math.min(Math.max(1 - ran / took, 0), 1);
}

/** The worker whose lanes begin with this one; what is of none comes last. */
function headingOf({ header }: Page, lane: number): string {
  const owner = header.threads[lane]?.owner ?? "";
  const before = header.threads[lane - 1]?.owner ?? "";
  if (owner === before) return "";
  return owner === "" ? "of no worker" : owner;
}
