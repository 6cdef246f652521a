"""Slices: what threads reported, cut into stretches of time.

A round of the writer holds kind after kind and thread after thread. Whoever keeps only
the last part of a recording has to know which of it came last.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np

from gradviz.trace.buffer import Taken
from gradviz.trace.columns import RowLayout
from gradviz.trace.table import Column


def in_slices(
    taken: Sequence[Taken], layouts: Mapping[Hashable, RowLayout], most: int
) -> Iterator[list[Taken]]:
    """The rows of all threads in stretches of time, the earliest first.

    Args:
        taken: What the writer took.
        layouts: Of the rows.
        most: About so many numbers are in a slice.
    """
    times = [
        {key: np.array(one.rows[key][:: layouts[key].width]) for key in one.rows}
        for one in taken
    ]
    num_numbers = sum(len(one.rows[key]) for one in taken for key in one.rows)
    done = [dict.fromkeys(one.rows, 0) for one in taken]
    for border in _borders(
        [column for one in times for column in one.values()], num_numbers // most
    ):
        piece = []
        for one, columns, begins in zip(taken, times, done, strict=True):
            rows = {}
            for key in one.rows:  # see Note [Items without memory] in `buffer`
                end = layouts[key].width * _rows_until(columns[key], border)
                if end > begins[key]:
                    rows[key] = one.rows[key][begins[key] : end]
                    begins[key] = end
            if rows:
                piece.append(Taken(one.thread, rows, 0))
        if piece:
            yield piece


def _borders(times: Sequence[Column], number: int) -> Iterator[int | None]:
    """Moments between so many stretches of as many rows each; None for the end."""
    if number > 1:
        every = np.sort(np.concatenate(times))
        yield from every[np.arange(1, number) * len(every) // number].tolist()
    yield None


def _rows_until(times: Column, border: int | None) -> int:
    """How many rows there are before a moment."""
    # Where a signal handler has struck, a row stands before an older one: whatever
    # slice that is in, at the end it is in one.
    return len(times) if border is None else int(np.searchsorted(times, border))
