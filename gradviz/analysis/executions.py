"""Which node ran when, and on which thread: events of single nodes joined into rows.

Order, timeline, graph and summary all start from here.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from gradviz.trace.model import NodeDefinition, Trace

#: A node in a pass: a node runs at most once in each.
Key = tuple[int, int]


class Execution(msgspec.Struct, frozen=True, gc=False):
    """One node that a thread began to evaluate in one pass.

    Attributes:
        task: The pass.
        node: The node.
        thread: Where it ran.
        start_ns: When, on the trace's clock.
        end_ns: When its gradients had been handed on; None if it never came to that.
        waited_ns: From its push to its pop; None if the trace lacks one of them.
        failed_ns: When it raised, None if it did not.
    """

    task: int
    node: int
    thread: int
    start_ns: int
    end_ns: int | None
    waited_ns: int | None
    failed_ns: int | None


def executions(trace: Trace, tasks: Sequence[int] | None = None) -> list[Execution]:
    """Every node that was started, in order of start.

    A node that was only reached for its gradient to be captured, and did not run,
    counts as started and ended at that moment.

    Args:
        trace: The trace.
        tasks: The passes wanted, None for all.
    """
    starts = _Rows(trace, "node_started", tasks)
    ends = _times(trace, "node_completed", tasks)
    pushed = _times(trace, "task_pushed", tasks)
    popped = _times(trace, "task_popped", tasks)
    failed = _times(trace, "node_failed", tasks)

    def one(key: Key, thread: int, start_ns: int, end_ns: int | None) -> Execution:
        push, pop = pushed.get(key), popped.get(key)
        waited = None if push is None or pop is None else max(pop - push, 0)
        return Execution(*key, thread, start_ns, end_ns, waited, failed.get(key))

    found = [
        (seq, one(key, thread, t_ns, ends.get(key)))
        for seq, key, thread, t_ns in starts
    ]
    seen = set(starts.keys)
    for seq, key, thread, t_ns in _Rows(trace, "capture_taken", tasks):
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
