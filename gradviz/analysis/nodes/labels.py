"""Labels: words about nodes that select and group them."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from gradviz.analysis.tables.executions import MAX_TEXT, STATUSES, Executions
from gradviz.analysis.tables.worker_parts import worker_parts
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column

#: Its class; the part of a model that made it, the parameter that it accumulates into
#: (all its names), and the line; the length of its longest
#: path to a leaf; where it ran, and of a distributed pass on which worker; how that
#: ended.
Label: TypeAlias = Literal[
    "name",
    "module",
    "parameter",
    "line",
    "depth",
    "device",
    "thread",
    "worker",
    "status",
]

LABELS: Final[tuple[Label, ...]] = get_args(Label)

#: Former names of labels.
FORMER_LABELS: Final[Mapping[str, Label]] = {"source": "line"}

#: Labels that are numbers: these are equal or not, and sorted by size.
_NUMBERS: Final = frozenset({"depth", "thread", "worker"})

_WILD: Final = frozenset("*?[")


class Labels(NamedTuple):
    """The labels of some nodes.

    Attributes:
        texts: Each once, sorted.
        place: Of each node which of them it has.
    """

    texts: tuple[str, ...]
    place: Column


def labels(trace: Trace, runs: Executions, of: Label) -> Labels:
    """The labels of one kind of some nodes; ``?`` where the trace has lost it."""
    match of:
        case "depth":
            texts, place = _written(trace.nodes.topological_nrs(runs.node))
        case "thread":
            texts, place = _written(runs.thread)
        case "worker":
            texts, place = _workers(trace, runs)
        case "status":
            texts, place = list(STATUSES), runs.status
        case "line":
            texts, place = trace.nodes.names(runs.node, "location")
        case "parameter":
            texts, place = trace.nodes.names(runs.node, "parameter")
            texts = [one.replace("\n", ", ") for one in texts]
        case _:
            texts, place = trace.nodes.names(runs.node, of)
    texts = [shortened(one, MAX_TEXT) for one in texts]
    ordered = sorted(set(texts), key=_by_size if of in _NUMBERS else str)
    number = {text: place for place, text in enumerate(ordered)}
    return Labels(
        tuple(ordered), np.array([number[one] for one in texts], np.int64)[place]
    )


def are_meant(
    trace: Trace, runs: Executions, filters: Sequence[tuple[Label, str]]
) -> npt.NDArray[np.bool_]:
    """Return which nodes have all of some labels; see `is_meant`."""
    meant = np.ones(len(runs.node), np.bool_)
    for of, pattern in filters:
        found = labels(trace, runs, of)
        same = [is_meant(text, pattern, of) for text in found.texts]
        meant &= np.array(same, np.bool_)[found.place]
    return meant


def is_meant(text: str, pattern: str, of: str) -> bool:
    """Return whether a pattern matches a label.

    A number matches itself, a text with ``*``, ``?`` or ``[...]`` a whole label, and
    any other one a part of it.
    """
    if _WILD.intersection(pattern):
        return fnmatchcase(text, pattern)
    return text == pattern if of in _NUMBERS else pattern in text


def _written(numbers: Column) -> tuple[list[str], Column]:
    different, place = np.unique(numbers, return_inverse=True)
    return list(map(str, different.tolist())), place


def _workers(trace: Trace, runs: Executions) -> tuple[list[str], Column]:
    """The worker of each, nothing of a pass that was not distributed."""
    parts = worker_parts(trace)
    tasks, place = np.unique(runs.task, return_inverse=True)
    texts = [
        str(parts[task].worker) if task in parts else "" for task in tasks.tolist()
    ]
    return texts, place


def _by_size(text: str) -> int:
    return int(text or -1)
