"""Ops with results in their first argument, or in a given place.

Note [In place]
~~~~~~~~~~~~~~~
Any op can work in place: it is computed as always, from a stand-in for the tensor, and
its result is written to the tensor's memory. Then the tensor takes over the result's
place in the graph, and its count of changes grows, so that whoever saved the old value
notices. If the op itself saved the old value, it gets a copy; if it saved its result,
it gets that in its new place, and further changes are noticed there too.
Source: torch/csrc/autograd/VariableTypeUtils.h.
"""

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import numpy as np

from gradviz.backends.arrays.pinned_array import PinnedArray, reads
from gradviz.backends.base import Array
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.graph.node import Edge, Node
from gradviz.modes import Mode
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.memory_layout import is_dense
from gradviz.ops.conventions.silence import SILENT, put, setting
from gradviz.ops.dispatch.copy_slices import CopySlices
from gradviz.ops.dispatch.differentiable import DOORS, Op, differentiable
from gradviz.ops.dispatch.op_node import OpNode
from gradviz.ops.variables import inference
from gradviz.ops.variables.node_hooks import move, move_retained_grad
from gradviz.ops.variables.saved_variable import HOOKS_IN_USE, SavedVariable
from gradviz.ops.variables.variable import (
    Value,
    Variable,
    detached,
    gradient_edge,
    metadata_of,
    raw,
    variable,
)
from gradviz.ops.variables.version import INFERENCE
from gradviz.ops.variables.view import View, replay
from gradviz.trace.probe import LISTENERS
from gradviz.trace.reporting.location import Locations

V = TypeVar("V", bound=Variable)

_OVERLAPPING: Final[set[Op]] = set()

#: Maximum number of changes of a tensor that are remembered, the last ones.
_MAX_CHANGES: Final = 4

_lines: Final[Locations[str]] = Locations(lambda text: text)


def may_overlap(op: Op) -> Op:
    """Let `op` write to elements that share a place; a decorator."""
    _OVERLAPPING.add(op)
    return op


@functools.cache
def in_place(op: Op) -> Callable[..., Any]:
    """The form of `op` that changes its first argument and returns it: ``x.op_()``."""

    @functools.wraps(op)
    def change_by(input: Variable, *args: Value, **kwargs: Value) -> Variable:
        return change(input, op, *args, **kwargs)

    change_by.__name__ = change_by.__qualname__ = f"{op.__name__}_"
    return change_by


def change(x: V, op: Op, *args: Value, **kwargs: Value) -> V:
    """Put the result of ``op(x, ...)`` where `x` is; see Note [In place].

    Raises:
        RuntimeError: `x` may not be changed: it is a leaf that requires gradients, a
            view of one, a view that stands for several, its elements overlap; or the
            result has another shape, or a dtype of another kind.
    """
    check_changeable(x, args, kwargs)
    if op not in _OVERLAPPING:
        _check_overlap(x.array)
    records = GRAD_ENABLED.get()
    old = _stand_in(x)
    if records and (op not in DOORS or HOOKS_IN_USE):
        # Its parts may save views of it, and a pack hook may keep it.
        old.array = old.array.copy()
    result = op(old, *args, **kwargs)
    if not isinstance(result, Variable):
        result = variable(result)
    if _leaves_out(old, result):
        result = _overwritten(old, result)
    check_fits(x, result)
    if result.needs_grad and old.array is x.array and _is_saved(old, result):
        old.array = old.array.copy()
    write(x, result.array)
    if result.edge is not None:
        rebase(x, result)
    return x


#: Told of a variable whose memory is about to change.
_WATCHERS: Final[Mode[tuple[Callable[[Variable], None], ...]]] = Mode(
    "gradviz.watchers_of_changes", default=()
)


