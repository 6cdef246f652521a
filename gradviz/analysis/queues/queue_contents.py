"""Contents of the ready queues at one moment of a backward pass."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np

from gradviz.analysis.moments.engine_state import History
from gradviz.analysis.moments.moment import QueuedTask
from gradviz.analysis.queues.queue_activity import extent, queue_name
from gradviz.analysis.tables.executions import NodeNumbers, definition
from gradviz.analysis.tables.passes import with_descendants
from gradviz.analysis.tables.window import event_at
from gradviz.analysis.tables.worker_parts import whole_of
from gradviz.trace.format.model import Trace

SCHEMA: Final = "gradviz.queue_contents"
VERSION: Final = 1


class NumberedTask(QueuedTask, frozen=True, kw_only=True, gc=False):
    """A task in a ready queue, with the numbers of the nodes that it names.

    Attributes:
        index: The place of `node` in the execution order of the pass; None if it did
            not run, and of a wake-up.
        pushed_by_index: That of `pushed_by`.
    """

    index: int | None
    pushed_by_index: int | None


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of the ready queues at one moment.

    Attributes:
        t_ns: Time of that moment, on the trace's clock.
        after_ns: That is so long after the first event of the passes asked for.
        queues: By id, each with its tasks in the order in which they would be popped.
        names: Of queues, by id, and of nodes, by id.
    """

    t_ns: int
    after_ns: int
    queues: dict[int, tuple[NumberedTask, ...]]
    queue_names: dict[int, str]
    node_names: dict[int, str]


def contents_at(trace: Trace, tasks: Sequence[int], after_ns: int) -> Contents:
    """Return the contents of all queues so long after the first of these passes began.

    Raises:
        NoSuchMomentError: The trace ends before.
    """
    history = History(trace)
    numbers = NodeNumbers(trace)
    origin, _ = extent(trace, np.array(with_descendants(trace, tasks), np.int64))
    queues = {
        queue: tuple(
            NumberedTask(
                **{**msgspec.structs.asdict(one), "task": whole_of(trace, one.task)},
                index=numbers.of(one.task, one.node),
                pushed_by_index=numbers.of(one.task, one.pushed_by),
            )
            for one in queued
        )
        for queue, queued in history.queues_at(
            event_at(history.t_ns, origin, after_ns, tasks[0])
        ).items()
    }
    nodes = {one.node for queue in queues.values() for one in queue if one.node >= 0}
    return Contents(
        t_ns=origin + after_ns,
        after_ns=after_ns,
        queues=queues,
        queue_names={queue: queue_name(trace, queue) for queue in queues},
        node_names={node: definition(trace, node).name for node in sorted(nodes)},
    )


def document_of(contents: Contents) -> dict[str, Any]:
    """Return the output of ``gradviz show queues --at TIME --json``."""
    document = msgspec.to_builtins(contents, str_keys=True)
    return {"schema": SCHEMA, "version": VERSION, **document}
