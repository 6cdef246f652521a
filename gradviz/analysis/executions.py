"""Which node ran when, and on which thread: events of single nodes joined into rows.

Order, timeline, graph and summary all start from here.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from gradviz.trace.model import NodeDefinition, Trace

#: A node in a pass: a node runs at most once in each.
Key = tuple[int, int]

#: How the evaluation of a node ended. One that was reached only for its gradient to be
#: captured did not run; one whose end the trace does not have is unfinished.
NodeStatus: TypeAlias = Literal["completed", "captured", "failed", "unfinished"]


class Execution(msgspec.Struct, frozen=True, gc=False):
    """One node that a thread began to evaluate in one pass.

    Attributes:
        task: The pass.
        node: The node.
        thread: Where it ran.
        start_ns: When, on the trace's clock.
        end_ns: When its gradients had been handed on, or when it raised; None if the
            trace has neither.
        waited_ns: From its push to its pop; None if the trace lacks one of them.
        status: How its evaluation ended.
        error: What it raised, empty if it did not.
    """

    task: int
    node: int
    thread: int
    start_ns: int
    end_ns: int | None
    waited_ns: int | None
    status: NodeStatus
    error: str

    @property
    def took_ns(self) -> int | None:
        """From its start to its end, however it ended; None if the trace lacks it."""
        return None if self.end_ns is None else self.end_ns - self.start_ns


def executions(trace: Trace, tasks: Sequence[int] | None = None) -> list[Execution]:
    """Every node that was started, in order of start.

    A node of which only the capture is known counts as started and ended with it.

    Args:
        trace: The trace.
        tasks: The passes wanted, None for all.
    """
    starts = _Rows(trace, "node_started", tasks)
    ends = _times(trace, "node_completed", tasks)
    pushed = _times(trace, "task_pushed", tasks)
    popped = _times(trace, "task_popped", tasks)
    failed = _times(trace, "node_failed", tasks)
    errors = _errors(trace, tasks)
    captures = _Rows(trace, "capture_taken", tasks)
    # What ran has let go of the gradients that it was given.
    only_captured = set(captures.keys)
    only_captured.difference_update(_Rows(trace, "buffer_freed", tasks).keys)

    def one(key: Key, thread: int, start_ns: int, end_ns: int | None) -> Execution:
        push, pop = pushed.get(key), popped.get(key)
        waited = None if push is None or pop is None else max(pop - push, 0)
        status: NodeStatus = "unfinished"
        if key in failed:
            status, end_ns = "failed", failed[key]
        elif end_ns is not None:
            status = "captured" if key in only_captured else "completed"
        error = errors.get(key, "")
        return Execution(*key, thread, start_ns, end_ns, waited, status, error)

    found = [
        (seq, one(key, thread, t_ns, ends.get(key)))
        for seq, key, thread, t_ns in starts
    ]
    seen = set(starts.keys)
    for seq, key, thread, t_ns in captures:
        if key not in seen:
            seen.add(key)
            found.append((seq, one(key, thread, t_ns, t_ns)))
    found.sort(key=lambda pair: pair[0])
    return [execution for _, execution in found]


def definition(trace: Trace, node: int) -> NodeDefinition:
    """What is known of a node; a stand-in named ``?`` if its definition is lost."""
    return trace.nodes.get(node) or NodeDefinition(
        id=node,
        name="?",
        sequence_nr=0,
        topological_nr=0,
        device="?",
        edges=(),
        inputs=(),
    )


class _Rows:
    """The rows of one kind of event that belong to `tasks`, in order of seq."""

    def __init__(self, trace: Trace, kind: str, tasks: Sequence[int] | None) -> None:
        columns = trace.columns[kind]
        wanted = slice(None) if tasks is None else np.isin(columns["task"], tasks)
        task, node, seq, thread, t_ns = (
            columns[name][wanted].tolist()
            for name in ("task", "node", "seq", "thread", "t_ns")
        )
        self.keys: list[Key] = list(zip(task, node, strict=True))
        self._rest = (seq, thread, t_ns)

    def __iter__(self) -> "zip[tuple[int, Key, int, int]]":
        seq, thread, t_ns = self._rest
        return zip(seq, self.keys, thread, t_ns, strict=True)


def _times(trace: Trace, kind: str, tasks: Sequence[int] | None) -> Mapping[Key, int]:
    return {key: t_ns for _, key, _, t_ns in _Rows(trace, kind, tasks)}


def _errors(trace: Trace, tasks: Sequence[int] | None) -> Mapping[Key, str]:
    columns = trace.columns["node_failed"]
    wanted = slice(None) if tasks is None else np.isin(columns["task"], tasks)
    task, node, error = (
        columns[name][wanted].tolist() for name in ("task", "node", "error")
    )
    texts = (trace.strings[index] for index in error)
    return dict(zip(zip(task, node, strict=True), texts, strict=True))
