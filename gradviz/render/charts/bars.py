"""A timeline's spans as rectangles: where they are, and which are merged.

Note [Merged bars]
~~~~~~~~~~~~~~~~~~
A row is cut into cells some pixels wide. Spans that are narrower than a cell and begin
in the same one are one bar, whatever they are, unless a wide one is between them: what
cannot be seen costs no bytes, and each span is in exactly one bar. A bar that would be
too narrow to be seen at all is made wider, and the next one begins where it ends: bars
of a row never overlap, and none begins more than two pixels from where its first span
does. At the right edge of the picture it is those before that give way.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from gradviz.analysis.timelines.timeline_spans import Span
from gradviz.trace.format.table import Column

Pixels: TypeAlias = npt.NDArray[np.floating[Any]]

#: The width of a cell where there are few bars; see Note [Merged bars].
MIN_BAR: Final = 2.0
#: No bar is narrower.
LEAST: Final = 1.0
#: Pixels between two marks of the axis.
TICK_ROOM: Final = 80.0


class Scale(NamedTuple):
    """From times to places, of the time that is shown.

    Attributes:
        left: X coordinate of `begin_ns`.
        per_ns: Width of a nanosecond.
        begin_ns: The first moment that is shown.
        end_ns: The last one.
    """

    left: float
    per_ns: float
    begin_ns: int
    end_ns: int

    @property
    def right(self) -> float:
        """Position of `end_ns`."""
        return self.left + (self.end_ns - self.begin_ns) * self.per_ns

    def x(self, ns: float) -> float:
        """The place of a time; of one that is not shown that of the nearest."""
        inside = min(max(ns, self.begin_ns), self.end_ns)
        return self.left + (inside - self.begin_ns) * self.per_ns


class Bar(NamedTuple):
    """One rectangle: a span, or several that are too short to be seen alone.

    Attributes:
        spans: At least one.
        x: X coordinate of its start.
        wide: Its width.
    """

    spans: Sequence[Span]
    x: float
    wide: float


class Row(NamedTuple):
    """The spans of a row that are shown, in order of start, and where each is."""

    spans: Sequence[Span]
    left: Pixels
    right: Pixels


def row_of(spans: Iterable[Span], scale: Scale) -> Row:
    """Return the visible part of some spans. They are in order of start."""
    shown = [
        one
        for one in spans
        if one.end_ns >= scale.begin_ns and one.start_ns <= scale.end_ns
    ]

    def places(times: Iterable[int]) -> Pixels:
        # Of times that somebody made up a difference may need more than 64 bits.
        every = np.array([*times], np.float64)
        inside = np.clip(every, scale.begin_ns, scale.end_ns)
        found: Pixels = scale.left + (inside - scale.begin_ns) * scale.per_ns
        return found

    return Row(
        shown,
        places(one.start_ns for one in shown),
        places(one.end_ns for one in shown),
    )


def bar_starts(row: Row, scale: Scale, cell: float = MIN_BAR) -> Column:
    """Return which spans are the first of a bar, for cells of a width."""
    is_wide = row.right - row.left >= cell
    number = np.floor((row.left - scale.left) / cell)
    is_first = is_wide.copy()
    is_first[:1] = True
    is_first[1:] |= is_wide[:-1] | (number[1:] != number[:-1])
    return np.flatnonzero(is_first)


def bars(row: Row, scale: Scale, cell: float = MIN_BAR) -> list[Bar]:
    """The rectangles of one row; see Note [Merged bars]."""
    first = bar_starts(row, scale, cell)
    if not len(first):
        return []
    ends = np.maximum.reduceat(row.right, first)
    places = [*first.tolist(), len(row.spans)]
    reached = -math.inf
    found: list[Bar] = []
    for number, (left, right) in enumerate(
        zip(row.left[first].tolist(), ends.tolist(), strict=True)
    ):
        x = max(left, reached)
        reached = max(right, x + LEAST)
        some = row.spans[places[number] : places[number + 1]]
        found.append(Bar(some, x, reached - x))
    # The last ones stay inside of the picture.
    limit = scale.right
    for place in range(len(found) - 1, -1, -1):
        spans, x, wide = found[place]
        if x + wide <= limit:
            break
        x = min(x, limit - LEAST)
        found[place] = Bar(spans, x, limit - x)
        limit = x
    return found


def ticks(scale: Scale) -> Sequence[int]:
    """Return the marks of the axis: every 1, 2 or 5 times a power of ten."""
    most = max((scale.right - scale.left) / TICK_ROOM, 1)
    rough = max((scale.end_ns - scale.begin_ns) / most, 1)
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return range(-(-scale.begin_ns // step) * step, scale.end_ns + 1, step)
