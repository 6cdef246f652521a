"""Everything that can be wrong with a trace.

That is an impossible history, a missing wait, a pass that failed, and what is lost.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from gradviz.analysis.findings.unreached_parameters import (
    UnreachedParameters,
    unreached_parameters,
)
from gradviz.analysis.moments.pass_failures import PassFailure, explain_failure
from gradviz.analysis.nodes.inferred import UnexplainedEvent, unexplained_events
from gradviz.analysis.races.race_reports import Findings
from gradviz.analysis.races.stream_order import stream_order
from gradviz.analysis.tables.outcomes import COMPLETED, outcomes
from gradviz.analysis.tables.passes import Pass, passes
from gradviz.analysis.tables.worker_parts import num_parts_apart
from gradviz.analysis.training.not_finite import (
    NotFiniteValue,
    count_not_finite,
    not_finite_values,
)
from gradviz.trace.checking.lifecycle import Judgment, Violation, judge
from gradviz.trace.events import kind_name
from gradviz.trace.format.kept_events import keeps_all_of_streams
from gradviz.trace.format.model import Losses, Trace

SCHEMA: Final = "gradviz.check"
VERSION: Final = 1

#: Maximum number of failed passes and of unexplained events listed; all are counted.
MAX_FAILED: Final = 100


#: And so many of them are explained.
MAX_EXPLAINED: Final = 10

#: Nothing was found of parameters, or nothing can be.
NO_PARAMETERS: Final = UnreachedParameters()


class Check(NamedTuple):
    """Findings of the check.

    Attributes:
        history: Events that may not be where they are: a defect of the engine.
        streams: Errors in the order of work on streams: mostly a defect of the program.
        failed: The first passes that failed.
        num_failed: Number of those.
        failures: Reasons of some of these failures, by pass.
        losses: Losses of the trace.
        num_passes: Backward passes in the trace.
        left_out: Parts that the recording left out on purpose, a few words each.
        unexplained: The first unexplained events: PyTorch's engine was seen to do what
            the rules do not allow, or could not be seen.
        num_unexplained: Number of those.
        num_parts_apart: Parts of distributed passes that are shown as passes of their
            own, since their pass has too many.
        judges_streams: True if nothing is left out that orders work on streams; else
            that was not checked.
        not_finite: The first values that are not finite.
        num_not_finite: Number of those.
        checks_finite: True if the recording checked results and gradients; else only
            losses are known.
        parameters: Parameters that no pass reached, or only those of some ranks; they
            make no trace wrong.
    """

    history: Judgment
    streams: Findings
    failed: tuple[Pass, ...]
    num_failed: int
    losses: Losses
    num_passes: int
    left_out: tuple[str, ...] = ()
    judges_streams: bool = True
    unexplained: tuple[UnexplainedEvent, ...] = ()
    num_unexplained: int = 0
    num_parts_apart: int = 0
    not_finite: tuple[NotFiniteValue, ...] = ()
    num_not_finite: int = 0
    checks_finite: bool = False
    parameters: UnreachedParameters = NO_PARAMETERS
    failures: Mapping[int, PassFailure] = MappingProxyType({})

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The first events that may not be where they are."""
        return self.history.violations

    @property
    def num_unseen(self) -> int:
        """Number of events not checked, because there are too many."""
        return self.history.num_unseen + self.streams.num_unseen

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to check: no pass, and no work on streams."""
        return not self.num_passes and not self.streams.num_kernels

    @property
    def is_fine(self) -> bool:
        """True if nothing is wrong; a needless wait is not wrong.

        Unchecked parts may be wrong, so a trace with a part left out is not fine; nor
        is an empty one.
        """
        return (
            not (
                self.violations
                or self.streams.races
                or self.num_failed
                or self.num_unexplained
                or self.num_parts_apart
                or self.num_not_finite
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
    every = outcomes(trace)
    scope = trace.header.scope
    failed = every.task[every.status != COMPLETED].tolist()
    return Check(
        history=judge(trace),
        streams=stream_order(trace) if keeps_all_of_streams(scope) else Findings(),
        failed=passes(trace, tasks=failed[:MAX_FAILED]),
        num_failed=len(failed),
        failures=_failures(trace, failed[:MAX_EXPLAINED]),
        losses=trace.losses,
        num_passes=len(every.task),
        left_out=tuple(scope.in_words()),
        judges_streams=keeps_all_of_streams(scope),
        unexplained=tuple(unexplained_events(trace, MAX_FAILED)),
        num_unexplained=trace.columns["unexplained"].num_rows,
        num_parts_apart=num_parts_apart(trace),
        not_finite=not_finite_values(trace),
        num_not_finite=count_not_finite(trace),
        checks_finite=scope.checks_finite,
        parameters=unreached_parameters(trace) if not scope.only else NO_PARAMETERS,
    )


def _failures(trace: Trace, failed: Sequence[int]) -> dict[int, PassFailure]:
    found = {task: explain_failure(trace, task) for task in failed}
    return {task: one for task, one in found.items() if one is not None}


def check_document(check: Check) -> dict[str, Any]:
    """Return the findings as the output of ``gradviz check --json``."""
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
            {
                "task": one.task,
                "status": one.status,
                "error": one.error,
                "because": msgspec.to_builtins(check.failures.get(one.task)),
            }
            for one in check.failed
        ],
        "failed_not_listed": check.num_failed - len(check.failed),
        "unexplained": [one._asdict() for one in check.unexplained],
        "unexplained_not_listed": check.num_unexplained - len(check.unexplained),
        "parts_apart": check.num_parts_apart,
        "not_finite": [msgspec.to_builtins(one) for one in check.not_finite],
        "not_finite_not_listed": check.num_not_finite - len(check.not_finite),
        "finite_checked": check.checks_finite,
        "losses": msgspec.to_builtins(check.losses),
        "left_out": list(check.left_out),
        "streams_looked_at": check.judges_streams,
        "kernels": streams.num_kernels,
        "races": _counted(streams.races),
        "races_not_listed": streams.num_unlisted,
        "needless_waits": _counted(streams.needless_waits),
        "unreached_parameters": [
            msgspec.to_builtins(one) for one in check.parameters.listed
        ],
        "unreached_parameters_not_listed": (
            check.parameters.num_found - len(check.parameters.listed)
        ),
        "parameters_of_some_ranks": list(check.parameters.differing),
        "parameters_of_some_ranks_not_listed": (
            check.parameters.num_differing - len(check.parameters.differing)
        ),
    }


def _counted(findings: tuple[tuple[msgspec.Struct, int], ...]) -> list[dict[str, Any]]:
    return [
        {**msgspec.to_builtins(finding), "times": times} for finding, times in findings
    ]
