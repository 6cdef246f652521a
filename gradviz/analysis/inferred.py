"""What of a pass nobody saw, and what of it does not fit the rules.

Passes of an engine that is watched from outside: see `trace.events.Event.inferred`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from gradviz.trace.model import Trace
from gradviz.trace.table import different


class Doubt(NamedTuple):
    """Something that does not fit, or could not be seen; see `Unexplained`.

    Attributes:
        task: The pass.
        node: The node it is about, -1 for none.
        text: What it is.
    """

    task: int
    node: int
    text: str

    def __str__(self) -> str:
        return f"pass {self.task}: {self.text}"


def inferred_passes(trace: Trace) -> frozenset[int]:
    """The passes of which it was not seen what left a queue, and when."""
    popped = trace.columns["task_popped"]
    inferred = popped.narrow("inferred") > 0
    return frozenset(different(popped.at(inferred).narrow("task")).tolist())


def doubts(trace: Trace, limit: int) -> Iterator[Doubt]:
    """The first things that are unexplained, with the names of their nodes."""
    told = trace.columns["unexplained"].at(slice(limit))
    for task, node, text in told.rows("task", "node", "text"):
        name = f"{trace.nodes[node].name} ({node}): " if node in trace.nodes else ""
        yield Doubt(task, node, name + trace.strings[text])
