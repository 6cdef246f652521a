"""Why one of two tasks of a ready queue runs first; see `gradviz.ready_order`."""

from typing import Literal, NamedTuple, TypeAlias

from gradviz.trace.probe import Push

#: Why a task was popped first: it wakes the thread, its pass is nested deeper, the
#: forward made its node later, or it is equal and the heap had it on top.
Precedence: TypeAlias = Literal["wake-up", "deeper", "made later", "equal"]


class Rank(NamedTuple):
    """What tasks are compared by: a sequence_nr of -1 is the largest."""

    what: int
    reentrant_depth: int
    sequence_nr: int


def precedence(one: Rank, other: Rank) -> Precedence | None:
    """Why the first goes before the second; None if it does not."""
    if Push.WAKE_UP in {one.what, other.what}:
        if one.what == other.what:
            return "equal"  # however deep their passes are
        return "wake-up" if one.what == Push.WAKE_UP else None
    if one.reentrant_depth != other.reentrant_depth:
        return "deeper" if one.reentrant_depth > other.reentrant_depth else None
    # As unsigned numbers, of which -1 is the largest.
    first, second = (rank.sequence_nr % 2**64 for rank in (one, other))
    if first == second:
        return "equal"
    return "made later" if first > second else None
