"""Curves: something that changes over time, as so many points as can be shown."""

from typing import Final, TypeAlias

import numpy as np

from gradviz.trace.table import Column

#: A curve has no more points than this.
MAX_POINTS: Final = 2_000

#: When it got which height; until the next point it stays as high.
Points: TypeAlias = tuple[tuple[int, int], ...]


def thinned(when: Column, heights: Column) -> Points:
    """When it got which height; of very many points those that tell the curve."""
    chosen = telling(when, heights)
    return tuple(zip(when[chosen].tolist(), heights[chosen].tolist(), strict=True))


def telling(when: Column, heights: Column) -> Column:
    """Which points tell a curve: all, or of each slice of the time two.

    They are the first of the highest, so that no peak is lost, and the last one, which
    may stay for long after the slice.
    """
    if len(when) <= MAX_POINTS:
        return np.arange(len(when))
    span = int(when[-1] - when[0]) + 1
    piece = (when - when[0]) * (MAX_POINTS // 2) // span
    first = np.flatnonzero(np.diff(piece, prepend=-1))
    last = np.append(first[1:], len(when)) - 1
    highest = np.lexsort((-heights, piece))[first]  # a stable sort: the first of them
    return np.unique(np.concatenate((highest, last)))
