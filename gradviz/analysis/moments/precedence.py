"""The reason why one of two tasks of a ready queue runs first."""

from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from gradviz.trace.format.table import Column, Table
from gradviz.trace.probe import Push

#: Reason why a task was popped first: it wakes the thread, its pass is nested deeper,
#: the forward made its node later, or it is equal and the heap had it on top.
Precedence: TypeAlias = Literal["wake-up", "deeper", "made later", "equal"]

#: All of them, each known by its place in here, in columns and on the page.
PRECEDENCES: Final[tuple[Precedence, ...]] = get_args(Precedence)


class Rank(NamedTuple):
    """Sort key of tasks: a sequence_nr of -1 is the largest."""

    what: int
    reentrant_depth: int
    sequence_nr: int


def precedence(one: Rank, other: Rank) -> Precedence | None:
    """Return why the first goes before the second; None if it does not."""
    (place,) = precedences(_row(one), _row(other)).tolist()
    return None if place < 0 else PRECEDENCES[place]


def precedences(some: Table, others: Table) -> Column:
    """Find why each task of one table goes before that of another one.

    Args:
        some: Tasks, with the columns of `Rank`.
        others: As many.

    Returns:
        Places in `PRECEDENCES`, -1 where a task does not go first.
    """
    wakes, others_wake = (one["what"] == Push.WAKE_UP for one in (some, others))
    depth = some["reentrant_depth"] - others["reentrant_depth"]
    # As unsigned numbers, of which -1 is the largest.
    made, others_made = (one["sequence_nr"].view(np.uint64) for one in (some, others))
    wake_up, deeper, made_later, equal = range(len(PRECEDENCES))
    return np.select(
        [
            wakes & others_wake,  # however deep their passes are
            wakes,
            others_wake | (depth < 0),
            depth > 0,
            made > others_made,
            made == others_made,
        ],
        [equal, wake_up, -1, deeper, made_later, equal],
        -1,
    )


def _row(rank: Rank) -> Table:
    return Table(
        {
            "what": np.array([rank.what]),
            "reentrant_depth": np.array([rank.reentrant_depth]),
            "sequence_nr": np.array([rank.sequence_nr % 2**64], np.uint64),
        }
    )
