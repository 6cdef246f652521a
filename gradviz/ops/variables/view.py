"""Views: variables that share the memory of another one, their base.

Note [Views and the graph]
~~~~~~~~~~~~~~~~~~~~~~~~~~
An op in place on a view changes its base too, and all other views. Memory and count of
changes are shared, so only their places in the graph have to follow. The base gets a
new node at once (`gradviz.ops.dispatch.in_place`). A view notices by the count, when
its place is next asked for, that it is out of date; then it gets a new node, which
takes from the base's gradient what the view shows.

A view remembers how it was made of its base: the view ops, in order. They are ops, so
they work on arrays and on variables, and on any array of the base's shape. PyTorch
remembers sizes and strides instead: there the new node is that of a single
`as_strided`, and here it is called so. Where view tracking was forced while a view was
made, both remember the view op, and the new node is that op's own.
Source: torch/csrc/autograd/variable.h, Note [View + Inplace update for base tensor].
"""

import enum
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from gradviz.engine.graph.grad_mode import grad_enabled
from gradviz.engine.graph.node import Edge
from gradviz.locks import SafeRLock
from gradviz.modes import Mode
from gradviz.ops.variables import inference
from gradviz.ops.variables.inference import INFERENCE_BLOCKS
from gradviz.ops.variables.node_hooks import move_retained_grad
from gradviz.ops.variables.saved_variable import op_name
from gradviz.ops.variables.variable import NOWHERE, Value, Variable
from gradviz.ops.variables.version import INFERENCE

#: A view op, its arguments after the first, and which of its results; None if one.
ViewStep: TypeAlias = tuple[Callable[..., Value], tuple[Value, ...], int | None]


_TRACKS: Final = Mode("gradviz.forces_view_tracking", default=False)
_ever_tracked = False  # until then nobody asks further


def is_tracking_forced() -> bool:
    """Return whether views remember their ops, to get those ops' nodes anew."""
    return _TRACKS.get()


def force_tracking(mode: bool) -> None:
    """Have views that are made in this context remember their ops, or not."""
    global _ever_tracked
    _ever_tracked = _ever_tracked or mode
    _TRACKS.set(mode)


class Creation(enum.Enum):
    """Origin of a view, if that forbids changing it in place under a graph."""

    NORMAL = enum.auto()
    NO_GRAD_MODE = enum.auto()
    INFERENCE_MODE = enum.auto()
    MULTI_OUTPUT = enum.auto()
    CUSTOM_FUNCTION = enum.auto()


_NORMAL: Final = Creation.NORMAL  # to look it up in an enum takes 80 ns


class View:
    """A view's knowledge of its base.

    Attributes:
        base: The variable with the memory, itself no view.
        steps: Ops that make the view from it.
        tracked: Indices of the steps made while view tracking was forced.
        creation: Reason that forbids changes in place.
        version: The count of changes for which the view's edge is right.

    Source: torch/csrc/autograd/variable.h, struct DifferentiableViewMeta.
    """

    __slots__ = ("base", "creation", "steps", "tracked", "version")

    base: Variable
    steps: tuple[ViewStep, ...]
    tracked: tuple[int, ...]
    creation: Creation
    version: int

    def refresh(self, view: Variable) -> None:
        """Update the place of `view` in the graph, if its base was changed.

        Raises:
            RuntimeError: It was, and the view may not be changed in place.

        Source: torch/csrc/autograd/variable.cpp, VariableHooks::grad_fn.
        """
        base = self.base
        if not (view.needs_grad or base.needs_grad):
            return
        if view.edge is NOWHERE and not base.needs_grad:
            view.edge, view.needs_grad = None, False
            return
        if not view.needs_grad:
            view.needs_grad = True
            if view.edge is None:  # made under no_grad: gradients end at it
                view.edge = NOWHERE
        if self.version == base.shared_version().value:
            return
        with _refreshing:
            if view.edge is None and not base.needs_grad:
                return
            self.refuse(view, indirectly=True)
            before = view.edge
            view.edge = _new_edge(view, self)
            move_retained_grad(before, view.edge)
            self.version = base.shared_version().value

    def refuse(self, view: Variable, *, indirectly: bool = False) -> None:
        """Raise PyTorch's error if the view may not be changed in place.

        Args:
            view: The view.
            indirectly: It is its base, or another view of that, that was changed.

        Source: torch/csrc/autograd/variable.cpp, handle_view_on_rebase.
        """
        if self.creation is not Creation.NORMAL:
            raise RuntimeError(
                _refusal(self.creation, view.edge, indirectly=indirectly)
            )


