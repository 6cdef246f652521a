"""The origin of a NaN or an infinity: the first op, and the first gradient."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gradviz.autograd.gradient import grad
from gradviz.diagnostics.graph_walk import (
    describe,
    nodes_from,
    not_finite,
    saved_by,
    stack_of,
)
from gradviz.diagnostics.origins import remember_origins
from gradviz.diagnostics.own_tensors import check_own_tensor, is_pytorchs
from gradviz.engine.graph.basic_nodes import AccumulateGrad
from gradviz.engine.graph.node import Node, PostHook
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.dispatch import creation_hooks
from gradviz.ops.variables.saved_variable import SECOND_BACKWARD
from gradviz.ops.variables.variable import Variable
from gradviz.tensors.tensor import Tensor


class Culprit(NamedTuple):
    """The node that made the first NaN or infinity; prints as text.

    Attributes:
        node: The node, as ``LogBackward0 #12 in encoder.0``.
        what: ``NaN`` or ``infinity``.
        where: The op's result, or the number of the gradient.
        stack: The lines of the program that made the node; empty if not known.
    """

    node: str
    what: str
    where: str
    stack: str

    def __str__(self) -> str:
        stack = self.stack or (
            "  (not known: give find_nan a function that computes the loss, or compute "
            "it under gv.diagnostics.remember_origins())\n"
        )
        return f"{self.what} in {self.where} of {self.node}, made by\n{stack}"


class NanReport(NamedTuple):
    """Result of `find_nan`; prints as text.

    Attributes:
        forward: The first op whose result is not finite; None if all are.
        backward: The first node with finite inputs whose gradients are not finite;
            None if there is none.
        notes: Parts that could not be checked, with the reason.
    """

    forward: Culprit | None
    backward: Culprit | None
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.forward is not None or self.backward is not None

    def __str__(self) -> str:
        lines = [
            f"forward: {self.forward or 'every value is finite'}",
            f"backward: {self.backward or 'every gradient is finite'}",
            *self.notes,
        ]
        return "\n".join(line.rstrip("\n") for line in lines)


def find_nan(loss: Tensor | Callable[..., Any], *args: Any) -> NanReport:  # noqa: ANN401 - the function's
    """Find the first op, and the first gradient, that is NaN or infinite.

    Runs a backward, with all its hooks, which changes no ``.grad`` and keeps the graph.

    Args:
        loss: A function that computes the loss: then every result is looked at, and
            stacks are known. Or the loss itself: then the forward is judged by what
            it has saved.
        *args: Arguments of the function.

    Raises:
        TypeError: There is no loss that is a tensor of gradviz's.
        Exception: Whatever the function, or the backward, raises.
    """
    if isinstance(loss, Variable):
        return _report(loss, _first_saved(nodes_from([loss.grad_fn])), ())
    if is_pytorchs(loss):
        check_own_tensor(loss, "find_nan")
    first: list[Culprit] = []

    def look(node: Node, results: Sequence[Any], values: Sequence[Any]) -> None:
        del values
        for index, result in enumerate(results):
            if not first and (what := not_finite(result)):
                where = "the result" if len(results) == 1 else f"result {index}"
                first.append(_culprit(node, what, where))

    with creation_hooks.observing(look), remember_origins():
        result = loss(*args)
    if is_pytorchs(result):
        check_own_tensor(result, "find_nan")
    if not isinstance(result, Tensor):
        raise TypeError(
            f"find_nan: the function returned {type(result).__name__}, expected the "
            f"loss as a Tensor"
        )
    return _report(result, first[0] if first else None, ())


def _report(loss: Tensor, forward: Culprit | None, notes: tuple[str, ...]) -> NanReport:
    if loss.grad_fn is None:
        return NanReport(forward, None, (*notes, "the loss has no graph"))
    try:
        return NanReport(forward, _first_gradient(loss), notes)
    except RuntimeError as error:
        if str(error) != SECOND_BACKWARD:
            raise
        note = (
            "the backward was not looked at: its graph has been freed. Call find_nan "
            "before backward, or after backward(retain_graph=True)"
        )
        return NanReport(forward, None, (*notes, note))


def _first_saved(nodes: Sequence[Node]) -> Culprit | None:
    """Return the first op with a result that is not finite, if it was saved."""
    makers: dict[Node, str] = {}
    for node in nodes:
        for array, maker, _ in saved_by(node):
            what = not_finite(array)
            if what and maker is not None:
                makers[maker] = what
    if not makers:
        return None
    first = min(makers, key=lambda one: one.id)
    return _culprit(first, makers[first], "the result")


def _first_gradient(loss: Tensor) -> Culprit | None:
    """The first node that makes gradients which are not finite of those that are."""
    first: list[Culprit] = []
    nodes = nodes_from([loss.grad_fn])
    before: dict[Node, tuple[PostHook, ...]] = {}
    for node in nodes:
        hooks = node.hooks_to_add_to()
        before[node] = hooks.post
        hooks.post += (_look_at_gradients(node, first),)
    leaves: list[Any] = [
        node.leaf for node in nodes if isinstance(node, AccumulateGrad)
    ]
    try:
        grad(_scalar(loss), leaves, retain_graph=True, allow_unused=True)
    finally:
        for node, post in before.items():
            if node.hooks is not None:
                node.hooks.post = post
    return first[0] if first else None


def _look_at_gradients(node: Node, first: list[Culprit]) -> PostHook:
    def hook(outputs: Sequence[Gradient], inputs: Sequence[Gradient]) -> None:
        if first or any(map(not_finite, inputs)):
            return
        for index, output in enumerate(outputs):
            if what := not_finite(output):
                first.append(_culprit(node, what, f"the gradient of input {index}"))
                return

    return hook


def _scalar(loss: Tensor) -> Tensor:
    return loss if loss.numel() == 1 else loss.sum()


def _culprit(node: Node, what: str, where: str) -> Culprit:
    return Culprit(describe(node), what, where, stack_of(node))
