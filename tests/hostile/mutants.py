"""Traces that no engine writes: events lost, repeated, shuffled, with wrong numbers."""

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from click.testing import CliRunner

from gradviz.cli.main import gradviz
from gradviz.trace.events import INFERRED, KINDS
from gradviz.trace.format.columns import decode_events, encode_events, tabulate
from gradviz.trace.format.frames import (
    Budget,
    FrameType,
    Stamp,
    encode_frame,
    pack,
    scan,
    unpack,
)
from gradviz.trace.format.row_layouts import LAYOUTS, Inferred
from tests.cli.under_limits import COMMANDS, WRITERS

EVERY: Final = COMMANDS + WRITERS
ODD: Final = (0, -1, 1, 2, 2**31, 2**32 - 1, 2**53, 2**62, 2**63 - 1, -(2**63), -7)


class Row(NamedTuple):
    """An event as it is written: its code, its thread and its columns."""

    code: int
    thread: int
    numbers: tuple[int, ...]


Mutation = Callable[[list[Row], random.Random], list[Row]]


def rows_of(data: bytes) -> list[Row]:
    """The events of a trace."""
    rows = []
    for frame in scan(data):
        if frame.type == FrameType.EVENTS:
            raw, _ = unpack(frame.payload, Budget(1 << 30))
            thread, blocks = decode_events(raw, Budget(1 << 30))
            for block in blocks:
                every = block.columns.T.tolist()
                rows += [Row(block.code, thread, tuple(numbers)) for numbers in every]
    return rows


def rewritten(
    data: bytes, rows: Sequence[Row], redefine: Callable[[Any], None] = lambda _: None
) -> bytes:
    """The trace with other events, and perhaps other definitions."""
    first, *others = scan(data)
    recording = json.loads(bytes(first.payload)).get("recording", -1)
    payloads: list[tuple[FrameType, bytes]] = []
    for frame in others:
        if frame.type == FrameType.DEFINITIONS:
            definitions = json.loads(unpack(frame.payload, Budget(1 << 30))[0])
            redefine(definitions)
            payloads.append((FrameType.DEFINITIONS, json.dumps(definitions).encode()))
    payloads += [(FrameType.EVENTS, raw) for raw in _encoded(rows)]
    frames = [encode_frame(FrameType.HEADER, bytes(first.payload))]
    for number, (kind, raw) in enumerate(payloads, start=1):
        stamp = None if recording == -1 else Stamp(recording, number)
        frames.append(encode_frame(kind, pack(raw, stamp)))
    return b"".join(frames)


def _encoded(rows: Sequence[Row]) -> Iterator[bytes]:
    flat: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in rows:
        flat[row.thread, row.code] += row.numbers
    for (thread, code), numbers in flat.items():
        kind = KINDS[code & ~INFERRED]
        layout = LAYOUTS[Inferred(kind) if code & INFERRED else kind]
        yield from encode_events(thread, [tabulate(layout, numbers)])


# --- mutations ------------------------------------------------------------------


def lost(rows: list[Row], chance: random.Random) -> list[Row]:
    share = chance.choice((0.02, 0.2, 0.7))
    return [row for row in rows if chance.random() > share]


def lost_kind(rows: list[Row], chance: random.Random) -> list[Row]:
    kind = chance.choice(rows).code
    return [row for row in rows if row.code != kind]