def replay(steps: Iterable[ViewStep], base: Value) -> Value:
    """The view that `steps` make of an array or a variable."""
    for op, rest, index in steps:
        base = op(base, *rest) if index is None else op(base, *rest)[index]
    return base


# Held while a view gets its new node, so that of two threads both see the same one.
_refreshing: Final = SafeRLock()


def record_view(source: Variable, result: Variable, step: ViewStep) -> None:
    """Let `result` remember that it was made of `source` by `step`."""
    if source.version is INFERENCE:
        result.version = INFERENCE
        return
    creation = _NORMAL
    if INFERENCE_BLOCKS and inference.is_on():
        creation = Creation.INFERENCE_MODE
    elif not grad_enabled():
        creation = Creation.NO_GRAD_MODE
    elif step[2] is not None:
        creation = Creation.MULTI_OUTPUT
    before = source.viewed
    view = View.__new__(View)  # when compiled: new
    if not isinstance(before, View):
        view.base, view.steps, view.tracked = source, (step,), ()
    else:
        if creation is _NORMAL:
            creation = before.creation
        view.base, view.tracked = before.base, before.tracked
        view.steps = (*before.steps, step)
    view.creation = creation
    if _ever_tracked and _TRACKS.get():
        view.tracked += (len(view.steps) - 1,)
    version = view.base.version or view.base.shared_version()
    view.version, result.version = version.value, version
    result.viewed = view


def regeneration(
    new_edge: Callable[[Variable, View], Edge],
) -> Callable[[Variable, View], Edge]:
    """Let views get their new nodes from this function; a decorator.

    What it does takes ops, and ops make views.
    """
    global _new_edge
    _new_edge = new_edge
    return new_edge


def _no_edge(view: Variable, of: View) -> Edge:
    raise NotImplementedError(f"nothing regenerates {view!r} of {of!r}")


_new_edge: Callable[[Variable, View], Edge] = _no_edge


def _refusal(creation: Creation, edge: Edge | None, *, indirectly: bool) -> str:
    """PyTorch's words."""
    how = "its base or another view of its base has been" if indirectly else "is being"
    source = None
    if edge is not None and edge.node is not None:
        source = f"Output {edge.input_nr} of {op_name(edge.node)}"
    mode = "inference" if creation is Creation.INFERENCE_MODE else "no_grad"
    if source is None or creation in {Creation.INFERENCE_MODE, Creation.NO_GRAD_MODE}:
        prefix = (
            "A view was created in"
            if source is None
            else f"{source} is a view of a view which was created in"
        )
        where = "in normal mode" if mode == "inference" else "with grad mode enabled"
        text = f"{prefix} {mode} mode and {how} modified inplace {where}."
    else:
        text = f"{source} is a view and {how} modified inplace."
    return f"{text} {_REASONS[creation].format(mode=mode)}"


_AMBIGUOUS: Final = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can "
    "clarify your code by moving both the view and the inplace either both inside the "
    "{mode}{block} block (if you don't want the inplace to be tracked) or both outside "
    "(if you want the inplace to be tracked)."
)

_REASONS: Final = {
    Creation.NO_GRAD_MODE: _AMBIGUOUS.replace("{block}", ""),
    Creation.INFERENCE_MODE: _AMBIGUOUS.replace("{block}", "_mode"),
    Creation.MULTI_OUTPUT: (
        "This view is the output of a function that returns multiple views. Such "
        "functions do not allow the output views to be modified inplace. You should "
        "replace the inplace operation by an out-of-place one."
    ),
    Creation.CUSTOM_FUNCTION: (
        "This view was created inside a custom Function (or because an input was "
        "returned as-is) and the autograd logic to handle view+inplace would override "
        "the custom backward associated with the custom Function, leading to incorrect "
        "gradients. This behavior is forbidden. You can fix this by cloning the output "
        "of the custom Function."
    ),
}
