"""Everything that can be wrong with a trace: an impossible history, a missing wait."""

from typing import Any, Final, NamedTuple

import msgspec

from gradviz.analysis.races import Findings
from gradviz.analysis.stream_order import stream_order
from gradviz.trace.events import kind_name
from gradviz.trace.lifecycle import Violation, check_lifecycle
from gradviz.trace.model import Trace

SCHEMA: Final = "gradviz.check"
VERSION: Final = 1


class Check(NamedTuple):
    """What was found.

    Attributes:
        violations: Events that may not be where they are: a defect of the engine.
        streams: What is wrong with the order of work on streams: mostly one of the
            program.
    """

    violations: tuple[Violation, ...]
    streams: Findings

    @property
    def is_fine(self) -> bool:
        """Whether nothing is wrong; a wait that was not needed is not."""
        return not self.violations and not self.streams.races


def check_trace(trace: Trace) -> Check:
    """Look for everything that can be wrong with a trace.

    Where events are missing, what is found about streams may be no race: see
    `stream_order`.
    """
    return Check(check_lifecycle(trace), stream_order(trace))


def check_document(check: Check) -> dict[str, Any]:
    """What was found, as what ``gradviz check --json`` prints."""
    streams = check.streams
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "fine": check.is_fine,
        "violations": [
            {
                "event": violation.event.seq,
                "kind": kind_name(type(violation.event)),
                "reason": violation.reason,
            }
            for violation in check.violations
        ],
        "kernels": streams.num_kernels,
        "races": _counted(streams.races),
        "races_not_listed": streams.num_unlisted,
        "needless_waits": _counted(streams.needless_waits),
    }


def _counted(findings: tuple[tuple[msgspec.Struct, int], ...]) -> list[dict[str, Any]]:
    return [
        {**msgspec.to_builtins(finding), "times": times} for finding, times in findings
    ]
