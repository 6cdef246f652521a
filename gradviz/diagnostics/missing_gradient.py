"""Reasons why the ``.grad`` of a tensor is None."""

import enum
from collections.abc import Sequence
from typing import Final, NamedTuple

from gradviz.autograd.gradient import grad
from gradviz.diagnostics.graph_walk import describe, made_at, nodes_from
from gradviz.diagnostics.origins import origin_of
from gradviz.diagnostics.own_tensors import check_own_tensor
from gradviz.engine.graph.node import Node, PostHook
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.variables.saved_variable import SECOND_BACKWARD
from gradviz.tensors.tensor import Tensor


class Reason(enum.Enum):
    """A reason for a missing gradient."""

    THERE_IS_ONE = "there is one"
    NOT_REQUIRED = "not required"
    UNDER_NO_GRAD = "made under no_grad"
    NOT_A_LEAF = "not a leaf"
    NOT_USED = "not used"
    NOT_REACHED = "not reached"
    NOT_NEEDED = "not needed"
    UNDEFINED = "undefined"


class Answer(NamedTuple):
    """An answer of `why_none`; prints as its text.

    Attributes:
        reason: The reason.
        text: Text that says what happened, and what to do.
    """

    reason: Reason
    text: str

    def __repr__(self) -> str:
        return self.text

    def __str__(self) -> str:
        return self.text


_LINE_HINT: Final = " (gv.diagnostics.remember_origins() would tell its line)"


def why_none(tensor: Tensor, loss: Tensor | None = None) -> Answer:
    """Say why the ``.grad`` of a tensor is None.

    Args:
        tensor: The tensor.
        loss: Tensor that backward was called on, or will be. With it the answer can
            tell more; if its graph has not been freed, a backward is run to see where
            the gradient goes, with all its hooks, which changes no ``.grad``.

    Returns:
        The reason, and a text that says what to do.

    Raises:
        TypeError: It is not a tensor of gradviz's, or `loss` is none.
    """
    for one in (tensor,) if loss is None else (tensor, loss):
        check_own_tensor(one, "why_none")
    if tensor._grad is not None:
        return Answer(Reason.THERE_IS_ONE, "its .grad is not None")
    if not tensor.needs_grad:
        return _not_required(tensor)
    node = tensor.grad_fn
    if node is not None and not tensor.retains_grad:
        return Answer(
            Reason.NOT_A_LEAF,
            f"it is not a leaf: {_origin(node)} made it. Backward fills .grad of "
            f"leaves only; call .retain_grad() on it before backward, or ask "
            f"gv.autograd.grad(loss, tensor)",
        )
    target = node or tensor.used_accumulator()
    if target is None:
        return Answer(
            Reason.NOT_USED,
            "no graph that is alive leads to it: since it was made no op has used it "
            "with gradients enabled, or what came of that is gone. Is the model "
            "computed from this very tensor, and not from a copy, a .detach() of it, "
            "or under no_grad()?",
        )
    return _unreached(target) if loss is None else _on_the_way(tensor, target, loss)


def _not_required(tensor: Tensor) -> Answer:
    dtype = tensor.array.dtype
    origin = origin_of(tensor)
    if origin is not None and origin.under_no_grad:
        return Answer(
            Reason.UNDER_NO_GRAD,
            f"it does not require a gradient: it was made under no_grad(), at {origin}",
        )
    if dtype.kind not in "fc":
        why = f"its elements are of type {dtype}, and only floats have gradients"
    elif getattr(tensor.array, "base", None) is not None:
        why = (
            "it shares its memory with another tensor or array: it is a .detach(), "
            ".data or .numpy() of it, or a view made under no_grad()"
        )
    else:
        why = (
            "it is a leaf made without requires_grad=True, or an op made it under "
            "no_grad(), or from tensors that require none"
        )
    made = (
        "; compute it under gv.diagnostics.remember_origins() to know which, and where"
        if origin is None
        else f"; made at {origin}, where gradients were enabled"
    )
    return Answer(Reason.NOT_REQUIRED, f"it does not require a gradient: {why}{made}")


