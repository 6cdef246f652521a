"""The node of a custom function, which its methods know as ``ctx``."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from gradviz.autograd.function_context import FunctionCtx, SavedNone
from gradviz.backends.base import copy_to
from gradviz.backends.current_streams import stream_for
from gradviz.backends.device import CPU
from gradviz.engine.graph.node import (
    InputMetadata,
    Node,
    NodeHooks,
    begin,
    next_sequence_nr,
)
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.dispatch import creation_hooks
from gradviz.ops.variables.node_hooks import Hookable
from gradviz.ops.variables.saved_memory import report_saved
from gradviz.ops.variables.saved_variable import SavedVariable
from gradviz.ops.variables.variable import (
    Variable,
    as_flowing,
    as_tensor,
    detached,
    gradient_edge,
    metadata_of,
)
from gradviz.trace import probe
from gradviz.trace.probe import LISTENERS


class _UsersFirst:
    """Default value of a node's attribute that the user has not set."""

    def __init__(self, read: Callable[[Any], object]) -> None:
        self._read = read

    def __get__(self, node: Any, cls: object = None) -> Any:  # noqa: ANN401 - any node
        return self if node is None else self._read(node)


class FunctionNode(FunctionCtx, Hookable, Node):
    """The node of one call of a custom function, and the ``ctx`` of its methods.

    It takes attributes of any name, except a few that the engine relies on.

    Args:
        needs_input_grad: For each argument of ``apply``, whether it needs a gradient.
        inputs: The arguments.
        is_recorded: True if the node is to be part of a graph.

    Source: torch/csrc/autograd/python_function.cpp, PyNode and THPFunction.
    """

    _is_made: bool = False
    _is_fixed: Sequence[bool] = ()
    _takes_tensors: Sequence[bool] = ()

    device = _UsersFirst(lambda node: node.runs_on)
    module = _UsersFirst(lambda node: node.module_path)

    def __init__(
        self,
        needs_input_grad: tuple[bool, ...],
        inputs: Sequence[object],
        *,
        is_recorded: bool,
    ) -> None:
        own = self.__dict__  # not through `__setattr__`, which is for users
        own["needs_input_grad"] = needs_input_grad
        own["_takes_tensors"] = [isinstance(one, Variable) for one in inputs]
        if is_recorded:
            edges = tuple([gradient_edge(x) for x in inputs if isinstance(x, Variable)])
            # `complete` fills in the outputs, after the forward.
            begin(self, edges, (), CPU, next_sequence_nr())
        else:  # no trace is to have it, but it counts all the same
            self.id, self.sequence_nr = -1, next_sequence_nr()
            self.next_edges, self.input_metadata, self.hooks = (), (), None
        own["_is_made"] = True

    def complete(self, outputs: Sequence[object], is_fixed: Sequence[bool]) -> None:
        """Record the outputs of the forward.

        Args:
            outputs: The outputs.
            is_fixed: For each of them, whether it is not differentiable.
        """
        self.__dict__["_is_fixed"] = is_fixed
        metadata = tuple(
            [
                metadata_of(one.array) if isinstance(one, Variable) else None
                for one in outputs
            ]
        )
        object.__setattr__(self, "input_metadata", metadata)
        devices = [one.device for one in metadata if one is not None]
        elsewhere = [device for device in devices if device is not CPU]
        if elsewhere:
            object.__setattr__(self, "runs_on", elsewhere[0])
            object.__setattr__(self, "forward_stream", stream_for(elsewhere[0]))

    def save(self, outputs: Sequence[object]) -> None:
        """Save the forward's chosen tensors; its outputs are part of the graph now."""
        tensors = self.to_save or ()
        saved = tuple([self._kept(one, place) for place, one in enumerate(tensors)])
        self.__dict__["_saved"] = saved
        if tensors and LISTENERS and (listener := probe.current) is not None:
            report_saved(listener, self, saved)
        if creation_hooks.CREATION_HOOKS_IN_USE:
            arrays = [one.array for one in outputs if isinstance(one, Variable)]
            creation_hooks.call(self, arrays)

    def _kept(self, tensor: object, index: int) -> "SavedVariable | SavedNone":
        if tensor is None:
            return SavedNone()
        if not isinstance(tensor, Variable):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {index} is "
                f"of type {type(tensor).__name__}"
            )
        if tensor.grad_fn is not self:
            return SavedVariable(tensor)
        # An output refers back to this node, and would keep it alive.
        saved = SavedVariable(detached(tensor), output_nr=tensor.output_nr)
        saved.pack_result(self)
        return saved

    def call(self, inputs: list[Gradient]) -> Sequence[Gradient]:
        """Compute the gradients of the tensor inputs by the user's ``backward``.

        Raises:
            RuntimeError: It returned too many or too few, or something else.
        """
        grads: Sequence[Gradient] = inputs
        if self.materialize_grads:
            for one in inputs:  # by identity: comparing a gradient would be an op
                if one is None:
                    grads = self._with_zeros(inputs)
                    break
        if len(grads) == 1:  # nearly always
            result = type(self).apply(self, as_tensor(grads[0]))
        else:
            result = type(self).apply(self, *[as_tensor(one) for one in grads])
        results = result if isinstance(result, tuple) else (result,)
        return tuple([as_flowing(one) for one in self._of_tensors(results)])

    def _with_zeros(self, inputs: list[Gradient]) -> list[Gradient]:
        """Return the gradients, with zeros in place of missing ones.

        Source: torch/csrc/autograd/python_function.cpp, PyNode::apply.
        """
        fills_all = self._materialize_non_diff_grads
        return [
            _zeros(metadata)
            if gradient is None and metadata is not None and (fills_all or not is_fixed)
            else gradient
            for gradient, metadata, is_fixed in zip(
                inputs, self.input_metadata, self._is_fixed, strict=True
            )
        ]

    def _of_tensors(self, results: tuple[object, ...]) -> list[Variable | None]:
        """Return the results that belong to tensors, after a check of all."""
        takes_tensors = self._takes_tensors
        num_inputs = len(takes_tensors)
        if len(results) != num_inputs:
            results = self._without_surplus(results)
        gradients: list[Variable | None] = []
        for place, result in enumerate(results):
            if not takes_tensors[place]:
                if result is not None:
                    raise RuntimeError(
                        f"function {type(self).__name__} returned a gradient different "
                        f"than None at position {place + 1}, but the corresponding "
                        f"forward input was not a Variable"
                    )
                continue
            if result is not None and not isinstance(result, Variable):
                raise RuntimeError(
                    f"expected Variable or None (got {type(result).__name__})"
                )
            gradients.append(result)
        return gradients

    def _without_surplus(self, results: tuple[object, ...]) -> tuple[object, ...]:
        """Return as many results as there are inputs; surplus ones must be None."""
        num_inputs = len(self._takes_tensors)
        if len(results) < num_inputs or any(
            one is not None for one in results[num_inputs:]
        ):
            raise RuntimeError(
                f"function {type(self).__name__} returned an incorrect number of "
                f"gradients (expected {num_inputs}, got {len(results)})"
            )
        return results[:num_inputs]

    @property
    def holds_saved(self) -> bool:
        """True if its tensors were saved and not released."""
        return bool(self._saved)

    def release_variables(self) -> None:
        """Release the saved tensors."""
        for saved in self._saved or ():
            saved.release()
        self.__dict__["_saved"] = None

    def _set_sequence_nr(self, value: int) -> None:
        """Set the sequence number, which users cannot set as an attribute."""
        object.__setattr__(self, "sequence_nr", value)

    def __setattr__(self, name: str, value: object) -> None:
        if name in _ENGINES and self._is_made and type(value) is not NodeHooks:
            raise AttributeError(
                f"ctx.{name} is part of the node that ctx is, and the engine relies on "
                f"it: choose another name"
            )
        if type(value) is not bool and name in _FLAGS:
            raise TypeError(
                f"set_{name.lstrip('_')} received an invalid combination of arguments "
                f"- got (), but expected (bool)"
            )
        object.__setattr__(self, name, value)


#: Attributes that users must not set, or the engine would run something else.
_ENGINES: Final = {
    "call",
    "call_restricted",
    "forward_stream",
    "hooks",
    "hooks_to_add_to",
    "id",
    "input_metadata",
    "module_path",
    "next_edges",
    "release_variables",
    "runs_on",
    "sequence_nr",
    "topological_nr",
}


#: Attributes that can only be true or false.
_FLAGS: Final = {"_materialize_non_diff_grads", "materialize_grads"}


def _zeros(metadata: InputMetadata) -> Gradient:
    return copy_to(np.zeros(metadata.shape, metadata.dtype), metadata.device)