@contextlib.contextmanager
def watching_changes(watcher: Callable[[Variable], None]) -> Iterator[None]:
    """Call `watcher` before changes of variables' memory in this context."""
    outer = _WATCHERS.get()
    _WATCHERS.set((*outer, watcher))
    try:
        yield
    finally:
        _WATCHERS.set(outer)


def write(x: Variable, data: Array) -> None:
    """Change the memory of `x`, and count it."""
    for watcher in _WATCHERS.get():
        watcher(x)
    target = x.array
    if not target.flags.writeable:  # a view of a kind that NumPy makes read-only
        try:
            target.flags.writeable = True
        except ValueError as error:
            raise RuntimeError(
                f"the memory of a tensor of shape {list(target.shape)} is read-only: "
                f"clone() it before changing it in place"
            ) from error
    if data is not target:  # else a device is about to write it
        heard = setting()
        try:
            put(SILENT)
            target[...] = data
        finally:
            put(heard)
        if type(data) is PinnedArray and type(target) is not PinnedArray:
            reads(data)
    count_change(x)


def count_change(x: Variable) -> None:
    """Count a change for all users of the memory of `x`."""
    if x.version is not INFERENCE:
        version = x.shared_version()
        version.value += 1
        if LISTENERS:
            # For the error of who saved the old value; see `check_unchanged`.
            change = version.value, _lines.of_caller()
            version.changes = (*version.changes[-_MAX_CHANGES + 1 :], change)


def rebase(x: Variable, result: Variable) -> None:
    """Give `x` the place in the graph that `result` has.

    Source: torch/csrc/autograd/variable.cpp, rebase_history.
    """
    edge = gradient_edge(result)
    node, input_nr = edge.node, edge.input_nr
    assert node is not None
    expected = tuple(
        metadata_of(x.array) if number == input_nr else metadata
        for number, metadata in enumerate(node.input_metadata)
    )
    # The node may be a custom function's, which refuses what users set.
    object.__setattr__(node, "input_metadata", expected)
    if isinstance(x.viewed, View):
        base = x.viewed.base
        before, whole = base.edge, CopySlices(base, x.viewed, node)
        place = functools.partial(_part, weakref.ref(whole), base.array)
        _save_in_place(node, result, x, place)
        base.edge, base.needs_grad = Edge(whole), True
        move_retained_grad(before, base.edge)
        x.viewed.refresh(x)
    else:
        _save_in_place(node, result, x, None)
        move(x, edge)


def _part(whole: "weakref.ref[CopySlices]", base: Array) -> Edge:
    """Return the edge of the changed part of a base, behind the change."""
    node = whole()
    assert node is not None, "an inner node is run by no one else"
    return gradient_edge(replay(node.steps, variable(base, Edge(node))))


def _stand_in(x: Variable) -> Variable:
    """`x` as it is now, for an op to see and to save."""
    edge = None
    if GRAD_ENABLED.get() and x.requires_grad and not x.is_leaf:
        edge = gradient_edge(x)
    old: Variable = variable(x.array, edge)
    return old


def _leaves_out(old: Variable, result: Variable) -> bool:
    """Return whether the node of `result` does not begin with the edge of `old`.

    Then it cannot take the place of a node of `old` in the graph.
    """
    edge, node = gradient_edge(old), result.grad_fn
    if node is None:
        return edge.node is not None
    return node.next_edges[0] != edge


def _is_saved(old: Variable, result: Variable) -> bool:
    node = result.grad_fn
    if not isinstance(node, OpNode) or node.saved is None:
        return True
    return any(value is old or isinstance(value, SavedVariable) for value in node.saved)


def _save_in_place(
    node: Node, result: Variable, x: Variable, place: Callable[[], Edge] | None
) -> None:
    """Point the saved result of `node` to the place where `x` is."""
    if not isinstance(node, OpNode) or node.saved is None:
        return
    if node.plan.saves_results:
        node.saved = tuple(
            SavedVariable(detached(x), output_nr=0, place=place)
            if isinstance(value, Variable) and value.version is result.version
            else value
            for value in node.saved
        )


