"""Attachment of a custom function's outputs to the graph."""

import warnings
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from gradviz.autograd.function_context import FunctionCtx
from gradviz.autograd.function_node import FunctionNode
from gradviz.engine.graph.node import Edge
from gradviz.ops.dispatch.in_place import count_change, rebase
from gradviz.ops.variables.variable import Value, Variable, detached, variable
from gradviz.ops.variables.view import Creation, View, record_view

_RETURNED_AND_SAVED: Final = (
    "An input that has been returned as-is as output is being saved for backward. This "
    "is not supported if you override setup_context. You should return and save a view "
    "of the input instead, e.g. with x.view_as(x) or setup ctx inside the forward "
    "function itself."
)
_DIRTY_NOT_RETURNED: Final = (
    "Some elements marked as dirty during the forward method were not returned as "
    "output. The inputs that are modified inplace must all be outputs of the Function."
)
_DIRTY_NO_INPUT: Final = (
    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that "
    "have been mutated should be passed to ctx.mark_dirty()."
)
_DIRTY_VIEW_OF_SEVERAL: Final = (
    "If your Function modifies inplace an input that is a view of another Tensor, your "
    "Function cannot return more than one Tensor. This is not supported by the current "
    "autograd engine. You should either make sure the input is not a view (using "
    ".clone() for example) or make your Function only return one Tensor (potentially "
    "splitting it into two Functions: one doing the inplace that returns a single "
    "Tensor and a second one that does the other operations). You can ask on the forum "
    "https://discuss.pytorch.org/ if you need help to do this change."
)


def attach(
    ctx: FunctionCtx,
    node: FunctionNode | None,
    inputs: Sequence[object],
    outputs: Sequence[Any],
    *,
    has_setup: bool,
) -> tuple[Any, ...]:
    """Return the result of `apply`: the outputs, tensors with their edges.

    An input that is returned unchanged becomes another tensor on the same memory, so
    that it can have another place in the graph.

    Args:
        ctx: The context after the forward.
        node: Receiver of the gradients of the outputs; None if none are recorded.
        inputs: The arguments of the forward.
        outputs: The results of the forward.
        has_setup: True if ``setup_context`` filled the context.

    Raises:
        RuntimeError: A tensor marked as dirty was not returned, or is a leaf that needs
            gradients.
        TypeError: A marked or saved value is not a tensor.

    Source: torch/csrc/autograd/custom_function.cpp, _process_backward_mode_ad.
    """
    marks = _Marks(
        given=_identities(inputs),
        dirty=_identities(_tensors(ctx.dirty_tensors, "mark_dirty can only accept")),
        fixed=_identities(
            _tensors(ctx.non_differentiable, "mark_non_differentiable only accepts")
        ),
        saved=_identities(ctx.to_save or ()) if has_setup else frozenset(),
    )
    if node is not None:
        node.complete(outputs, [_is_fixed(one, marks) for one in outputs])
    attached = tuple(
        _attached(output, index, node, marks, num_outputs=len(outputs))
        if isinstance(output, Variable)
        else output
        for index, output in enumerate(outputs)
    )
    if not marks.dirty <= _identities(outputs):
        raise RuntimeError(_DIRTY_NOT_RETURNED)
    _forbid_changes(
        [one for one in attached if id(one) not in marks.dirty],
        is_one_of_several=sum(_goes_to(node, one) for one in attached) > 1,
    )
    if node is not None:
        node.save(attached)
    own = vars(ctx)
    for name in ("to_save", "dirty_tensors", "non_differentiable"):
        own.pop(name, None)
    return attached


class _Marks(NamedTuple):
    """Marks of tensors, by the tensors' identities.

    Attributes:
        given: Arguments of the forward.
        dirty: Changed in place by the forward.
        fixed: Not differentiable.
        saved: Saved by a ``setup_context``.
    """

    given: frozenset[int]
    dirty: frozenset[int]
    fixed: frozenset[int]
    saved: frozenset[int]


def _identities(values: Sequence[object]) -> frozenset[int]:
    return frozenset(id(one) for one in values if isinstance(one, Variable))


def _tensors(values: Sequence[object] | None, who: str) -> Sequence[object]:
    for index, one in enumerate(values or ()):
        if not isinstance(one, Variable):
            raise TypeError(
                f"{who} variables, but argument {index} is of type {type(one).__name__}"
            )
    return values or ()


def _attached(
    output: Variable,
    index: int,
    node: FunctionNode | None,
    marks: _Marks,
    *,
    num_outputs: int,
) -> Variable:
    """Return an output at its place in the graph, or outside of it."""
    is_input = id(output) in marks.given
    edge = None if node is None or _is_fixed(output, marks) else Edge(node, index)
    if id(output) in marks.dirty:
        if edge is None:
            count_change(output)
            return output
        return _changed(output, edge, is_input=is_input, num_outputs=num_outputs)
    if is_input and id(output) in marks.saved:
        raise RuntimeError(_RETURNED_AND_SAVED)
    if edge is None:
        return _outside(output, is_input=is_input)
    return _placed(_view_of(output) if is_input else output, edge)


def _is_fixed(output: object, marks: _Marks) -> bool:
    """Return whether an output never has a gradient."""
    return not isinstance(output, Variable) or (
        id(output) in marks.fixed or output.array.dtype.kind not in "fc"
    )


def _outside(output: Variable, *, is_input: bool) -> Variable:
    if is_input:
        return _view_of(output) if not output.needs_grad else _detached(output)
    if not isinstance(output.viewed, View):  # may view such a tensor
        output.edge, output.needs_grad = None, False
    return output


def _placed(output: Variable, edge: Edge) -> Variable:
    output.edge, output.needs_grad = edge, True
    if isinstance(output.viewed, View):
        output.viewed.version = output.viewed.base.shared_version().value
    return output


def _view_of(x: Variable) -> Variable:
    """Return another tensor on the same memory, with a place of its own."""
    view = _detached(x)
    record_view(x, view, (_itself, (), None))
    return view


def _detached(x: Variable) -> Variable:
    tensor: Variable = detached(x)
    return tensor


def _itself(x: Value) -> Value:
    return x


def _goes_to(node: FunctionNode | None, one: object) -> bool:
    return isinstance(one, Variable) and one.edge is not None and one.edge.node is node


def _forbid_changes(outputs: Sequence[object], *, is_one_of_several: bool) -> None:
    """Forbid changes in place of returned views: their nodes would be lost."""
    for one in outputs:
        if isinstance(one, Variable) and isinstance(one.viewed, View):
            one.viewed.creation = (
                Creation.MULTI_OUTPUT if is_one_of_several else Creation.CUSTOM_FUNCTION
            )


def _changed(
    output: Variable, edge: Edge, *, is_input: bool, num_outputs: int
) -> Variable:
    """Return a tensor changed by the forward, at its new place in the graph."""
    if not is_input:
        warnings.warn(_DIRTY_NO_INPUT, UserWarning, stacklevel=5)
        count_change(output)
        return _placed(output, edge)
    if isinstance(output.viewed, View):
        if num_outputs > 1:
            raise RuntimeError(_DIRTY_VIEW_OF_SEVERAL)
        output.viewed.refuse(output)
        if output.viewed.base.is_leaf and output.viewed.base.needs_grad:
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an "
                "in-place operation."
            )
    if output.is_leaf and output.needs_grad:
        raise RuntimeError(
            "a leaf Variable that requires grad has been used in an in-place operation."
        )
    count_change(output)  # now, so that a view knows that its base gets a new node
    rebase(output, variable(output.array, edge))
    return output
