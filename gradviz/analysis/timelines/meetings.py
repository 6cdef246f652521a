"""Meetings: moments at which the last rank began a collective that others waited in."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from gradviz.analysis.timelines.timeline_spans import collective_title
from gradviz.trace.format.model import Trace


class RankMeeting(msgspec.Struct, frozen=True, kw_only=True):
    """The last rank of a collective begins, and another rank need not wait any more.

    Attributes:
        name: The collective, and the bucket that it reduces.
        thread: The thread of the last rank that began it.
        to_thread: That of the rank that waited.
        rank: The last rank; None if unknown.
        to_rank: The rank that waited; None if unknown.
        at_ns: Time of the last rank's start.
        waited_ns: Time that the other had waited by then.
    """

    name: str
    thread: int
    to_thread: int
    rank: int | None
    to_rank: int | None
    at_ns: int
    waited_ns: int

    def after(self, origin_ns: int) -> "RankMeeting":
        """The same with times counted from `origin_ns`."""
        return replace(self, at_ns=self.at_ns - origin_ns)


def meetings(trace: Trace, tasks: Sequence[int]) -> Iterator[RankMeeting]:
    """Yield the meetings of the collectives that some passes launched."""
    if not trace.columns["collective_began"].num_rows:
        return
    # Loaded where there are several ranks.
    from gradviz.analysis.tables.collectives import collectives  # noqa: PLC0415

    shown = frozenset(tasks)
    for one in collectives(trace):
        last = max(one.parts, key=lambda part: part.began_ns)
        for part in one.parts:
            ended_ns = last.began_ns if part.ended_ns is None else part.ended_ns
            has_waited = part.began_ns < last.began_ns <= ended_ns
            if has_waited and {part.task, last.task} <= shown:
                yield RankMeeting(
                    name=collective_title(one),
                    thread=last.thread,
                    to_thread=part.thread,
                    rank=last.rank,
                    to_rank=part.rank,
                    at_ns=last.began_ns,
                    waited_ns=last.began_ns - part.began_ns,
                )