def twice(rows: list[Row], chance: random.Random) -> list[Row]:
    again = chance.sample(rows, max(len(rows) // 10, 1))
    shift = chance.choice((0, 1, 1_000_000))
    return rows + [_timed(row, row.numbers[0] + shift) for row in again]


def shuffled(rows: list[Row], chance: random.Random) -> list[Row]:
    places = chance.sample(range(len(rows)), len(rows) // chance.choice((1, 4)))
    times = [rows[place].numbers[0] for place in places]
    chance.shuffle(times)
    changed = list(rows)
    for place, t_ns in zip(places, times, strict=True):
        changed[place] = _timed(rows[place], t_ns)
    return changed


def reversed_in_time(rows: list[Row], chance: random.Random) -> list[Row]:
    del chance
    return [_timed(row, -row.numbers[0]) for row in rows]


def at_odd_times(rows: list[Row], chance: random.Random) -> list[Row]:
    some = set(chance.sample(range(len(rows)), max(len(rows) // 50, 1)))
    return [
        _timed(row, chance.choice(ODD)) if place in some else row
        for place, row in enumerate(rows)
    ]


def at_one_time(rows: list[Row], chance: random.Random) -> list[Row]:
    del chance
    return [_timed(row, 5) for row in rows]


def stretched(rows: list[Row], chance: random.Random) -> list[Row]:
    """The trace lasts almost as long as 64 bits can say, or longer."""
    first = min(row.numbers[0] for row in rows)
    last = max(row.numbers[0] for row in rows)
    times = (2**63 - 1) // max(last - first, 1)
    middle = chance.choice((0, (last - first) // 2))
    times *= 1 if not middle else 2
    return [_timed(row, (row.numbers[0] - first - middle) * times) for row in rows]


def swapped_ids(rows: list[Row], chance: random.Random) -> list[Row]:
    """Two numbers of one column trade places in all events, or in half of them."""
    place = chance.choice((1, 2, 3, 4))
    share = chance.choice((0.5, 1.0))
    seen = sorted({row.numbers[place] for row in rows if len(row.numbers) > place})
    one, other = chance.choice(seen), chance.choice(seen)
    traded = {one: other, other: one}
    return [
        _changed(row, place, traded.get(row.numbers[place], row.numbers[place]))
        if len(row.numbers) > place and chance.random() < share
        else row
        for row in rows
    ]


def odd_numbers(rows: list[Row], chance: random.Random) -> list[Row]:
    changed = list(rows)
    for place in chance.sample(range(len(rows)), max(len(rows) // 20, 1)):
        row = rows[place]
        column = chance.randrange(1, len(row.numbers))
        changed[place] = _changed(row, column, chance.choice(ODD))
    return changed


def odd_column(rows: list[Row], chance: random.Random) -> list[Row]:
    """One column of one kind has one number only."""
    code = chance.choice(rows).code
    width = next(len(row.numbers) for row in rows if row.code == code)
    column, number = chance.randrange(1, width), chance.choice(ODD)
    return [_changed(row, column, number) if row.code == code else row for row in rows]


def other_threads(rows: list[Row], chance: random.Random) -> list[Row]:
    threads = [*sorted({row.thread for row in rows}), 99]
    return [
        row._replace(thread=chance.choice(threads)) if chance.random() < 0.2 else row
        for row in rows
    ]


def cut(rows: list[Row], chance: random.Random) -> list[Row]:
    """A part from somewhere to somewhere else, in the order of time."""
    ordered = sorted(rows, key=lambda row: row.numbers[0])
    begin, end = sorted(chance.sample(range(len(rows) + 1), 2))
    return ordered[begin:end] or ordered[:1]


def unchanged(rows: list[Row], chance: random.Random) -> list[Row]:
    """Only definitions change."""
    del chance
    return rows


MUTATIONS: Final[tuple[Mutation, ...]] = (
    lost, lost_kind, twice, shuffled, reversed_in_time, at_odd_times, at_one_time,
    stretched, swapped_ids, odd_numbers, odd_column, other_threads, cut, unchanged,
)  # fmt: skip


def redefining(chance: random.Random) -> Callable[[Any], None]:
    """Damage to definitions: nodes are lost, edges lead elsewhere or back."""

    def redefine(definitions: Any) -> None:
        nodes = definitions.get("nodes", [])
        ids = [node[0] for node in nodes] + [-1, 10**6]
        for node in list(nodes):
            match chance.randrange(12):
                case 0:
                    nodes.remove(node)
                case 1:
                    node[5] = [n for _ in range(3) for n in (chance.choice(ids), 0)]
                case 2:
                    node[chance.randrange(1, 5)] = chance.choice(ODD)
                case 3:
                    node[6] = [chance.choice(ODD)]
        for name in ("queues", "threads", "strings"):
            some = definitions.get(name, [])
            definitions[name] = [one for one in some if chance.random() > 0.1]

    return redefine


def mutant(data: bytes, seed: int) -> bytes:
    """A trace with one to three mutations."""
    chance = random.Random(seed)
    rows = rows_of(data)
    for mutation in chance.choices(MUTATIONS, k=chance.randint(1, 3)):
        rows = mutation(rows, chance) or rows[:1]
    redefine = redefining(chance) if chance.random() < 0.3 else lambda _: None
    return rewritten(data, rows, redefine)


def _timed(row: Row, t_ns: int) -> Row:
    return _changed(row, 0, max(-(2**63), min(t_ns, 2**63 - 1)))


def _changed(row: Row, column: int, number: int) -> Row:
    numbers = list(row.numbers)
    numbers[column] = number
    return row._replace(numbers=tuple(numbers))


def complaint(command: Sequence[str], path: Path) -> str:
    """Return the fault of a command, empty if it has none."""
    words = command if "TRACE" in command else (*command, "TRACE")
    words = [str(path) if word == "TRACE" else word for word in words]
    done = CliRunner().invoke(gradviz, ["--debug", *words])
    if done.exit_code not in {0, 1, 2, 3} or "internal error" in done.stderr:
        return f"{' '.join(command)}: exit code {done.exit_code}\n{done.stderr}"
    return ""
