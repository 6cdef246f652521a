"""What a custom function's forward leaves for its backward.

Note [A context beside its node]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
In PyTorch a function's ``ctx`` is its node. Here they are two objects that know each
other, because users put attributes of any name on a context (``ctx.device`` above all)
and the engine reads attributes of the same names from a node. Each answers for the
other: what one does not have itself it asks the other for. The node holds the context,
and the context its node weakly, so that dropping a graph frees what it saved at once.
"""

import warnings
import weakref
from typing import Any, NoReturn

from gradviz.engine.node import Edge, InputMetadata, Node
from gradviz.engine.removable_handle import RemovableHandle
from gradviz.ops.recording.saved_variable import SECOND_BACKWARD, SavedVariable
from gradviz.ops.recording.variable import Value, Variable


class FunctionCtx:
    """What a custom function's forward leaves for its backward.

    Attributes of any other name are the user's. See Note [A context beside its node].

    Attributes:
        needs_input_grad: For each argument of ``apply``, whether it needs a gradient.
        to_save: What `save_for_backward` was given, until the forward has returned.
        dirty_tensors: What `mark_dirty` was given, likewise.
        non_differentiable: What `mark_non_differentiable` was given, likewise.
        saved_for_forward: What `save_for_forward` was given.
        materialize_grads: Whether ``backward`` gets zeros in place of None.

    Source: torch/autograd/function.py, FunctionCtx.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.to_save: tuple[Any, ...] | None = None
        self.dirty_tensors: tuple[Any, ...] | None = None
        self.non_differentiable: tuple[Any, ...] | None = None
        self.saved_for_forward: tuple[Any, ...] | None = None
        self.materialize_grads = True
        self._saved: tuple[SavedVariable | SavedNone, ...] = ()
        self._is_freed = False
        self._node: weakref.ref[Node] | None = None

    # --- for forward and setup_context ------------------------------------------------

    def save_for_backward(self, *tensors: Variable | None) -> None:
        """Keep tensors for ``backward``, which finds them in `saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Variable | None) -> None:
        """Keep tensors for ``jvp``, which nothing calls here."""
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
    def saved_tensors(self) -> tuple[Value, ...]:
        """What was saved, each tensor in its place in the graph.

        Raises:
            RuntimeError: A backward freed them, or one was changed in place since.
        """
        if self._is_freed:
            raise RuntimeError(SECOND_BACKWARD)
        node = None if self._node is None else self._node()
        return tuple(saved.unpack(node) for saved in self._saved)

    @property
    def saved_variables(self) -> tuple[Value, ...]:
        """PyTorch's old name of `saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> "tuple[SavedVariable | SavedNone, ...]":
        if self._is_freed:
            raise RuntimeError(SECOND_BACKWARD)
        return self._saved

    # --- what the node knows ----------------------------------------------------------

    def name(self) -> str:
        """What messages and traces call the node."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[Edge, ...]:
        """Where the gradients of the inputs go."""
        return () if self._node is None else self._its_node().next_edges

    @property
    def metadata(self) -> dict[str, Any]:
        """Whatever anybody wants to remember of the node."""
        return self._its_node().metadata

    @property
    def _input_metadata(self) -> tuple[InputMetadata | None, ...]:
        return self._its_node()._input_metadata

    def _sequence_nr(self) -> int:
        return self._its_node().sequence_nr

    def register_hook(self, fn: Any) -> RemovableHandle:  # noqa: ANN401 - see Hookable
        """See `Hookable.register_hook`."""
        return self._its_node().register_hook(fn)

    def register_prehook(self, fn: Any) -> RemovableHandle:  # noqa: ANN401 - likewise
        """See `Hookable.register_prehook`."""
        return self._its_node().register_prehook(fn)

    def _its_node(self) -> Node:
        node = None if self._node is None else self._node()
        if node is None:
            raise RuntimeError(f"the graph that {self.name()} was part of is gone")
        return node


class SavedNone:
    """Stands for None among what is saved."""

    def unpack(self, node: Node | None = None) -> None:
        """None, whoever asks."""

    def release(self) -> None:
        """Nothing to let go of."""

    def register_hooks(self, pack: object, unpack: object) -> NoReturn:
        """There is nothing to put through hooks.

        Raises:
            RuntimeError: Always.
        """
        del pack, unpack
        raise RuntimeError(
            "Calling register_hooks on a saved tensor with value None is forbidden"
        )
