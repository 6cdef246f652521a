"""Reports of PyTorch's passes to their listeners.

Each is one call of `Probe.rows_reported`, for an interrupt may come between two.
"""

import math
import time
import weakref
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any

from gradviz.pytorch.nodes.seen_node import Listeners, SeenGraph, SeenNode
from gradviz.pytorch.reconstruction.seen_queues import ReplayedPass
from gradviz.pytorch.reconstruction.watched_pass import WatchedPass
from gradviz.trace.events import (
    DependenciesCounted,
    NotFinite,
    TaskBegun,
    TaskCompleted,
    TaskFailed,
    Unexplained,
)
from gradviz.trace.format.row_layouts import Inferred
from gradviz.trace.probe import UNKNOWN_BYTES, Checked, Probe, Tee


def listeners_of(listener: Probe) -> Listeners:
    """Return references to the listener, or to each of several."""
    every = listener.listeners if isinstance(listener, Tee) else (listener,)
    return tuple(map(weakref.ref, every))


def tell_saved(listener: Probe, graph: SeenGraph) -> None:
    """Report the saved bytes of a graph's nodes, to each listener only new ones."""
    listeners = listeners_of(listener)
    for node, saved in graph.untold.items():
        before, node.told_to = node.told_to, listeners
        own, of_leaves, shared, is_known = saved
        for reference in listeners:
            if reference in before or (one := reference()) is None:
                continue
            if node.stack:
                one.stack_taken(node.id, node.stack)
            if own:
                one.tensor_saved(node.id, own)
            if not is_known:
                one.tensor_saved(node.id, UNKNOWN_BYTES)
            if of_leaves or shared:
                one.saved_elsewhere(node.id, of_leaves, shared)


def tell_begun(
    one: WatchedPass, num_roots: int, call: Mapping[str, Any], line: str
) -> None:
    """Report the start of a pass.

    Args:
        one: The pass, which has its graph if there is one.
        num_roots: Number of its roots.
        call: Arguments that PyTorch was called with, by name.
        line: The line of the program that did.
    """
    dependencies = {} if one.graph is None else one.graph.dependencies
    num_edges = sum(dependencies.values())
    begun_ns = time.perf_counter_ns()
    begun: list[int | str] = [
        begun_ns,
        one.task,
        -1,
        -1 if one.parent is None else one.parent.task,
        one.depth,
        -1,
        num_roots,
        len(call.get("inputs") or ()),
        bool(call.get("keep_graph")),
        bool(call.get("create_graph")),
        line,
    ]
    counted: list[int | str] = [
        begun_ns + 1,
        one.task,
        -1,
        len(dependencies),
        num_edges,
    ]
    rows: dict[Hashable, list[int | str]] = {
        TaskBegun: begun,
        Inferred(DependenciesCounted): counted,
    }
    one.listener.rows_reported(one.thread, one.thread_name, rows)
    one.is_begun = True


def note_losses(one: WatchedPass, losses: Iterable[Any], torch: Any) -> None:  # noqa: ANN401
    """Note a loss that is not finite, if it is one number on the host.

    A loss on a device would have to be waited for. Inside of `vmap` and the like it has
    no number.
    """
    for index, loss in enumerate(losses):
        if (
            type(loss) is torch.Tensor
            and loss.device.type == "cpu"
            and loss.is_floating_point()
            and loss.numel() == 1
        ):
            try:
                number = loss.item()
            except RuntimeError:
                return
            if not math.isfinite(number):
                note_not_finite(one, (-1, Checked.LOSS, index, math.isnan(number)))
                return


def note_not_finite(
    one: WatchedPass,
    finding: tuple[int, Checked, int, bool],
    given: tuple[bool, str, str] = (False, "", ""),
    name: str = "",
) -> None:
    """Keep a finding on values with its pass, to be reported at its end.

    Args:
        one: The pass.
        finding: The node, the kind of value, which one, and if it is a NaN.
        given: If the inputs had an infinity, and their magnitudes.
        name: Of the node.
    """
    row: list[int | str] = [time.perf_counter_ns(), one.task, *finding, *given]
    row += [-1, "", name, ""]
    one.not_finite.append(row)


def tell_not_finite(one: WatchedPass) -> None:
    """Report the non-finite values found in a pass."""
    rows, one.not_finite = one.not_finite, []
    for row in rows:
        one.listener.rows_reported(one.thread, one.thread_name, {NotFinite: row})


def tell_placed(passes: Iterable[ReplayedPass], placed: Collection[SeenNode]) -> None:
    """Report nodes whose place differs from the earlier report, for each pass."""
    if not placed:
        return
    for replay in passes:
        graph = replay.about.graph
        nodes = [] if graph is None else [one for one in graph.nodes if one in placed]
        if nodes:
            made_at = {node.id: node.line for node in nodes if node.line}
            replay.about.listener.nodes_placed(nodes, made_at)


def tell_seen(passes: Iterable[ReplayedPass]) -> None:
    """Report the events of reconstructed passes."""
    for replay in passes:
        for thread, reported in replay.rows.items():
            rows = dict(reported.by_kind())
            replay.about.listener.rows_reported(thread.number, thread.name, rows)


def tell_unseen(one: WatchedPass) -> None:
    """Report the end of an unseen pass, with the reason."""
    rows: dict[Hashable, list[int | str]] = {}
    if problem := one.problem or one.unseen:
        rows[Unexplained] = [one.called_ns, one.task, -1, problem]
    if one.error:
        rows[TaskFailed] = [one.returned_ns, one.task, -1, one.error]
    else:
        rows[TaskCompleted] = [one.returned_ns, one.task, -1]
    one.listener.rows_reported(one.thread, one.thread_name, rows)
