"""First values that were not finite, of a trace that was recorded with checks.

Without checks a trace still knows the losses that PyTorch's passes began with, where
they are on the CPU.
"""

from typing import Final, Literal, TypeAlias

import msgspec
import numpy as np

from gradviz.analysis.tables.executions import NodeNumbers, definition
from gradviz.analysis.tables.worker_parts import whole_of
from gradviz.analysis.training.steps import find_steps
from gradviz.trace.events import label
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Table
from gradviz.trace.probe import Checked

#: Maximum number told; all are counted.
MAX_TOLD: Final = 100

_MAX_TEXT: Final = 300

#: Kind of value that is not finite; see `gradviz.trace.probe.Checked`.
ValueKind: TypeAlias = Literal["result", "gradient", "sum", "loss", "parameter"]


class NotFiniteValue(msgspec.Struct, frozen=True, kw_only=True):
    """A first value that is not finite: of a forward, or of a pass.

    Attributes:
        what: Kind of value.
        value: ``nan`` or ``infinity``.
        position: Index of the result, gradient or loss, from 0.
        step: The training step; None if it is in none.
        task: The pass, -1 in the forward.
        node: The node, -1 if none is known.
        index: The place of that node in the execution order of `task`; None if it did
            not run there.
        name: Of the op, the node, or the parameter.
        module: The part of a model that it happened in, empty outside a model.
        location: The line of the program that called the op, empty if not known.
        smallest: The least magnitude among the finite, nonzero elements of the inputs;
            None if not known.
        largest: The greatest one, likewise.
        given_infinity: True if the inputs had an infinity.
    """

    what: ValueKind
    value: Literal["nan", "infinity"]
    position: int
    step: int | None
    task: int
    node: int
    index: int | None
    name: str
    module: str
    location: str
    smallest: float | None
    largest: float | None
    given_infinity: bool


def count_not_finite(trace: Trace) -> int:
    """Return how many values were found that are not finite."""
    return trace.columns["not_finite"].num_rows


def not_finite_values(
    trace: Trace, limit: int = MAX_TOLD, node: int | None = None
) -> tuple[NotFiniteValue, ...]:
    """Return the first values that are not finite, in the order in which they came.

    Args:
        trace: The trace.
        limit: Return so many at most.
        node: Return those of this node only; None for all.
    """
    rows = trace.columns["not_finite"]
    if node is not None:
        rows = rows.at(np.flatnonzero(rows.narrow("node") == node))
    rows = rows.at(slice(limit))
    if not rows.num_rows:
        return ()
    steps = _steps_of(trace, rows)
    tasks = [task for task in rows["task"].tolist() if task >= 0]
    numbers = NodeNumbers(trace, tasks)
    names = ("task", "node", "what", "index", "is_nan", "given_infinity")
    texts = ("smallest", "largest", "module", "name", "location")
    every = zip(rows.rows(*names), rows.rows(*texts), steps, strict=True)
    return tuple(
        _value(trace, numbers, ints, [trace.strings[one] for one in places], step)
        for ints, places, step in every
    )


def _value(
    trace: Trace,
    numbers: NodeNumbers,
    ints: tuple[int, ...],
    texts: list[str],
    step: int | None,
) -> NotFiniteValue:
    task, node, what, position, is_nan, given_infinity = ints
    smallest, largest, module, name, location = texts
    known = definition(trace, node) if node >= 0 else None
    subject: ValueKind = label(Checked(what))  # type: ignore[assignment]
    return NotFiniteValue(
        what=subject,
        value="nan" if is_nan else "infinity",
        position=position,
        step=step,
        task=whole_of(trace, task) if task >= 0 else -1,
        node=node,
        index=numbers.of(task, node) if task >= 0 and node >= 0 else None,
        name=shortened(name, _MAX_TEXT),
        module=shortened(module or (known.module if known else ""), _MAX_TEXT),
        location=shortened(location or (known.location if known else ""), _MAX_TEXT),
        smallest=_number(smallest),
        largest=_number(largest),
        given_infinity=bool(given_infinity),
    )


def _number(text: str) -> float | None:
    """Return the number that a text of a trace stands for; None of anything else."""
    try:
        return float(text)
    except ValueError:
        return None


def _steps_of(trace: Trace, rows: Table) -> list[int | None]:
    """Return the training step of each row, None outside of all."""
    found = find_steps(trace).steps
    threads, steps = rows["thread"].tolist(), []
    for t_ns, thread in zip(rows["t_ns"].tolist(), threads, strict=True):
        within = [one for one in found if one.begin_ns <= t_ns <= one.end_ns]
        own = [one for one in within if one.thread == thread] or within
        steps.append(own[0].number if own else None)
    return steps
