"""Waits of ranks in a collective for the last one to begin it."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from gradviz.analysis.timelines.timeline_spans import collective_title
from gradviz.trace.format.model import Trace


class RankWait(msgspec.Struct, frozen=True, kw_only=True):
    """The wait of one rank in a collective for the last one.

    Attributes:
        name: The collective, and the bucket that it reduces.
        thread: The thread that waited.
        last_thread: The thread of the last rank that began it.
        rank: The rank that waited; None if unknown.
        last_rank: The last rank; None if unknown.
        waited_ns: Duration of the wait.
        until_ns: Time of the last rank's start.
    """

    name: str
    thread: int
    last_thread: int
    rank: int | None
    last_rank: int | None
    waited_ns: int
    until_ns: int

    def after(self, origin_ns: int) -> "RankWait":
        """The same with times counted from `origin_ns`."""
        return replace(self, until_ns=self.until_ns - origin_ns)


def rank_waits(trace: Trace, tasks: Sequence[int]) -> Iterator[RankWait]:
    """Yield the waits in collectives that some passes launched."""
    if not trace.columns["collective_began"].num_rows:
        return
    # Loaded where there are several ranks.
    from gradviz.analysis.tables.collectives import collectives  # noqa: PLC0415

    shown = frozenset(tasks)
    for one in collectives(trace):
        last = max(one.parts, key=lambda part: part.began_ns)
        for part in one.parts:
            # A part that ended before has another clock, and says nothing.
            ended_ns = last.began_ns if part.ended_ns is None else part.ended_ns
            has_waited = part.began_ns < last.began_ns <= ended_ns
            if has_waited and {part.task, last.task} <= shown:
                yield RankWait(
                    name=collective_title(one),
                    thread=part.thread,
                    last_thread=last.thread,
                    rank=part.rank,
                    last_rank=last.rank,
                    waited_ns=last.began_ns - part.began_ns,
                    until_ns=last.began_ns,
                )
