"""Files that want to do harm: small, and much more than they seem.

Each builder makes one file. What it tries is its name.
"""

import random
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator

from gradviz.trace.events import KINDS, kind_name
from gradviz.trace.format.clock import ClockPair
from gradviz.trace.format.columns import encode_events, tabulate
from gradviz.trace.format.definitions import (
    Closed,
    Definitions,
    InputRow,
    ModelRow,
    NodeRow,
    ParameterRow,
    QueueRow,
    encode_json,
)
from gradviz.trace.format.frames import MAGIC, FrameType, encode_frame
from gradviz.trace.format.model import Header
from gradviz.trace.format.row_layouts import LAYOUTS

NOW = ClockPair(monotonic_ns=1, wall_ns=2)
HEADER = encode_frame(FrameType.HEADER, encode_json(Header(version=(1, 0), clock=NOW)))
CLOSED = encode_frame(FrameType.CLOSED, encode_json(Closed(0, 0, 0)))
CODES = {kind_name(kind): code for code, kind in KINDS.items()}
EVENTS = {kind_name(kind): kind for kind in KINDS.values()}


def squeezed(kind: FrameType, raw: bytes) -> bytes:
    """A frame, packed as small as it gets."""
    return encode_frame(kind, struct.pack("<I", len(raw)) + zlib.compress(raw, 9))


def regular(kind: str, num_rows: int, *columns: tuple[int, int]) -> bytes:
    """A block of rows that costs no bytes: of each column the first and the step."""
    body = b"".join(struct.pack("<Bqq", 0, *column) for column in columns)
    head = struct.pack("<HHII", CODES[kind], len(columns), num_rows, len(body))
    return head + body


def events(*blocks: bytes, thread: int = 0) -> bytes:
    raw = struct.pack("<IH", thread, len(blocks)) + b"".join(blocks)
    return squeezed(FrameType.EVENTS, raw)


def rows(kind: str, some: Iterable[tuple[int, ...]], thread: int = 0) -> bytes:
    """Frames of these rows: time, task, node and the kind's own."""
    layout = LAYOUTS[EVENTS[kind]]
    flat = [number for row in some for number in row]
    return b"".join(
        squeezed(FrameType.EVENTS, raw)
        for raw in encode_events(thread, [tabulate(layout, flat)])
    )


def definitions(**fields: list[object]) -> bytes:
    return squeezed(FrameType.DEFINITIONS, encode_json(Definitions(**fields)))


def one_pass(num_nodes: int, edges: list[int] | None = None) -> bytes:
    """A pass over nodes 0 to `num_nodes`, each of which started and completed."""
    begun = regular("task_begun", 1, (0, 0), (0, 0), (-1, 0), (-1, 0), *[(0, 0)] * 6)
    ran = [
        regular(kind, num_nodes, (at, 10), (0, 0), (0, 1), *[(0, 0)] * more)
        for at, kind, more in (
            (1, "task_pushed", 7),
            (2, "task_popped", 2),
            (3, "node_started", 0),
            (4, "node_completed", 0),
        )
    ]
    return events(begun, *ran)


def many_begun(num_passes: int) -> bytes:
    """A block of passes that begin, one every nanosecond."""
    begun = [(0, 1), (0, 1), (-1, 0), (-1, 0), *[(0, 0)] * 6]
    return regular("task_begun", num_passes, *begun)


def many_passes(num_passes: int) -> bytes:
    """A trace of passes that begin and never end."""
    return HEADER + events(many_begun(num_passes)) + CLOSED


# --- the corpus -----------------------------------------------------------------


def rows_for_nothing() -> bytes:
    """Two million rows that cost no bytes, each out of place."""
    block = regular("node_started", 500_000, (0, 1), (0, 0), (0, 1))
    return HEADER + events(block) * 4 + CLOSED


