"""The ``ctx`` of a custom function's methods, which is its node."""

import warnings
from typing import Any, NoReturn

from gradviz.engine.graph.node import Node
from gradviz.ops.variables.saved_variable import (
    SECOND_BACKWARD,
    SavedVariable,
    checked_hooks,
)
from gradviz.ops.variables.variable import Variable
from gradviz.tensors.tensor import Tensor


class FunctionCtx:
    """State that a custom function's forward leaves for its backward.

    Users may set attributes of any other name.

    Attributes:
        needs_input_grad: For each argument of ``apply``, whether it needs a gradient.
        to_save: Arguments of `save_for_backward`, until the forward has returned.
        dirty_tensors: Arguments of `mark_dirty`, until then.
        non_differentiable: Arguments of `mark_non_differentiable`, until then.
        saved_for_forward: Arguments of `save_for_forward`.
        materialize_grads: True if ``backward`` gets zeros in place of None.
        _materialize_non_diff_grads: True if it gets them, where it gets any, for
            outputs that are not differentiable, too.
        _saved: The saved tensors, None once they are freed.

    Source: torch/autograd/function.py, FunctionCtx.
    """

    needs_input_grad: tuple[bool, ...] = ()
    to_save: tuple[Any, ...] | None = None
    dirty_tensors: tuple[Any, ...] | None = None
    non_differentiable: tuple[Any, ...] | None = None
    saved_for_forward: tuple[Any, ...] | None = None
    materialize_grads: bool = True
    _materialize_non_diff_grads: bool = True
    _saved: "tuple[SavedVariable | SavedNone, ...] | None" = ()

    # --- for forward and setup_context ------------------------------------------------

    def save_for_backward(self, *tensors: Variable | None) -> None:
        """Keep tensors for ``backward``, which reads them from `saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Variable | None) -> None:
        """Keep tensors for ``jvp``, which nothing calls here.

        Raises:
            AssertionError: Something is not a tensor.
        """
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Variable):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should "
                    "save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Variable) -> None:
        """Mark inputs that the forward changes in place; they must be returned."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Variable) -> None:
        """Mark outputs that do not require gradients."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether ``backward`` gets zeros or None for missing gradients."""
        self.materialize_grads = value

    # --- for backward -----------------------------------------------------------------

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """The saved tensors, each in its place in the graph.

        Raises:
            RuntimeError: A backward freed them, or one was changed in place since.
        """
        node = self if isinstance(self, Node) else None
        tensors: list[Any] = [one.unpack(node) for one in self._raw_saved_tensors]
        return tuple(tensors)

    @property
    def saved_variables(self) -> tuple[Tensor, ...]:
        """PyTorch's old name for `saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> "tuple[SavedVariable | SavedNone, ...]":
        if self._saved is None:
            raise RuntimeError(SECOND_BACKWARD)
        return self._saved


class SavedNone:
    """Stands for None among saved tensors."""

    def unpack(self, node: Node | None = None) -> None:
        """Return None for any node."""

    def release(self) -> None:
        """Do nothing: it holds nothing."""

    def register_hooks(self, *hooks: object) -> NoReturn:
        """Refuse: there is no tensor to put through hooks.

        Raises:
            RuntimeError: Always, if there are two hooks.
            TypeError: In all other cases.
        """
        checked_hooks(*hooks)
        raise RuntimeError(
            "Calling register_hooks on a saved tensor with value None is forbidden"
        )
