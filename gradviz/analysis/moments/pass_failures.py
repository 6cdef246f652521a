"""Failures of passes that earlier events explain.

Three errors of autograd say what is wrong and not where it began: a graph whose saved
tensors an earlier pass has released, a tensor that was changed in place after it was
saved, and a loss that requires no gradient. The trace has what came before.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, Literal, TypeAlias

import msgspec
import numpy as np

from gradviz.analysis.nodes.addresses import nodes_of
from gradviz.analysis.nodes.missing_gradients import (
    ModuleCall,
    forward_calls,
)
from gradviz.analysis.nodes.parameters import every_parameter
from gradviz.analysis.tables.executions import MAX_TEXT, NodeNumbers, definition
from gradviz.analysis.tables.passes import Pass, passes
from gradviz.trace.events import MAX_SEQUENCE_NR
from gradviz.trace.format.model import NodeDefinition, Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.probe import Tracking

#: Kind of error of a failed pass.
FailureKind: TypeAlias = Literal["released", "changed in place", "no gradient"]

#: Maximum number of places told where a graph was carried over, and of steps of
#: optimizers.
MAX_LISTED: Final = 3

#: Texts of the errors, which are those of PyTorch.
#: Source: torch/csrc/autograd/saved_variable.cpp; torch/csrc/autograd/engine.cpp.
_KINDS: Final[tuple[tuple[str, FailureKind], ...]] = (
    ("backward through the graph a second time", "released"),
    ("modified by an inplace operation", "changed in place"),
    ("does not require grad and does not have a grad_fn", "no gradient"),
)

#: Nodes of operations that save their result, and not what they were given.
#: Source: tools/autograd/derivatives.yaml, formulas with `result`.
_SAVE_THEIR_RESULT: Final = (
    *("Cumprod", "Exp", "Hardtanh", "LogSoftmax", "Logcumsumexp", "Logsumexp"),
    *("Reciprocal", "Relu", "Rsqrt", "Sigmoid", "Softmax", "Sqrt", "Tan"),
)

#: The operation that made the tensor that was changed, and the shape of that.
_ORIGIN: Final = re.compile(r"which is output \d+ of (\w+),")
_SHAPE: Final = re.compile(r"\[(?:\S+ )?\[([\d, ]*)\]\]")


class MadeNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node, and the line and the module that made it; empty where unknown.

    `index` is its place in the order in which the nodes of the pass ran, None if it did
    not run.
    """

    node: int
    index: int | None
    name: str
    location: str
    module: str


class Carrier(msgspec.Struct, frozen=True, kw_only=True):
    """A node of this pass alone, made with the result of one of the earlier pass."""

    user: MadeNode
    used: MadeNode