def wide_rows_for_nothing() -> bytes:
    big = (2**40, 2**40)
    block = regular("task_pushed", 160_000, *[big] * 10)
    return HEADER + b"".join(events(block, thread=one) for one in range(60)) + CLOSED


def passes_for_nothing() -> bytes:
    return HEADER + events(many_begun(180_000)) * 6 + CLOSED


def failures_for_nothing() -> bytes:
    text = definitions(strings=[(0, "x" * 2_000)])
    failed = [(5, 1), (0, 1), (-1, 0), (0, 0)]
    blocks = (
        many_begun(180_000),
        regular("task_failed", 200_000, *failed),
    )
    return HEADER + text + events(*blocks) + CLOSED


def parts_for_nothing() -> bytes:
    """Very many passes, each of which another worker has a part of."""
    return HEADER + events(many_begun(180_000), sent_by(180_000, 1)) + CLOSED


def parts_of_one_pass() -> bytes:
    """A pass of very many parts."""
    return HEADER + events(many_begun(180_000), sent_by(180_000, 0)) + CLOSED


def sent_by(num_parts: int, step: int) -> bytes:
    """A message of each GraphTask, of a pass whose number grows by `step`."""
    message = [(5, 1), (0, 1), (-1, 0), (0, 1), (0, 0), (0, 1), (0, 0), (0, step)]
    return regular("message_sent", num_parts, *message, (8, 0))


def long_pass() -> bytes:
    return HEADER + one_pass(200_000) + CLOSED


def queues() -> bytes:
    """Millions of queues, each with a name of its own, in eight megabytes."""
    frames = []
    for first in range(0, 1_500_000, 50_000):
        some = [QueueRow(first + one, f"{one:x}", 0) for one in range(50_000)]
        frames.append(definitions(queues=some))
    return HEADER + b"".join(frames) + CLOSED


def strings() -> bytes:
    frames = []
    for first in range(0, 1_500_000, 100_000):
        some = [(first + one, "") for one in range(100_000)]
        frames.append(definitions(strings=some))
    return HEADER + b"".join(frames) + CLOSED


def nodes() -> bytes:
    """Thirty frames of nodes, as many as go into each."""
    row = b"[%d,0,0,0,0,[],[]]"
    frames = []
    for frame in range(30):
        some = b",".join(row % (one + frame) for one in range(160_000))
        frames.append(squeezed(FrameType.DEFINITIONS, b'{"nodes":[' + some + b"]}"))
    return HEADER + b"".join(frames) + CLOSED


def brackets() -> bytes:
    raw = b'{"nodes":[' + b",".join([b"[1,0,0,0,0,[],[]]"] * 900_000) + b"]}"
    return HEADER + squeezed(FrameType.DEFINITIONS, raw) * 30 + CLOSED


def long_name() -> bytes:
    """A node whose name is fifteen megabytes long, and runs."""
    texts = definitions(strings=[(0, "<" * 15_000_000), (1, "cpu")])
    node = definitions(nodes=[NodeRow(one, 0, 0, 0, 0, [], [], 0) for one in range(50)])
    return HEADER + texts + node + one_pass(50) + CLOSED


def names_often() -> bytes:
    """A name as long as it may be, of very many nodes."""
    texts = definitions(strings=[(0, "n" * 3_900)])
    some = [NodeRow(one, 0, 0, 0, 0, [], [], 0) for one in range(60_000)]
    return HEADER + texts + definitions(nodes=some) + one_pass(60_000) + CLOSED


def fan_out() -> bytes:
    """A node with a million edges, each to another node."""
    return fan_out_of(1_000_000)


def fan_out_of(num_edges: int) -> bytes:
    edges = [number for one in range(num_edges) for number in (one + 1, 0)]
    return (
        HEADER
        + definitions(nodes=[NodeRow(0, 0, 0, 0, 0, edges, [])])
        + one_pass(1)
        + CLOSED
    )


