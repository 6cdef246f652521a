"""Routes of arrows around labels: no arrow crosses the text on a bar.

An arrow is straight where no label is in its way. Else it crosses each row of labels
vertically, in the gap between labels that is nearest, and is slanted between rows.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from gradviz.render.timeline.span_text import BAR_TEXT
from gradviz.render.timeline.timeline_arrows import Arrow
from gradviz.render.timeline.timeline_lanes import BAR_HEIGHT, PlacedLane
from gradviz.render.words.text import width

#: Between an arrow and a label.
CLEARANCE: Final = 3.0
#: An arrow is vertical from so far above a row of labels to so far below it.
_REACH: Final = 1.0


class LabelRow(NamedTuple):
    """One row of labels, with the intervals that they occupy.

    Attributes:
        top: Its upper edge.
        bottom: Its lower edge.
        taken: Left and right end of each interval, disjoint, from left to right.
    """

    top: float
    bottom: float
    taken: tuple[tuple[float, float], ...]


def label_rows(lanes: Iterable[PlacedLane]) -> list[LabelRow]:
    """Return the rows of labels of some lanes, from top to bottom."""
    found = []
    for lane in lanes:
        by_row: dict[tuple[float, float], list[tuple[float, float]]] = {}
        for bar in lane.bars:
            if bar.label:
                half = width(bar.label, BAR_TEXT) / 2 + CLEARANCE
                middle = bar.x + bar.width / 2
                row = by_row.setdefault((bar.y, bar.y + BAR_HEIGHT), [])
                row.append((middle - half, middle + half))
        for note in lane.notes:
            right = note.x + width(note.text, BAR_TEXT, bold=True) + CLEARANCE
            row = by_row.setdefault((note.y - BAR_TEXT, note.y + 3), [])
            row.append((note.x - CLEARANCE, right))
        found += [
            LabelRow(top, bottom, _apart(own)) for (top, bottom), own in by_row.items()
        ]
    return sorted(found)


def routed(arrow: Arrow, rows: Sequence[LabelRow]) -> Arrow:
    """Return an arrow that crosses no label of some rows."""
    upper, lower = sorted((arrow.y, arrow.to_y))
    met = [one for one in rows if one.top < lower and one.bottom > upper]
    if not any(_is_crossed(arrow, one) for one in met):
        return arrow
    if arrow.to_y < arrow.y:
        met.reverse()
    via: list[tuple[float, float]] = []
    for row in met:
        top, bottom = max(row.top - _REACH, upper), min(row.bottom + _REACH, lower)
        ends = [(_x_at(arrow, y), y) for y in (top, bottom)]
        if _is_crossed(arrow, row):
            x = _free(_x_at(arrow, (top + bottom) / 2), row.taken)
            ends = [(x, top), (x, bottom)]
        via += ends if arrow.to_y > arrow.y else ends[::-1]
    return arrow._replace(via=tuple(via))


def _x_at(arrow: Arrow, y: float) -> float:
    """Return the x of a straight arrow at a height."""
    part = (y - arrow.y) / (arrow.to_y - arrow.y) if arrow.to_y != arrow.y else 0.0
    return arrow.x + min(max(part, 0.0), 1.0) * (arrow.to_x - arrow.x)


def _is_crossed(arrow: Arrow, row: LabelRow) -> bool:
    """Return whether a straight arrow crosses a label of a row."""
    one, other = sorted((_x_at(arrow, row.top), _x_at(arrow, row.bottom)))
    return any(left < other and one < right for left, right in row.taken)


def _free(x: float, taken: Iterable[tuple[float, float]]) -> float:
    """Return the x nearest to `x` that is in no interval."""
    for left, right in taken:
        if left < x < right:
            return left if x - left <= right - x else right
    return x


def _apart(taken: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return the union of intervals, as disjoint ones from left to right."""
    found: list[tuple[float, float]] = []
    for left, right in sorted(taken):
        if found and left <= found[-1][1]:
            found[-1] = (found[-1][0], max(right, found[-1][1]))
        else:
            found.append((left, right))
    return tuple(found)
