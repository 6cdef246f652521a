"""Leaves with gradients accumulated on another stream than they were made on."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import numpy as np

from gradviz.analysis.memory.finding import CostlyFinding
from gradviz.analysis.tables.executions import definition
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened

_MAX_STREAM: Final = 100


def accumulate_stream_mismatch(trace: Trace) -> Iterator[CostlyFinding]:
    """Streams of AccumulateGrad nodes that wait for the stream of the gradient.

    An AccumulateGrad belongs to the stream that was current when it was made: by the
    first forward that used its leaf, or by whoever holds it, such as DDP. As long as
    anything keeps it alive later forwards use it too, under whatever stream they run.
    Then each pass waits there, and a CUDA graph cannot be captured.
    Source: torch/csrc/autograd/input_buffer.cpp, InputBuffer::add.
    """
    columns = trace.columns
    waits = columns["stream_waited"]
    waits = waits.at((waits.narrow("task") >= 0) & (waits.narrow("node") >= 0))
    names, place = trace.nodes.names(waits["node"])
    is_leaf = np.array([name == "AccumulateGrad" for name in names], np.bool_)
    waits = waits.at(is_leaf[place])
    marks = columns["event_recorded"].rows("event", "stream")
    made_on = {event: stream for event, stream in marks}  # noqa: C416 - typed so
    groups: dict[tuple[int, int, int], list[tuple[int, int, int]]] = defaultdict(list)
    rows = waits.rows("task", "node", "stream", "event", "producer", "inferred")
    for task, node, stream, event, producer, inferred in rows:
        if made_on.get(event, stream) != stream:
            key = node, stream, made_on[event]
            groups[key].append((task, producer, inferred))
    started = columns["node_started"]
    for (node, *streams), found in groups.items():
        tasks = [task for task, _, _ in found]
        ran = started["task"][started.narrow("node") == node]
        waiting, awaited = (
            shortened(trace.strings[one], _MAX_STREAM) for one in streams
        )
        known = definition(trace, node)
        yield CostlyFinding(
            rule="accumulate_stream_mismatch",
            certainty="likely" if all(one for _, _, one in found) else "certain",
            location=definition(trace, found[-1][1]).location,
            times=len(set(tasks)),
            task=tasks[-1],
            node=node,
            name=known.name,
            module=known.module or next(iter(known.parameters), ""),
            count=int((ran < min(tasks)).sum()),
            detail=f"{waiting} for {awaited}",
        )
