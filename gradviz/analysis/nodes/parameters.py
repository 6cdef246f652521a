"""Parameters of models, and the passes that reached them.

A pass reached a parameter if the pass has an event about the parameter's
AccumulateGrad. Parameters that no pass reached are known from the models that the
recorder has defined.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from gradviz.analysis.nodes.missing_gradients import MissingGradient, forward_calls
from gradviz.analysis.tables.executions import MAX_NAMES, MAX_TEXT
from gradviz.analysis.tables.worker_parts import numbers_of
from gradviz.trace.format.model import ParameterDefinition, Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Narrow, different

SCHEMA: Final = "gradviz.unreached_parameter"
VERSION: Final = 1

#: Kinds of events by which a pass has to do with a node.
TELLING: Final = ("node_started", "task_pushed", "gradient_buffered", "capture_taken")

#: Maximum number of passes listed; all are counted.
MAX_LISTED: Final = 10


class KnownParameter(msgspec.Struct, frozen=True):
    """A parameter that a trace knows by name.

    Attributes:
        names: Its names, in each model that has it.
        definition: Its definition in one of these models; None if the recorder defined
            none of them.
        nodes: Its AccumulateGrad nodes; none if no pass reached it.
    """

    names: tuple[str, ...]
    definition: ParameterDefinition | None
    nodes: tuple[int, ...]


class UnreachedParameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter that a pass did not reach.

    Attributes:
        task: The pass.
        parameters: The names of the parameter.
        definition: Its shape, and whether it required a gradient, when its model was
            first seen; None if the recorder did not define the model.
        reached_by: The passes that did reach it, the first ones; `num_reached_by` all.
        num_reached_by: Number of passes that did.
        num_passes: Number of passes in the trace.
        num_unseen: Number of these that have no nodes in the trace.
        missing: Reason that the pass did not reach it.
    """

    task: int
    parameters: tuple[str, ...]
    definition: ParameterDefinition | None
    reached_by: tuple[int, ...]
    num_reached_by: int
    num_passes: int
    num_unseen: int
    missing: MissingGradient | None = None


def find_parameters(trace: Trace, address: str) -> list[KnownParameter]:
    """Return the parameters of a trace that an address means.

    Args:
        trace: The trace.
        address: The name of a parameter, or the end of several names. Parameters of
            exactly this name come alone.
    """
    found = _parameters(trace, lambda names: is_called(names, address))
    return [one for one in found if address in one.names] or found


def every_parameter(trace: Trace) -> list[KnownParameter]:
    """Return the parameters that a trace knows by name, in their models' order."""
    return _parameters(trace, bool)


def _parameters(
    trace: Trace, is_meant: Callable[[Sequence[str]], bool]
) -> list[KnownParameter]:
    nodes = np.array(list(trace.nodes), np.int64)
    texts, which = trace.nodes.names(nodes, "parameter")
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(texts)))[:-1]
    by_place = np.split(nodes[order], ends)
    reached: dict[tuple[str, ...], list[int]] = {}
    for text, own in zip(texts, by_place, strict=False):
        names = tuple(names_in(text))
        if is_meant(names):
            reached.setdefault(names, []).extend(own.tolist())
    defined = {
        one.names: one
        for model in trace.models.values()
        for one in model.parameters
        if is_meant(one.names)
    }
    definitions = {name: one for names, one in defined.items() for name in names}
    nodes_of = {name: own for names, own in reached.items() for name in names}
    return [
        KnownParameter(
            names,
            next((definitions[one] for one in names if one in definitions), None),
            tuple(
                dict.fromkeys(node for one in names for node in nodes_of.get(one, ()))
            ),
        )
        for names in _united([*defined, *reached])
    ]


def passes_that_reached(trace: Trace, parameter: KnownParameter) -> tuple[int, ...]:
    """Return the passes that reached a parameter, in the order in which they began."""
    return _passes(
        trace,
        [
            trace.columns[kind].having("node", parameter.nodes).narrow("task")
            for kind in TELLING
        ],
    )


def unreached(trace: Trace, task: int, parameter: KnownParameter) -> UnreachedParameter:
    """Describe a parameter that pass `task` did not reach."""
    tables = [trace.columns[kind] for kind in TELLING]
    reached_by = passes_that_reached(trace, parameter)
    seen = _passes(trace, [one.narrow("task") for one in tables])
    passes = numbers_of(trace, trace.tasks)
    return UnreachedParameter(
        task=task,
        parameters=parameter.names[:MAX_NAMES],
        definition=parameter.definition,
        reached_by=reached_by[:MAX_LISTED],
        num_reached_by=len(reached_by),
        num_passes=len(passes),
        num_unseen=len({*passes}.difference(seen)),
        missing=forward_calls(trace).why(task, parameter.names, parameter.definition),
    )


def may_be_unlisted(trace: Trace, address: str) -> bool:
    """Tell if an address may be the name of a parameter that the trace does not list.

    Older traces list only the parameters that a pass reached.
    """
    name, dot, path = address.partition(".")
    if not dot or not all(part.replace("_", "a").isalnum() for part in path.split(".")):
        return False
    model = trace.models.get(name)
    return model is None or len(model.parameters) < model.num_parameters


def names_in(text: str) -> list[str]:
    """Return the names of a parameter in the text that the definition of a node has.

    There are several if models share the parameter.
    """
    some = text.split("\n")[:MAX_NAMES]
    return [shortened(one, MAX_TEXT) for one in some if one]


def is_called(names: Iterable[str], address: str) -> bool:
    """Return whether one of a parameter's names is an address, or ends in it."""
    return any(f".{one}".endswith(f".{address}") for one in names)


def document_of(one: UnreachedParameter) -> dict[str, Any]:
    """Return ``gradviz explain --json``'s output for a parameter without a node."""
    return {"schema": SCHEMA, "version": VERSION, **msgspec.to_builtins(one)}


def _united(groups: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Put those together that have a name in common."""
    found: dict[int, dict[str, None]] = {}
    place_of: dict[str, int] = {}
    for number, group in enumerate(groups):
        others = sorted({place_of[name] for name in group if name in place_of})
        united: dict[str, None] = {}
        for other in others:
            united |= found.pop(other)
        place = min([number, *others])
        found[place] = united | dict.fromkeys(group)
        place_of.update(dict.fromkeys(found[place], place))
    return [tuple(found[place]) for place in sorted(found)]


def _passes(trace: Trace, tasks: Iterable[Narrow]) -> tuple[int, ...]:
    """The passes of some tasks, in the order in which they began."""
    some = {task for column in tasks for task in different(column).tolist()}
    return numbers_of(trace, [task for task in trace.tasks if task in some])
