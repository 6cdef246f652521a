"""The order of messages on a common clock: do they come after they left?"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, Table
from gradviz.trace.merging.compared_clocks import ClockMap

#: Facts that both ends of a message have, the sender first.
_SENT: Final = ("worker", "peer", "message", "context", "pass_id")
_RECEIVED: Final = ("peer", "worker", "message", "context", "pass_id")


class EarlyMessages(NamedTuple):
    """Messages that came before they left: clocks do not agree.

    Attributes:
        num_messages: Number of these messages.
        most_ns: Longest time by which one came too early.
    """

    num_messages: int
    most_ns: int


def early_messages(traces: Sequence[tuple[Trace, ClockMap]]) -> EarlyMessages:
    """Return the messages that arrive too early if times are moved so."""
    ends = [
        _ends(trace.columns[kind], names, is_end, clock)
        for kind, names, is_end in (
            ("message_sent", _SENT, 0),
            ("message_received", _RECEIVED, 1),
        )
        for trace, clock in traces
    ]
    rows = np.concatenate(ends, axis=1)
    rows = rows[:, np.lexsort(rows[::-1])]  # by what they say, the sending first
    same = (rows[:-2, 1:] == rows[:-2, :-1]).all(axis=0)
    pair = same & (rows[-2, :-1] == 0) & (rows[-2, 1:] == 1)
    early = (rows[-1, :-1] - rows[-1, 1:])[pair]
    return EarlyMessages(int((early > 0).sum()), int(early.max(initial=0)))


def early_in_words(traces: Sequence[tuple[Trace, ClockMap]]) -> list[str]:
    """Return a report on messages that arrived too early; nothing if none did."""
    early = early_messages(traces)
    if not early.num_messages:
        return []
    most = f"{early.most_ns / 1e3:,.3g} us"
    few = f"{early.num_messages:,}, by up to {most}"
    return [
        f"messages that came before they left: {few}; the clocks of workers disagree"
    ]


def _ends(table: Table, names: Sequence[str], is_end: int, clock: ClockMap) -> Column:
    """A row for each name, one that says which end it is, and one of times."""
    kind = np.full(table.num_rows, is_end, np.int64)
    times = clock.moved(table["t_ns"])
    return np.array([*(table[name] for name in names), kind, times])
