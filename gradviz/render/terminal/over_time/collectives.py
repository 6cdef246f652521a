"""Collectives of data-parallel ranks: one row per rank and collective."""

from collections.abc import Iterator
from typing import Final

from rich.console import Console

from gradviz.analysis.causes.stragglers import (
    CollectiveRow,
    CollectiveUse,
    RankRow,
    Straggler,
)
from gradviz.render.terminal.cells import (
    duration_text,
    make_console,
    name_text,
    node_text,
    print_heading,
    print_wrapped,
    share,
)
from gradviz.render.terminal.row_printer import print_rows
from gradviz.render.words.text import count, duration, size

#: A terminal shows no more collectives than this; JSON has all.
MAX_SHOWN: Final = 200

_COLUMNS: Final = (
    *("#", "operation", "bucket", "bytes", "rank", "began", "took", "exposed"),
    "launched by",
)


def print_collectives(use: CollectiveUse, console: Console | None = None) -> None:
    """Print the collectives, then their cost to each rank and the straggler."""
    console = console or make_console()
    num = len(use.collectives)
    print_wrapped(console, count(num, "collective"), "bold", "")
    if not num:
        return
    shown = use.collectives[:MAX_SHOWN]
    numbered = [*enumerate(shown)]
    rows = (row for number, one in numbered for row in _rows(number, one))
    print_rows(console, _COLUMNS, rows)
    if num > MAX_SHOWN:
        left_out = f"{num - MAX_SHOWN:,} more are not shown; --json has all"
        print_wrapped(console, left_out, "", "")
    print_heading(console, "Ranks")
    _ranks(use, console)
    late = [
        (number, one.straggler)
        for number, one in numbered
        if one.straggler is not None and one.straggler.late_ns
    ]
    if late:
        print_heading(console, "Waited for the last rank")
        _stragglers(late, console)
    if filled := _last_filled(use):
        print_heading(console, "Buckets, in the order in which gradients filled them")
        _buckets(filled, console)


def _rows(number: int, one: CollectiveRow) -> Iterator[list[str]]:
    moved = "unknown" if one.size_bytes is None else size(one.size_bytes)
    for rank in one.ranks:
        yield [
            str(number),
            name_text(one.name),
            _number(one.bucket),
            moved,
            _number(rank.rank),
            duration_text(rank.began_ns),
            duration_text(_took_ns(rank)),
            "unknown" if rank.exposed_ns is None else duration(rank.exposed_ns),
            _node_text(rank),
        ]


def _took_ns(rank: RankRow) -> int | None:
    return None if rank.ended_ns is None else rank.ended_ns - rank.began_ns


def _ranks(use: CollectiveUse, console: Console) -> None:
    rows = (
        [
            _number(one.rank),
            f"{one.num_collectives:,}",
            duration(one.took_ns),
            "unknown" if one.exposed_ns is None else duration(one.exposed_ns),
            "-"
            if one.exposed_ns is None
            else share(1 - one.exposed_ns / max(one.took_ns, 1)),
            f"{one.num_last:,}",
            duration_text(one.late_ns or None),
        ]
        for one in use.ranks
    )
    columns = ("rank", "collectives", "took", "exposed", "overlapped", "last", "late")
    print_rows(console, columns, rows, indent=2)


def _stragglers(late: list[tuple[int, Straggler]], console: Console) -> None:
    rows = (
        [
            str(number),
            _number(one.rank),
            duration(one.late_ns),
            _cause(one),
            duration_text(one.longer_ns),
        ]
        for number, one in late
    )
    print_rows(console, ("#", "rank", "late", "because of", "longer"), rows, indent=2)


def _last_filled(use: CollectiveUse) -> dict[tuple[str, int], RankRow]:
    """Return, for each bucket, its last collective on its first rank."""
    return {
        (one.model, one.bucket): one.ranks[0]
        for one in use.collectives
        if one.model is not None and one.bucket is not None and one.ranks[0].gradients
    }


def _buckets(filled: dict[tuple[str, int], RankRow], console: Console) -> None:
    rows = (
        [
            name_text(model),
            str(bucket),
            ", ".join(map(name_text, one.parameters)) or f"node {one.node}",
            "unknown" if one.size_bytes is None else size(one.size_bytes),
            duration_text(one.ready_ns),
        ]
        for (model, bucket), rank in sorted(filled.items())
        for one in rank.gradients[:MAX_SHOWN]
    )
    columns = ("model", "bucket", "parameter", "bytes", "ready")
    print_rows(console, columns, rows, indent=2)


def _cause(late: Straggler) -> str:
    if late.cause == "begin":
        return "before the pass"
    if late.cause == "node":
        return _node_text(late)
    return "unknown"


def _node_text(one: RankRow | Straggler) -> str:
    if one.name is None or one.node is None:
        return "?"
    return node_text(one.name, one.node, one.index)


def _number(number: int | None) -> str:
    return "?" if number is None else str(number)