def parallel_edges() -> bytes:
    edges = [1, 0] * 1_000_000
    some = [NodeRow(0, 0, 0, 0, 0, edges, []), NodeRow(1, 0, 0, 0, 0, [0, 0], [])]
    return HEADER + definitions(nodes=some) + one_pass(2) + CLOSED


def dimensions() -> bytes:
    """Inputs of a thousand dimensions, and very many inputs."""
    inputs = [InputRow(one, tuple(range(1_000)), 0, 0) for one in range(100)]
    some = [NodeRow(one, 0, 0, 0, 0, [], list(range(100)) * 50) for one in range(50)]
    return HEADER + definitions(inputs=inputs, nodes=some) + one_pass(50) + CLOSED


def models() -> bytes:
    """Models whose parameters have thousands of names."""
    names = definitions(strings=[(0, "\n" * 4_000), (1, "Net")])
    row = ParameterRow(0, (1,) * 64, 1, 1, True)
    some = [ModelRow(1, 2**40, (row,) * 5_000) for _ in range(20)]
    return HEADER + names + definitions(models=some) + one_pass(2) + CLOSED


def threads() -> bytes:
    """Each frame is another thread's, which ran a node."""
    started = regular("node_started", 1, (5, 0), (0, 0), (1, 0))
    begun = regular("task_begun", 1, (0, 0), (0, 0), (-1, 0), (-1, 0), *[(0, 0)] * 6)
    some = (events(started, thread=one) for one in range(20_000))
    return HEADER + events(begun) + b"".join(some) + CLOSED


def nested() -> bytes:
    """Nodes that start inside of each other and never end."""
    begun = regular("task_begun", 1, (0, 0), (0, 0), (-1, 0), (-1, 0), *[(0, 0)] * 6)
    started = regular("node_started", 40_000, (1, 1), (0, 0), (0, 1))
    return HEADER + events(begun, started) + CLOSED


def streams() -> bytes:
    """Work on thousands of streams that wait for each other."""
    texts = definitions(strings=[(one, f"sim:0/{one}") for one in range(5_000)])
    launched = [(10 * i, -1, -1, i, i % 5_000, 0, 0) for i in range(40_000)]
    recorded = [(10 * i + 1, -1, -1, i % 5_000, i) for i in range(40_000)]
    waited = [(10 * i + 2, -1, -1, (i + 1) % 5_000, i, -1, 0) for i in range(40_000)]
    ran = [(10 * i + 3, -1, -1, i, 10 * i, 10 * i + 5) for i in range(40_000)]
    begun = regular("task_begun", 1, (0, 0), (0, 0), (-1, 0), (-1, 0), *[(0, 0)] * 6)
    return b"".join(
        (
            HEADER,
            texts,
            events(begun, regular("node_started", 1, (400_000, 0), (0, 0), (1, 0))),
            rows("kernel_launched", launched),
            rows("event_recorded", recorded),
            rows("stream_waited", waited),
            rows("kernel_ran", ran),
            CLOSED,
        )
    )


def accesses() -> bytes:
    """Two streams that use the same memory in ever other ways."""
    layouts = [f"{8 * one};3,5,7;{800 + one},{160 + one},24;8" for one in range(2_000)]
    texts = [(0, "sim:0/0"), (1, "sim:0/1"), *enumerate(layouts, 2)]
    launched = [(10 * i, -1, -1, i, i % 2, 0, 0) for i in range(20_000)]
    used = [(10 * i + 1, -1, -1, i, 7, 2 + i % 2_000, 1) for i in range(20_000)]
    return b"".join(
        (
            HEADER,
            definitions(strings=texts),
            rows("kernel_launched", launched),
            rows("array_accessed", used),
            CLOSED,
        )
    )


