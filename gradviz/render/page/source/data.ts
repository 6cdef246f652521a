/* What a page holds. The tables are those of `tables.py`, under the same names.

A number that stands for something else is a place: of a row in another table, or of a
text in `header.texts`; -1 for none. Times are nanoseconds from the begin of the first
pass. A moment is a place in `events`: what is so right after that event. */

/** A column. Whole numbers; those that need more than 32 bits are exact to 2^53. */
export type Numbers = Int32Array | Float64Array;

/** Tables: what a row has, by name. See `tables.py` for what each column means. */
const TABLES = {
  nodes: [
    ...(["id", "name", "family", "module", "parameter", "location", "device"] as const),
    ...(["shape", "sequence_nr", "topological_nr", "saved_bytes"] as const),
  ],
  edges: ["producer", "consumer", "input_nr"],
  events: ["at_ns", "kind", "task", "node", "thread", "stage"],
  endings: ["task", "node", "at", "stage", "remaining"],
  runs: [
    ...(["node", "task", "thread", "begin", "end", "start_ns", "end_ns"] as const),
    ...(["waited_ns", "thread_time_ns", "status", "error"] as const),
    ...([
      "processor_wait_ns",
      "num_alike",
      "usual_ns",
      "usual_thread_time_ns",
    ] as const),
  ],
  stays: [
    ...(["queue", "task", "node", "pushed", "popped", "pushed_by", "thread"] as const),
    ...(["popped_by", "what", "turn", "busy_ns", "slept_ns", "num_ahead"] as const),
  ],
  overtakings: ["stay", "ahead", "why"],
  gradients: [
    ...(["task", "node", "producer", "input_nr", "remaining"] as const),
    ...(["size_bytes", "at", "until"] as const),
  ],
  sleeps: ["thread", "queue", "begin", "end", "begin_ns", "end_ns"],
  stream_waits: ["task", "node", "producer"],
  crossings: ["task", "node", "fact", "before", "other", "after"],
  hooks: ["task", "node", "text"],
  kernels: ["stream", "name", "family", "thread", "launched_ns", "begin_ns", "end_ns"],
  kernel_waits: ["kernel", "awaited", "node", "producer"],
  blocked: ["stream", "awaited_stream", "begin_ns", "end_ns"],
  memory: ["purpose", "at_ns", "size_bytes"],
  segments: ["kind", "begin_ns", "end_ns", "thread", "stream", "task", "node"],
  costs: ["task", "node", "own_ns", "on_path_ns", "slack_ns", "if_free_ns"],
  parts: ["task", "box", "width", "height", "omitted"],
  boxes: [
    ...(["part", "node", "x", "y", "width", "height"] as const),
    ...(["badge", "badge_width", "title", "subtitle", "num_nodes"] as const),
  ],
  chips: ["box", "node", "text"],
  members: ["box", "node"],
  ways: ["part", "producer", "consumer", "end"],
  stops: ["x", "y"],
} as const;

export type Table<Names extends readonly string[]> = {
  readonly [Name in Names[number]]: Numbers;
} & { readonly length: number };

type Tables<Of extends Record<string, readonly string[]>> = {
  readonly [Name in keyof Of]: Table<Of[Name]>;
};

export interface Pass {
  task: number;
  /** The number of the pass, of which this is one worker's part. */
  whole: number;
  worker: number | null;
  parent: number;
  depth: number;
  thread: number;
  begin_ns: number;
  end_ns: number | null;
  /** Of the whole pass. */
  pass_begin_ns: number;
  pass_end_ns: number | null;
  status: "completed" | "failed" | "unfinished";
  error: string;
  location: string;
}