def _unreached(target: Node) -> Answer:
    return Answer(
        Reason.NOT_REACHED,
        f"a graph that is alive leads to it ({describe(target)}), but no backward "
        f"brought it a gradient since its .grad was None: none was run, or it began "
        f"elsewhere, or it was asked for other gradients only. "
        f"why_none(tensor, loss) can tell",
    )


def _on_the_way(tensor: Tensor, target: Node, loss: Tensor) -> Answer:
    """Trace a gradient on its way from `loss`: return how far it comes."""
    nodes = nodes_from([loss.grad_fn])
    if target not in nodes:
        return Answer(
            Reason.NOT_REACHED,
            f"the loss was not computed from it: {_what_there_is(nodes)}",
        )
    stops: list[Node] = []
    try:
        gradient = _watched_gradient(tensor, loss, _ancestors(target, nodes), stops)
    except RuntimeError as error:
        if str(error) != SECOND_BACKWARD:
            raise
        return Answer(
            Reason.NOT_NEEDED,
            "a backward has run through the graph of the loss, and left no gradient "
            "here: it was asked for others only (backward(inputs=...) or "
            "autograd.grad), or .grad was set to None afterwards (zero_grad), or an op "
            "on the way returned no gradient. Call why_none before backward, or after "
            "backward(retain_graph=True), to know which",
        )
    if gradient is None:
        where = f": {_origin(stops[0])} returned None for it" if stops else ""
        return Answer(
            Reason.UNDEFINED,
            f"the loss was computed from it, but no gradient comes through{where}",
        )
    return Answer(
        Reason.NOT_NEEDED,
        "a backward from the loss gives it a gradient, but none has run since its "
        ".grad was None, or it was asked for other gradients only "
        "(backward(inputs=...), autograd.grad)",
    )


def _what_there_is(nodes: Sequence[Node]) -> str:
    """Describe a graph that does not have the wanted leaf."""
    if not nodes:
        return "the loss has no graph at all"
    num_leaves = sum(not node.next_edges for node in nodes)
    return (
        f"its graph has {len(nodes)} nodes, {num_leaves} of them leaves, and it is "
        f"none of these. Somewhere on the way is a .detach(), an .item(), a conversion "
        f"to NumPy, or a block under no_grad()"
    )


def _watched_gradient(
    tensor: Tensor, loss: Tensor, leads_to: set[Node], stops: list[Node]
) -> Gradient:
    """The gradient of `tensor`; `stops` gets the nodes that return None towards it."""
    before: dict[Node, tuple[PostHook, ...]] = {}
    for node in leads_to:
        hooks = node.hooks_to_add_to()
        before[node] = hooks.post
        hooks.post += (_watch(node, leads_to, stops),)
    try:
        (gradient,) = grad(loss.sum(), [tensor], retain_graph=True, allow_unused=True)
    finally:
        for node, post in before.items():
            if node.hooks is not None:
                node.hooks.post = post
    return gradient


def _watch(node: Node, leads_to: set[Node], stops: list[Node]) -> PostHook:
    def hook(outputs: Sequence[Gradient], _: Sequence[Gradient]) -> None:
        for edge, output in zip(node.next_edges, outputs, strict=False):
            if output is None and edge.node in leads_to:
                stops.append(node)

    return hook


def _ancestors(target: Node, nodes: list[Node]) -> set[Node]:
    """Those of `nodes` from which a gradient can get to `target`, itself included."""
    before: dict[Node, list[Node]] = {}
    for node in nodes:
        for edge in node.next_edges:
            after = edge.node
            if after is not None:
                before.setdefault(after, []).append(node)
    found = {target}
    pending = [target]
    while pending:
        for node in before.get(pending.pop(), ()):
            if node not in found:
                found.add(node)
                pending.append(node)
    return found


def _origin(node: Node) -> str:
    line = made_at(node)
    return f"{describe(node)}{line or _LINE_HINT}"
