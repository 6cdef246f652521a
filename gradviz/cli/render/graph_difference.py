"""The difference that ``gradviz render graph --diff`` draws."""

from gradviz.analysis.changes.node_changes import pass_changes
from gradviz.analysis.changes.union_graph import union_graph
from gradviz.analysis.graphs.backward_graph import MAX_SIMPLIFIED, Graph, build_graph
from gradviz.cli.console.notes import working
from gradviz.cli.console.other_trace import one_pass, parts_of, read_compared
from gradviz.errors import UserError
from gradviz.render.graph.difference import Difference
from gradviz.render.words.change_text import unrelated
from gradviz.trace.format.model import Trace


def difference_of(graph: Graph, trace: Trace, task: str, other: str) -> Difference:
    """Compare a pass with one of another trace.

    Args:
        graph: That of the pass.
        trace: Its trace.
        task: The pass of the other trace, if `other` does not say it.
        other: The other trace, as ``OTHER[:PASS]``.

    Raises:
        UserError: The other one cannot be read, or both have too little in common.
    """
    path, which = parts_of(other)
    after = read_compared(path)
    other_task = one_pass(after, which or task)
    with working(f"comparing with {path}"):
        changes = pass_changes(trace, graph.task, after, other_task)
        if not changes.comparison.is_related:
            raise UserError(unrelated(changes))
        drawn = build_graph(after, other_task, MAX_SIMPLIFIED)
        return Difference(changes, union_graph(graph, drawn, changes))
