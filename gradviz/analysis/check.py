"""Everything that can be wrong with a trace.

That is an impossible history, a missing wait, a pass that failed, and what is lost.
"""

from typing import Any, Final, NamedTuple

import msgspec

from gradviz.analysis.inferred import Doubt, doubts
from gradviz.analysis.passes import MAX_PASSES, Pass, passes
from gradviz.analysis.races import Findings
from gradviz.analysis.stream_order import stream_order
from gradviz.trace.events import kind_name
from gradviz.trace.lifecycle import Judgement, Violation, judge
from gradviz.trace.model import Losses, Trace

SCHEMA: Final = "gradviz.check"
VERSION: Final = 1

#: So many passes are told by their errors, and so many doubts; all are counted.
MAX_FAILED: Final = 100


class Check(NamedTuple):
    """What was found.

    Attributes:
        history: Events that may not be where they are: a defect of the engine.
        streams: What is wrong with the order of work on streams: mostly a defect of
            the program.
        failed: The first passes that did not end well.
        num_failed: How many there are.
        losses: What is missing from the trace.
        num_passes: Backward passes in the trace.
        left_out: What the recording left out on purpose, a few words each.
        doubts: The first things that are unexplained: what PyTorch's engine was seen
            to do and the rules do not allow, or what could not be seen of it.
        num_doubts: How many there are.
        judges_streams: Whether nothing is left out that orders work on streams: else
            that was not looked at.
    """

    history: Judgement
    streams: Findings
    failed: tuple[Pass, ...]
    num_failed: int
    losses: Losses
    num_passes: int
    left_out: tuple[str, ...] = ()
    judges_streams: bool = True
    doubts: tuple[Doubt, ...] = ()
    num_doubts: int = 0

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The first events that may not be where they are."""
        return self.history.violations

    @property
    def num_unseen(self) -> int:
        """Events that nobody looked at, because they are too many."""
        num_unseen = self.history.num_unseen + self.streams.num_unseen
        return num_unseen + max(self.num_passes - MAX_PASSES, 0)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to look at: no pass, and no work on streams."""
        return not self.num_passes and not self.streams.num_kernels

    @property
    def is_fine(self) -> bool:
        """Whether nothing is wrong; a wait that was not needed is not.

        What was not looked at may be wrong, so a trace of which a part was left out is
        not fine; nor is an empty one.
        """
        return (
            not (
                self.violations
                or self.streams.races
                or self.num_failed
                or self.num_doubts
                or self.num_unseen
                or self.is_empty
            )
            and self.losses.is_complete
        )


def check_trace(trace: Trace) -> Check:
    """Look for everything that can be wrong with a trace.

    Where events are missing, what is found about streams may be no race: see
    `stream_order`. Where they were left out on purpose, streams are not looked at.
    """
    every = passes(trace)
    scope = trace.header.scope
    failed = [one for one in every if one.status != "completed"]
    return Check(
        history=judge(trace),
        streams=stream_order(trace) if scope.has_all_of_streams else Findings(),
        failed=tuple(failed[:MAX_FAILED]),
        num_failed=len(failed),
        losses=trace.losses,
        num_passes=trace.columns["task_begun"].num_rows,
        left_out=tuple(scope.in_words()),
        judges_streams=scope.has_all_of_streams,
        doubts=tuple(doubts(trace, MAX_FAILED)),
        num_doubts=trace.columns["unexplained"].num_rows,
    )


def check_document(check: Check) -> dict[str, Any]:
    """What was found, as what ``gradviz check --json`` prints."""
    streams = check.streams
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "fine": check.is_fine,
        "empty": check.is_empty,
        "passes": check.num_passes,
        "violations": [
            {
                "event": violation.event.seq,
                "kind": kind_name(type(violation.event)),
                "reason": violation.reason,
            }
            for violation in check.violations
        ],
        "violations_not_listed": (check.history.num_violations - len(check.violations)),
        "events_not_looked_at": check.num_unseen,
        "failed": [
            {"task": one.task, "status": one.status, "error": one.error}
            for one in check.failed
        ],
        "failed_not_listed": check.num_failed - len(check.failed),
        "unexplained": [one._asdict() for one in check.doubts],
        "unexplained_not_listed": check.num_doubts - len(check.doubts),
        "losses": msgspec.to_builtins(check.losses),
        "left_out": list(check.left_out),
        "streams_looked_at": check.judges_streams,
        "kernels": streams.num_kernels,
        "races": _counted(streams.races),
        "races_not_listed": streams.num_unlisted,
        "needless_waits": _counted(streams.needless_waits),
    }


def _counted(findings: tuple[tuple[msgspec.Struct, int], ...]) -> list[dict[str, Any]]:
    return [
        {**msgspec.to_builtins(finding), "times": times} for finding, times in findings
    ]