def extents() -> bytes:
    """A stream reads hundreds of thousands of columns, another writes between them."""
    layouts = [f"{16 * one};2;{1 << 26};8" for one in range(300_000)]
    others = [f"{16 * one + 8};3;{1 << 24};8" for one in range(1_000)]
    texts = [(0, "sim:0/0"), (1, "sim:0/1"), *enumerate(layouts + others, 2)]
    launched = [(0, -1, -1, 0, 0, 0, 0), (400_000, -1, -1, 1, 1, 0, 0)]
    used = [(1 + i, -1, -1, 0, 7, 2 + i, 0) for i in range(300_000)]
    used += [(400_001 + i, -1, -1, 1, 7, 300_002 + i, 1) for i in range(1_000)]
    return b"".join(
        (
            HEADER,
            definitions(strings=texts),
            rows("kernel_launched", launched),
            rows("array_accessed", used),
            CLOSED,
        )
    )


def handovers() -> bytes:
    """Thousands of threads that use memory of the host and tell each other all."""
    number = 4_000
    parts = [HEADER, definitions(strings=[(0, "sim:0/0"), (1, "0;8;8;8")])]
    parts += [
        rows("handovers_heard", [(0, -1, -1)]),
        rows("kernel_launched", [(1, -1, -1, 0, 0, 0, 0)]),
    ]
    for one in range(number):
        when = 10 + 10 * one
        parts += [
            rows("taken_over", [(when, -1, -1, one - 1)], thread=one),
            rows("host_accessed", [(when + 1, -1, -1, one, 1, 1, 0)], thread=one),
            rows("handed_over", [(when + 2, -1, -1, one)], thread=one),
        ]
    return b"".join((*parts, CLOSED))


def extreme_numbers() -> bytes:
    low, high = -(2**63), 2**63 - 1
    frames = [
        rows(kind, [(low,) * width, (high,) * width, (0,) * width])
        for kind in CODES
        for width in (LAYOUTS[EVENTS[kind]].width,)
    ]
    return HEADER + b"".join(frames) + CLOSED


def tiny_frames() -> bytes:
    frame = events(regular("node_started", 1, (5, 0), (0, 0), (1, 0)))
    return HEADER + frame * (4_000_000 // len(frame)) + CLOSED


def empty_frames() -> bytes:
    return HEADER + encode_frame(99, b"") * 300_000 + CLOSED  # type: ignore[arg-type]


def false_starts() -> bytes:
    return HEADER + MAGIC * 600_000 + CLOSED


def claims() -> bytes:
    return HEADER + (MAGIC + struct.pack("<IIB", 1 << 20, 0, 3)) * 200_000


def bombs() -> bytes:
    bomb = squeezed(FrameType.EVENTS, bytes(16 << 20))
    return HEADER + bomb * (9_000_000 // len(bomb)) + CLOSED


def header_of_lists() -> bytes:
    return encode_frame(FrameType.HEADER, b'{"version":' + b"[" * 1_000_000) + CLOSED


def header_of_arguments() -> bytes:
    some = b'{"version":[1,0],"clock":{"monotonic_ns":1,"wall_ns":2},"argv":['
    return encode_frame(FrameType.HEADER, some + b'"",' * 2_000_000 + b'""]}') + CLOSED


BUILDERS: tuple[Callable[[], bytes], ...] = (
    rows_for_nothing,
    wide_rows_for_nothing,
    passes_for_nothing,
    failures_for_nothing,
    long_pass,
    parts_for_nothing,
    parts_of_one_pass,
    queues,
    strings,
    nodes,
    brackets,
    long_name,
    names_often,
    fan_out,
    parallel_edges,
    dimensions,
    models,
    threads,
    nested,
    streams,
    accesses,
    extents,
    handovers,
    extreme_numbers,
    tiny_frames,
    empty_frames,
    false_starts,
    claims,
    bombs,
    header_of_lists,
    header_of_arguments,
)


def damaged(whole: bytes, how_many: int) -> Iterator[bytes]:
    """A file that is cut, or has a byte changed, at places chosen by a fixed seed."""
    chance = random.Random(0)
    for _ in range(how_many):
        place = chance.randrange(len(whole))
        yield whole[:place]
        yield whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :]