#: Ground on which a line is told: the change was recorded; the node is the last one of
#: a tensor that is alive, with the shape, type and version of the changed one; or the
#: node is the last one that was given the tensor, and may have changed it.
Ground: TypeAlias = Literal["recorded", "alike", "last user"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A line that changed the tensor in place, or may have.

    Attributes:
        operation: The node; empty if the change was recorded, and not its node.
        location: The line; empty if unknown.
        ground: The ground on which it is told.
    """

    operation: str
    location: str
    ground: Ground


class OptimizerStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of an optimizer after the forward and before the pass.

    Attributes:
        optimizer: The name of its class.
        parameters: Parameters of it that have the shape of the tensor, the first ones.
    """

    optimizer: str
    parameters: tuple[str, ...]


class PassFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The reason for which a pass failed.

    Attributes:
        kind: Kind of the error.
        task: The pass.
        called_at: The line that called it; empty if unknown.
        node: The node that raised; None if none did, or it is unknown.
        released_by: The pass that released the node's saved tensors; None if the error
            is another one, or the trace has no such pass.
        released_at: The line that called that pass.
        is_same_graph: True if this pass began with nodes of that one.
        carriers: Nodes at which the graph was carried over, the first ones.
        changes: Lines that changed the tensor in place, or may have.
        steps: Steps of optimizers that changed their parameters in place meanwhile.
        result: The outermost module that was called last, and what it returned, as
            `Tracking` tells it; None if no call of one is known.
        result_of: The module.
        module: The last module inside of that whose result required a gradient.
        disabled: The first one inside of that which ran under ``no_grad``.
        location: The line that called what ran under ``no_grad``; empty if unknown.
        num_parameters: Number of parameters of `result_of`.
        num_frozen: Number of these that required no gradient.
    """

    kind: FailureKind
    task: int
    called_at: str
    node: MadeNode | None = None
    released_by: int | None = None
    released_at: str = ""
    is_same_graph: bool = False
    carriers: tuple[Carrier, ...] = ()
    changes: tuple[Change, ...] = ()
    steps: tuple[OptimizerStep, ...] = ()
    result: str | None = None
    result_of: str = ""
    module: str | None = None
    disabled: str | None = None
    location: str = ""
    num_parameters: int = 0
    num_frozen: int = 0


def kind_of(error: str) -> FailureKind | None:
    """Return which of the errors a text is; None if it is another one."""
    return next((kind for text, kind in _KINDS if text in error), None)


def explain_failure(trace: Trace, task: int) -> PassFailure | None:
    """Return why a pass failed; None if it did not, or with another error."""
    failed = trace.columns["task_failed"].having("task", [task])
    (about,) = passes(trace, tasks=[task])
    kind = kind_of(about.error)
    if kind is None or not failed.num_rows:
        return None
    node = int(failed.narrow("node")[0])
    numbers = NodeNumbers(trace, [task])
    made = None if node < 0 else _made(trace, numbers, task, node)
    found = PassFailure(kind=kind, task=task, called_at=about.location, node=made)
    if kind == "released":
        return _released(trace, numbers, found, node)
    if kind == "changed in place":
        return msgspec.structs.replace(
            found,
            changes=tuple(_changes(trace, found, about.error))[:MAX_LISTED],
            steps=tuple(_steps(trace, about))[:MAX_LISTED],
        )
    return _without_gradient(trace, found)


def _released(
    trace: Trace, numbers: NodeNumbers, found: PassFailure, node: int
) -> PassFailure:
    begun = trace.columns["task_begun"]
    keeps = {*begun.at(begun.narrow("keep_graph") != 0).narrow("task").tolist()}
    ran = trace.columns["node_started"].having("node", [node])
    before = [
        task
        for task in ran.narrow("task").tolist()
        if task != found.task and task not in keeps
    ]
    if not before:
        return found
    (earlier,) = passes(trace, tasks=before[-1:])
    old = set(nodes_of(trace, before[-1]))
    mine = nodes_of(trace, found.task)
    return msgspec.structs.replace(
        found,
        released_by=earlier.task,
        released_at=earlier.location,
        is_same_graph=all(one in old for one in mine),
        carriers=tuple(
            Carrier(
                user=_made(trace, numbers, found.task, user),
                used=_made(trace, numbers, found.task, used),
            )
            for user, used in islice(_carried(trace, mine, old), MAX_LISTED)
        ),
    )


def _carried(trace: Trace, mine: list[int], old: set[int]) -> Iterator[tuple[int, int]]:
    """Yield edges from nodes that only this pass has to nodes of the earlier one."""
    new = np.array([one for one in mine if one not in old], np.int64)
    edges = trace.nodes.edges(new)
    user = np.repeat(new, np.diff(edges.ends, prepend=0))
    is_old = np.isin(edges.consumer, np.array(sorted(old), np.int64))
    for one, other in zip(
        user[is_old].tolist(), edges.consumer[is_old].tolist(), strict=True
    ):
        if definition(trace, other).sequence_nr != MAX_SEQUENCE_NR:  # parameters stay
            yield one, other


def _changes(trace: Trace, found: PassFailure, error: str) -> Iterator[Change]:
    """Yield lines that changed the tensor after the node that failed had saved it."""
    if found.node is None:
        return
    saved_at = definition(trace, found.node.node).sequence_nr
    table = trace.columns["tensor_changed"].having("task", [found.task])
    rows = table.rows("operation", "location", "sequence_nr")
    told = False
    for operation, location, number in rows:
        if number > saved_at:
            told = True
            name = shortened(trace.strings[operation], MAX_TEXT)
            yield Change(
                operation=name,
                location=shortened(trace.strings[location], MAX_TEXT),
                ground="alike" if name else "recorded",
            )
    if not told:
        yield from _last_user(trace, found.task, found.node.node, error)


def _last_user(trace: Trace, task: int, node: int, error: str) -> Iterator[Change]:
    """Yield the node of a pass that was given the changed tensor last.

    An operation in place gives its tensor another node, so what uses the tensor later
    is given the result of that. Hence no other use comes after it.

    Args:
        trace: The trace.
        task: The pass.
        node: The node that failed.
        error: The error, which says the shape, and the node that made the tensor.
    """
    origin, shape = _ORIGIN.search(error), _SHAPE.search(error)
    if origin is None or shape is None:
        return
    sizes = tuple(int(one) for one in shape[1].split(",") if one.strip())
    failed = definition(trace, node)
    is_own_result = failed.name.startswith(_SAVE_THEIR_RESULT)
    given = {(node, 0)} if is_own_result else set(_given(failed))
    users = [
        user
        for user in map(trace.nodes.get, nodes_of(trace, task))
        if user is not None
        and failed.sequence_nr < user.sequence_nr < MAX_SEQUENCE_NR
        and not given.isdisjoint(_given(user))
        and user.inputs
        and user.inputs[0] is not None
        and user.inputs[0].shape == sizes
        and (is_own_result or user.name.startswith(origin[1]))
    ]
    for last in sorted(users, key=lambda one: one.sequence_nr)[-1:]:
        yield Change(operation=last.name, location=last.location, ground="last user")


def _given(node: NodeDefinition) -> Iterator[tuple[int, int]]:
    """Yield the results that a node was given: each node, and which result of it."""
    return (edge for edge in node.edges if edge[0] >= 0)


def _steps(trace: Trace, about: Pass) -> Iterator[OptimizerStep]:
    """Yield steps of optimizers since the forward of a pass began."""
    calls = forward_calls(trace).before(about.task)
    since = calls[0].begin_ns if calls else 0
    shape = _SHAPE.search(about.error)
    sizes = [] if shape is None else [int(one) for one in shape[1].split(",") if one]
    alike = {str(tuple(sizes)), str(tuple(reversed(sizes)))}
    held = trace.columns["parameter_held"]
    table = trace.columns["optimizer_begun"]
    for t_ns, name in table.rows("t_ns", "name"):
        if not since <= t_ns < about.begin_ns:
            continue
        called = trace.strings[name]
        parameters = [
            shortened(trace.strings[parameter], MAX_TEXT)
            for optimizer, parameter, text in held.rows(
                "optimizer", "parameter", "shape"
            )
            if trace.strings[optimizer].partition("#")[0] == called
            and trace.strings[text] in alike
        ]
        if parameters:
            yield OptimizerStep(
                optimizer=shortened(called, MAX_TEXT),
                parameters=tuple(dict.fromkeys(parameters))[:MAX_LISTED],
            )


def _without_gradient(trace: Trace, found: PassFailure) -> PassFailure:
    calls = forward_calls(trace).before(found.task)
    outer = [one for one in calls if not _is_inside(one, calls)]
    if not outer or outer[-1].results is Tracking.UNKNOWN:
        return found
    last = outer[-1]
    inside = [
        one
        for one in calls
        if last.begin_ns < one.begin_ns and one.end_ns <= last.end_ns
    ]
    tracked = [one for one in inside if one.results is Tracking.TRACKED]
    disabled = [one for one in inside if one.results is Tracking.DISABLED]
    parameters = [
        one
        for one in every_parameter(trace)
        if any(name.startswith(f"{last.module}.") for name in one.names)
    ]
    frozen = [
        one
        for one in parameters
        if forward_calls(trace).is_frozen(found.task, one.names, one.definition)
    ]
    return msgspec.structs.replace(
        found,
        result=last.results.name.lower(),
        result_of=shortened(last.module, MAX_TEXT),
        module=shortened(tracked[-1].module, MAX_TEXT) if tracked else None,
        disabled=shortened(disabled[0].module, MAX_TEXT) if disabled else None,
        location=(disabled or [last])[0].location,
        num_parameters=len(parameters),
        num_frozen=len(frozen),
    )


def _is_inside(one: ModuleCall, calls: Sequence[ModuleCall]) -> bool:
    return any(
        other.begin_ns < one.begin_ns
        and one.end_ns <= other.end_ns
        and other.thread == one.thread
        for other in calls
    )


def _made(trace: Trace, numbers: NodeNumbers, task: int, node: int) -> MadeNode:
    known = definition(trace, node)
    return MadeNode(
        node=node,
        index=numbers.of(task, node),
        name=known.name,
        location=known.location,
        module=known.module,
    )
