"""Running a program's backward passes again in the order of a trace."""

from gradviz.analysis.order import execution_order
from gradviz.analysis.passes import passes
from gradviz.engine.policies import Recorded, Step
from gradviz.trace.model import Trace


def recorded(trace: Trace) -> Recorded:
    """A schedule that repeats the passes of a trace, for ``Engine(schedule=...)``.

    The first pass that the engine begins repeats the first of the trace, and so on. A
    pass whose graph is another one than recorded, or that did not complete when it was
    recorded, runs in PyTorch's order; `Recorded.deviations` says which and why.
    """
    return Recorded(_steps(trace, one.task, one.status) for one in passes(trace))


def _steps(trace: Trace, task: int, status: str) -> tuple[Step, ...]:
    """The nodes of one pass in the order in which they ran; none if it failed."""
    if status != "completed":
        return ()
    rows = execution_order(trace, task)
    created = sorted(row.node for row in rows)
    ranks = {node: rank for rank, node in enumerate(created)}
    return tuple(Step(ranks[row.node], row.name) for row in rows)
