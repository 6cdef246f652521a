"""The tooltip of a node: all that is known of it, a line each."""

from typing import Final

from gradviz.analysis.graphs.backward_graph import MAX_CALLS, GraphNode
from gradviz.render.words.text import (
    MAX_TITLE,
    clean,
    count,
    duration,
    numbered,
    shape,
    shorten,
)
from gradviz.trace.events import MAX_SEQUENCE_NR
from gradviz.trace.format.clock import SHORT_NS
from gradviz.trace.format.model import InputDefinition

#: More are not written out.
MAX_INPUTS: Final = 16
MAX_MEMBERS: Final = 16
MAX_NAMES: Final = 6


def tooltip(node: GraphNode) -> str:
    """Return all facts about `node`. Lines are clean, but not yet escaped."""
    if node.saved_by is not None:
        saved_by = numbered("", node.saved_by, None)
        lines = [f"{node.name}, a tensor that {saved_by} saved"]
        lines += [_metadata(one) for one in node.inputs if one is not None]
        return "\n".join(map(clean, lines))
    lines = [headline(node, node.name), f"device {node.device}"]
    lines += [*_origin(node), *_run(node)]
    if node.copies > 1:
        lines.append(f"one node, drawn {node.copies} times")
    return "\n".join(map(clean, [*lines, *_members(node)]))


def headline(node: GraphNode, name: str) -> str:
    """Return a node by `name` and number, or a count, and its missing parts."""
    if node.members:
        text = f"{name}, {count(node.num_nodes, 'node')}"
    else:
        text = numbered(name, node.id, node.order)
    if node.omitted_edges:
        text += f", {count(node.omitted_edges, 'edge')} left out"
    return text


def _for_others(node: GraphNode) -> list[str]:
    """Return the node's meaning for other passes, and its self time."""
    lines = [f"{calls(node)}, which --pass draws"] if node.calls else []
    if node.is_critical:
        lines.append("on the critical path")
    elif node.slack_ns is not None:
        lines.append(f"could have run {duration(node.slack_ns)} longer")
    return lines


def calls(node: GraphNode) -> str:
    """The passes that it called: ``called pass 9``, ``called passes 9, 10``."""
    more = ", …" if len(node.calls) == MAX_CALLS else ""
    noun = "pass" if len(node.calls) == 1 else "passes"
    return f"called {noun} {', '.join(map(str, node.calls))}{more}"


def _origin(node: GraphNode) -> list[str]:
    """Return the facts of the forward pass."""
    lines = []
    if not node.members:
        last = node.sequence_nr == MAX_SEQUENCE_NR
        sequence_nr = "max" if last else node.sequence_nr
        lines.append(f"sequence_nr {sequence_nr}, topological_nr {node.topological_nr}")
    lines += [
        f"input {number}: {_metadata(one)}"
        for number, one in enumerate(node.inputs[:MAX_INPUTS])
        if one is not None
    ]
    if len(node.inputs) > MAX_INPUTS:
        lines.append("and more inputs")
    if node.location:
        lines.append(f"created at {node.location}")
    if node.module:
        lines.append(f"made by {node.module}")
    if node.repeats > 1:
        lines.append(f"comes {node.repeats:,} times, one after the other")
    if node.num_parameters:
        names = [name for leaf in node.leaves for name in leaf.parameters[:1]]
        more = ", …" if len(names) > MAX_NAMES else ""
        names = [shorten(name, MAX_TITLE) for name in names[:MAX_NAMES]]
        numbers = count(node.num_parameters, "parameter")
        lines.append(f"leads to {numbers}: {', '.join(names)}{more}")
    if node.parameters:
        lines.append(f"adds up the gradient of {' = '.join(node.parameters)}")
    return lines


def _metadata(one: InputDefinition) -> str:
    dtype, device = shorten(one.dtype, MAX_TITLE), shorten(one.device, MAX_TITLE)
    return f"{shape(one.shape)} {dtype} on {device}"


def _order(node: GraphNode) -> list[str]:
    """Return when it ran, or would."""
    if node.is_predicted:
        return [f"would run as number {node.order}"]
    if node.order is None:
        return ["did not run"]
    started = f"started {duration(node.start_ns or 0)} after the first node"
    if node.orders is not None and node.orders[0] < node.orders[1]:
        first, last = node.orders
        thread = f"beginning on thread {node.thread}"
        return [f"numbers {first} to {last}, {thread}", started]
    what = "captured" if node.status == "captured" else "ran"
    return [f"{what} as number {node.order} on thread {node.thread}", started]


def _run(node: GraphNode) -> list[str]:
    """Return its actual or predicted run in the backward pass."""
    lines = _order(node)
    if node.took_ns is not None:
        ends = ", from the first start to the last end" if node.members else ""
        lines.append(f"took {duration(node.took_ns)}{ends}")
    if node.members and node.busy_ns is not None:
        lines.append(f"its nodes took {duration(node.busy_ns)} together")
    if node.thread_time_ns is not None and (node.took_ns or 0) >= SHORT_NS:
        lines.append(f"its thread was running for {duration(node.thread_time_ns)}")
    if node.processor_wait_ns:
        lines.append(f"waited for a processor: {duration(node.processor_wait_ns)}")
    if node.usual_ns is not None and node.num_alike > 1:
        lines.append(
            f"usually {duration(node.usual_ns)}, median of "
            f"{count(node.num_alike, 'pass')} of this shape"
        )
    lines += _for_others(node)
    if node.waited_ns is not None:
        lines.append(f"queued for {duration(node.waited_ns)}")
    if node.status in {"failed", "unfinished"}:
        lines.append(f"{node.status}: {node.error}" if node.error else node.status)
    return lines


def _members(node: GraphNode) -> list[str]:
    """Return the nodes that it stands for."""
    lines = [
        numbered(shorten(one.name, MAX_TITLE), one.id, one.order)
        + (", did not run" if one.order is None else "")
        for one in node.members[:MAX_MEMBERS]
    ]
    more = len(node.members) - MAX_MEMBERS
    return [*lines, f"and {count(more, 'more node')}"] if more > 0 else lines
