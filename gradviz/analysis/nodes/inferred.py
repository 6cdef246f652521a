"""Parts of a pass that were inferred, and events that do not fit the rules.

Passes of an engine that is watched from outside: see `trace.events.Event.inferred`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import different


class UnexplainedEvent(NamedTuple):
    """An event that does not fit, or could not be seen; see `Unexplained`.

    Attributes:
        task: The pass.
        node: The node it is about, -1 for none.
        text: Description of the event.
    """

    task: int
    node: int
    text: str

    def __str__(self) -> str:
        return f"pass {self.task}: {self.text}"


def inferred_passes(trace: Trace) -> frozenset[int]:
    """Return the passes with inferred pops."""
    popped = trace.columns["task_popped"]
    inferred = popped.narrow("inferred") > 0
    return frozenset(different(popped.at(inferred).narrow("task")).tolist())


def unexplained_events(trace: Trace, limit: int) -> Iterator[UnexplainedEvent]:
    """Yield the first unexplained events, with the names of their nodes."""
    told = trace.columns["unexplained"].at(slice(limit))
    for task, node, text in told.rows("task", "node", "text"):
        name = f"{trace.nodes[node].name} ({node}): " if node in trace.nodes else ""
        yield UnexplainedEvent(task, node, name + trace.strings[text])
