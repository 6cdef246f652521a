"""Advice: possible gains of a program, with their costs and lines.

Each rule is a function from a trace to findings, in `kept_graphs`, `graphs_alive`,
`time_findings`, `branches_in_turn`, `accumulation_streams`, `host_waits` and
`needless_waits`, with its thresholds beside it. Rules are made so that a program that
is as it should be hears nothing: what a trace only suggests is *likely*, and what it
cannot tell is not said.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from gradviz.analysis.findings.accumulation_streams import (
    accumulate_stream_mismatch,
)
from gradviz.analysis.findings.branches_in_turn import branches_in_turn
from gradviz.analysis.findings.host_waits import host_wait
from gradviz.analysis.findings.needless_waits import needless_wait
from gradviz.analysis.findings.time_findings import deep_nesting, one_leaf, slow_hooks
from gradviz.analysis.memory.finding import AdviceRule, CostlyFinding
from gradviz.analysis.memory.graphs_alive import graphs_pile_up
from gradviz.analysis.memory.kept_graphs import (
    graph_grows,
    graph_held_over,
    graph_never_run,
    needless_create_graph,
    needless_retain_graph,
)
from gradviz.analysis.races.race_reports import Findings
from gradviz.analysis.tables.executions import NodeNumbers
from gradviz.analysis.tables.worker_parts import whole_of
from gradviz.trace.format.kept_events import keeps_all_of_streams
from gradviz.trace.format.model import Trace

#: Maximum number of findings told; all are counted.
MAX_FINDINGS: Final = 50

_Rules: TypeAlias = tuple[Callable[[Trace], Iterator[CostlyFinding]], ...]

#: Rules that hold whatever else is missing.
_ALWAYS: Final[_Rules] = (
    deep_nesting,
    slow_hooks,
    accumulate_stream_mismatch,
    host_wait,
    graphs_pile_up,
)

#: Rules that need all events of each pass; some may be lost, others be left out.
_OF_WHOLE_PASSES: Final[_Rules] = (branches_in_turn, one_leaf)

#: Rules that say that something never happened: not if it may not be in the trace.
_IF_COMPLETE: Final[_Rules] = (
    graph_never_run,
    graph_held_over,
    graph_grows,
    needless_retain_graph,
    needless_create_graph,
)


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """Advice on a program's gains.

    Attributes:
        findings: The most costly in time first, then the most costly in memory.
        num_omitted: Number of further findings.
        not_looked_for: Rules that need data that is not in the trace.
    """

    findings: tuple[CostlyFinding, ...]
    num_omitted: int
    not_looked_for: tuple[AdviceRule, ...]


def build_advice(trace: Trace, streams: Findings) -> Advice:
    """Look for everything that a program would gain by.

    Args:
        trace: The trace.
        streams: Findings about the order of its streams (`stream_order`).
    """
    scope = trace.header.scope
    is_complete = trace.losses.is_complete and scope.has_whole_passes
    rules, left = _ALWAYS, _OF_WHOLE_PASSES + _IF_COMPLETE
    if scope.has_whole_passes:
        rules, left = rules + _OF_WHOLE_PASSES, _IF_COMPLETE
    if is_complete and scope.schedule is None:
        rules, left = rules + _IF_COMPLETE, ()
    found = [
        msgspec.structs.replace(one, task=whole_of(trace, one.task))
        for rule in rules
        for one in rule(trace)
    ]
    names: list[Any] = [rule.__name__ for rule in left]
    if is_complete and keeps_all_of_streams(scope):
        found += needless_wait(trace, streams)
    else:
        names.append(needless_wait.__name__)
    every = sorted(
        _merged(found), key=lambda one: (-(one.cost_ns or 0), -(one.cost_bytes or 0))
    )
    told = every[:MAX_FINDINGS]
    numbers = NodeNumbers(trace, [one.task for one in told if one.node >= 0])
    return Advice(
        findings=tuple(
            msgspec.structs.replace(one, index=numbers.of(one.task, one.node))
            for one in told
        ),
        num_omitted=max(len(every) - MAX_FINDINGS, 0),
        not_looked_for=tuple(names),
    )


def _merged(findings: Sequence[CostlyFinding]) -> Iterator[CostlyFinding]:
    """Yield the findings about several passes at one line as one."""
    groups: dict[tuple[str, str, str, str], list[CostlyFinding]] = {}
    for one in findings:
        key = one.rule, one.location, one.name, one.detail
        groups.setdefault(key, []).append(one)
    for same in groups.values():
        costs = [one.cost_ns for one in same if one.cost_ns is not None]
        yield msgspec.structs.replace(
            max(same, key=lambda one: one.cost_ns or 0),
            times=sum(one.times for one in same),
            cost_ns=sum(costs) if costs else None,
        )