/** See `PageHeader` of `document.py`. */
export interface Header {
  schema: string;
  version: number;
  file: string;
  argv: string[];
  host: string;
  wall_ns: number;
  gradviz: string;
  duration_ns: number;
  num_events: number;
  is_cut: boolean;
  passes: Pass[];
  /** Those of one worker follow each other; `owner` is empty where there is only one. */
  threads: { number: number; name: string; owner: string; name_at_owner: string }[];
  queues: { id: number; name: string }[];
  kinds: string[];
  /** Of each kind the templates; the first that is filled is said. */
  event_sentences: string[][];
  /** Of tasks: what was pushed. */
  pushes: string[];
  statuses: string[];
  /** Templates of all that is said of a node, and whether they tell of a failure. */
  explanation: [template: string, isAlarm: boolean][];
  /** Templates, by why one task goes before another one. */
  reasons: Record<string, string>;
  /** The keys of these. */
  precedences: string[];
  /** Templates of what has become of a node; the first that is filled is so. */
  node_at: string[];
  /** The same of what a thread does that runs no node. */
  thread_at: string[];
  /** The same of what a node waits for, and has. */
  countdown: string[];
  /** Names of facts, which are whole sentences of `crossings`. */
  crossing_facts: string[];
  /** Of nodes; the first is that of one that was not reached. */
  stages: string[];
  families: string[];
  purposes: string[];
  /** Those of which nothing is known. */
  unknown_purposes: string[];
  segment_kinds: string[];
  critical_task: number;
  warnings: string[];
  texts: string[];
}

/** What a pass is called: its number, and whose it is where there are several workers. */
export function passName({ passes, threads }: Header, at: number): string {
  const { whole, worker, thread } = passes[at];
  const known = threads.find((one) => one.number === thread)?.owner ?? "";
  const owner = worker === null ? known : `worker ${worker}`;
  return owner === "" ? `pass ${whole}` : `pass ${whole} on ${owner}`;
}

/** The file and line of a location, or of each of several, without the folders. */
export function placeOf(location: string): string {
  const lines = location.replaceAll("\\", "/").split(" < ");
  return lines.map((line) => line.split("/").at(-1) ?? "").join(" < ");
}

export type Page = Tables<typeof TABLES> & {
  readonly header: Header;
  /** The text of a place, empty for -1. */
  text(place: number): string;
};

export const SCHEMA = "gradviz.page";
export const VERSION = 4;

type Described = [stored: string, isDelta: number, length: number, offset: number];

/** Undoes base64 and gzip, and finds the tables; see Note [What a page unpacks]. */
export async function readPage(base64: string): Promise<Page> {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return unpack(await gunzip(bytes));
}

export async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const stream = new Blob([bytes]).stream();
  const plain = stream.pipeThrough(new DecompressionStream("gzip"));
  return await new Response(plain).arrayBuffer();
}

export function unpack(buffer: ArrayBuffer): Page {
  const length = new DataView(buffer).getUint32(0, true);
  const head = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  const { header, columns } = JSON.parse(head) as {
    header: Header;
    columns: Record<string, Described>;
  };
  if (header.schema !== SCHEMA || header.version !== VERSION) {
    throw new Error(
      `this page shows ${SCHEMA} ${VERSION}, and the data is ` +
        `${header.schema} ${header.version}: write the page anew`,
    );
  }
  const begin = 4 + length;
  function table(of: string, names: readonly string[]) {
    const made: Record<string, Numbers | number> = {};
    for (const name of names) {
      const described = columns[`${of}.${name}`];
      if (!described) throw new Error(`the data has no column ${of}.${name}`);
      const found = column(buffer, begin, described);
      made[name] = found;
      made.length = found.length;
    }
    return made;
  }
  return {
    ...Object.fromEntries(
      Object.entries(TABLES).map(([name, names]) => [name, table(name, names)]),
    ),
    header,
    text: (place: number) => (place < 0 ? "" : (header.texts[place] ?? "")),
  } as unknown as Page;
}

function column(buffer: ArrayBuffer, begin: number, described: Described): Numbers {
  const [stored, isDelta, length, offset] = described;
  const from = begin + offset;
  const raw =
    stored === "i1"
      ? new Int8Array(buffer, from, length)
      : stored === "i2"
        ? new Int16Array(buffer.slice(from, from + 2 * length))
        : stored === "i4"
          ? new Int32Array(buffer.slice(from, from + 4 * length))
          : new Float64Array(buffer.slice(from, from + 8 * length));
  if (!isDelta) return stored === "f8" ? (raw as Float64Array) : Int32Array.from(raw);
  const made = new Float64Array(length);
  let sum = 0;
  for (let i = 0; i < length; i++) made[i] = sum += raw[i];
  return made;
}
