"""Running a program's backward passes again in the order of a trace."""

from gradviz.analysis.tables.executions import definition, execution_columns
from gradviz.analysis.tables.passes import pass_parts
from gradviz.engine.tasks.policies import Recorded, Step
from gradviz.trace.format.model import Trace


def recorded(trace: Trace) -> Recorded:
    """A schedule that repeats the passes of a trace, for ``Engine(schedule=...)``.

    The first pass that the engine begins repeats the first of the trace, and so on. A
    pass whose graph is another one than recorded, or that did not complete when it was
    recorded, runs in PyTorch's order; `Recorded.deviations` says which and why.
    """
    return Recorded(_steps(trace, one.task, one.status) for one in pass_parts(trace))


def _steps(trace: Trace, task: int, status: str) -> tuple[Step, ...]:
    """The nodes of one GraphTask in the order in which they ran; none if it failed."""
    if status != "completed":
        return ()
    nodes = execution_columns(trace, [task]).node.tolist()
    ranks = {node: rank for rank, node in enumerate(sorted(nodes))}
    return tuple(Step(ranks[node], definition(trace, node).name) for node in nodes)
