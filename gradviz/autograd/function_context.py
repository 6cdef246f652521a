"""What a custom function's methods can do with their ``ctx``, which is its node."""

import warnings
from typing import Any, NoReturn

from gradviz.engine.node import Node
from gradviz.ops.recording.saved_variable import (
    SECOND_BACKWARD,
    SavedVariable,
    checked_hooks,
)
from gradviz.ops.recording.variable import Variable
from gradviz.tensors.tensor import Tensor


class FunctionCtx:
    """What a custom function's forward leaves for its backward.

    Attributes of any other name are the user's.

    Attributes:
        needs_input_grad: For each argument of ``apply``, whether it needs a gradient.
        to_save: What `save_for_backward` was given, until the forward has returned.
        dirty_tensors: What `mark_dirty` was given, until then.
        non_differentiable: What `mark_non_differentiable` was given, until then.
        saved_for_forward: What `save_for_forward` was given.
        materialize_grads: Whether ``backward`` gets zeros in place of None.
        _materialize_non_diff_grads: Whether it gets them, if it gets any, for outputs
            that are not differentiable, too.
        _saved: What was saved, None once it is freed.

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
        """Keep tensors for ``backward``, which finds them in `saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Variable | None) -> None:
        """Keep tensors for ``jvp``, which nothing calls here.

        Raises:
            AssertionError: Something is no tensor.
        """
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Variable):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should "
                    "save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Variable) -> None:
        """Say which inputs the forward changes in place; they must be returned."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Variable) -> None:
        """Say which outputs are not to require gradients."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros for gradients that did not come, or None."""
        self.materialize_grads = value

    # --- for backward -----------------------------------------------------------------

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """What was saved, each tensor in its place in the graph.

        Raises:
            RuntimeError: A backward freed them, or one was changed in place since.
        """
        node = self if isinstance(self, Node) else None
        tensors: list[Any] = [one.unpack(node) for one in self._raw_saved_tensors]
        return tuple(tensors)

    @property
    def saved_variables(self) -> tuple[Tensor, ...]:
        """PyTorch's old name of `saved_tensors`."""
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
    """Stands for None among what is saved."""

    def unpack(self, node: Node | None = None) -> None:
        """None, whoever asks."""

    def release(self) -> None:
        """Nothing to let go of."""

    def register_hooks(self, *hooks: object) -> NoReturn:
        """There is nothing to put through hooks.

        Raises:
            RuntimeError: Always, if there are two hooks.
            TypeError: There are not.
        """
        checked_hooks(*hooks)
        raise RuntimeError(
            "Calling register_hooks on a saved tensor with value None is forbidden"
        )
