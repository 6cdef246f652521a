"""Curves in one line of a terminal: a block for each slice of time."""

import math
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from gradviz.analysis.tables.spans import Points
from gradviz.render.words.text import shorten

#: Heights of a curve, in eighths of a line.
HEIGHTS: Final = " ▁▂▃▄▅▆▇█"
MIN_COLUMNS: Final = 20
MAX_NAME: Final = 16


def print_curves(
    console: Console, curves: Sequence[tuple[str, Points, int]], duration_ns: int
) -> None:
    """Print a line for each curve: its name, and its heights against the highest."""
    names = [shorten(name, MAX_NAME) for name, _, _ in curves]
    gutter = max(map(len, names), default=0) + 4
    columns = max(console.width - gutter, MIN_COLUMNS)
    for name, (_, points, highest) in zip(names, curves, strict=True):
        curve = curve_text(points, duration_ns, columns, highest)
        line = Text.assemble((f"  {name}".ljust(gutter), "dim"), (curve, "blue"))
        console.print(line, no_wrap=True, overflow="crop")


def curve_text(points: Points, duration_ns: int, columns: int, highest: int) -> str:
    """The highest that a curve is in each slice of time, against the highest ever."""
    per_column = max(duration_ns, 1) / columns
    most = [0] * columns
    current, reached = 0, 0
    for moment, height in points:
        column = min(max(int(moment / per_column), 0), columns - 1)
        for passed in range(reached, min(math.ceil(moment / per_column), columns)):
            most[passed] = max(most[passed], current)
        most[column] = max(most[column], height)
        current, reached = height, column
    for passed in range(reached, columns):
        most[passed] = max(most[passed], current)
    return "".join(_block(height, highest) for height in most)


def _block(height: int, highest: int) -> str:
    """A block as high as its part of the highest; never empty where there was any."""
    if height <= 0:  # of sizes that a damaged trace has, sums may be anything
        return HEIGHTS[0]
    return HEIGHTS[max(round(height / highest * (len(HEIGHTS) - 1)), 1)]