@differentiable(
    "CopyBackwards",
    x=lambda grad: np.zeros_like(raw(grad)),
    result=lambda grad: grad,
)
def _overwritten(x: Array, result: Array) -> Array:
    """`result` in the place of `x`."""
    del x
    return result


# --- what may be changed ----------------------------------------------------------


def check_changeable(
    x: Variable, args: Iterable[Value] = (), kwargs: dict[str, Value] | None = None
) -> None:
    """Raise PyTorch's error if `x` may not be changed in place.

    Args:
        x: Tensor that is to be changed.
        args: Values that go into it.
        kwargs: Further values, by name.

    Source: torch/csrc/autograd/VariableTypeUtils.h, check_inplace.
    """
    if x.version is INFERENCE and not inference.is_on():
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed."
            "You can make a clone to get a normal tensor before doing inplace update."
            "See https://github.com/pytorch/rfcs/pull/17 for more details."
        )
    if GRAD_ENABLED.get() and (
        x.requires_grad or need_grad((*args, *(kwargs or {}).values()))
    ):
        _check_history(x)
    for one in args:
        if isinstance(one, Variable) and one is not x and one.device is x.device:
            _check_partial_overlap(x.array, one.array)


def _check_history(x: Variable) -> None:
    if isinstance(x.viewed, View):
        x.viewed.refuse(x)
        if x.requires_grad and x.viewed.base.is_leaf:
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an "
                "in-place operation."
            )
    if x.requires_grad and x.is_leaf:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )


def _check_overlap(array: Array) -> None:
    strides, shape = array.strides, array.shape
    if (
        0 in strides
        and array.size
        and any(
            stride == 0 and size > 1
            for stride, size in zip(strides, shape, strict=True)
        )
    ):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor "
            "refers to a single memory location. Please clone() the tensor before "
            "performing the operation."
        )


def _check_partial_overlap(target: Array, source: Array) -> None:
    """Source: aten/src/ATen/MemoryOverlap.cpp, get_overlap_status."""
    if (
        np.may_share_memory(target, source)
        and is_dense(target)
        and is_dense(source)
        and not _is_same_memory(target, source)
    ):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the "
            "written-to tensor refer to a single memory location. Please clone() the "
            "tensor before performing the operation."
        )


def _is_same_memory(a: Array, b: Array) -> bool:
    """Of two dense arrays that overlap: whether they are the same, in one order."""
    if a.shape != b.shape or a.strides != b.strides:
        return False
    first = (*(0,) * a.ndim, ...)
    return bool(np.may_share_memory(a[first], b[first]))


def check_fits(x: Variable, result: Variable) -> None:
    """Raise PyTorch's error if a result cannot be put where `x` is."""
    check_castable(result.array.dtype, x.array.dtype)
    if result.array.shape != x.array.shape:
        raise RuntimeError(
            f"output with shape {list(x.array.shape)} doesn't match the broadcast "
            f"shape {list(result.array.shape)}"
        )


def is_castable(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Return whether a result can be stored without losing its kind of number."""
    kinds = source.kind, target.kind
    return set(kinds) <= set("iu") or _KINDS.index(kinds[0]) <= _KINDS.index(kinds[1])


def check_castable(source: np.dtype[Any], target: np.dtype[Any]) -> None:
    """Raise PyTorch's error if a result would lose its kind."""
    if not is_castable(source, target):
        raise RuntimeError(
            f"result type {scalar_type_name(source)} can't be cast to the desired "
            f"output type {scalar_type_name(target)}"
        )


#: From narrow to wide.
_KINDS: Final = "buifc"


def need_grad(values: Iterable[Value]) -> bool:
    """Return whether a variable in `values`, or in a list there, needs gradients."""
    return any(
        value.requires_grad
        if isinstance(value, Variable)
        else isinstance(value, tuple | list) and need_grad(value)
        for value in values
    )
