"""Curves: something that changes over time, as so many points as can be shown."""

from typing import Final, TypeAlias

import numpy as np

from gradviz.trace.table import Column

#: A curve has no more points than this.
MAX_POINTS: Final = 2_000

#: When it got which height; until the next point it stays as high.
Points: TypeAlias = tuple[tuple[int, int], ...]


def thinned(when: Column, heights: Column) -> Points:
    """When it got which height, or the highest of each slice of the time."""
    if len(when) > MAX_POINTS:
        span = int(when[-1] - when[0]) + 1
        piece = (when - when[0]) * MAX_POINTS // span
        first = np.flatnonzero(np.diff(piece, prepend=-1))
        when, heights = when[first], np.maximum.reduceat(heights, first)
    return tuple(zip(when.tolist(), heights.tolist(), strict=True))
