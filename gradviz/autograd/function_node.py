"""The node of a custom function.

See Note [A context beside its node] in `gradviz.autograd.function_context`.
"""

import weakref
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from gradviz.autograd.function_context import FunctionCtx, SavedNone
from gradviz.backends.base import copy_to
from gradviz.backends.device import CPU
from gradviz.engine.node import InputMetadata, Node
from gradviz.engine.protocols import Gradient, size_bytes
from gradviz.ops.recording import creation_hooks
from gradviz.ops.recording.node_hooks import Hookable
from gradviz.ops.recording.saved_variable import SavedVariable
from gradviz.ops.recording.variable import (
    Value,
    Variable,
    as_flowing,
    as_tensor,
    detached,
    gradient_edge,
    metadata_of,
    raw,
)
from gradviz.trace import probe


class Definition(Protocol):
    """What a custom function's class is asked for when its node runs."""

    def gradients(self, ctx: "FunctionCtx", grads: tuple[Value, ...]) -> object:
        """What the user's ``backward`` returns."""


class FunctionNode(Hookable, Node):
    """The node of one call of a custom function.

    Attributes:
        function: The function's class.
        ctx: See Note [A context beside its node].
        takes_tensors: For each argument of ``apply``, whether it was a tensor, and so
            has an edge.

    Source: torch/csrc/autograd/python_function.cpp, PyNode.
    """

    __slots__ = ("ctx", "function", "takes_tensors")

    ctx: FunctionCtx

    def __init__(
        self, function: Definition, ctx: FunctionCtx, inputs: Sequence[object]
    ) -> None:
        self.function = function
        self.ctx = ctx
        self.takes_tensors = tuple(isinstance(one, Variable) for one in inputs)
        # The forward has not run yet: what its outputs are is filled in by `complete`.
        super().__init__(
            [gradient_edge(one) for one in inputs if isinstance(one, Variable)],
            input_metadata=(),
        )
        ctx._node = weakref.ref(self)

    def complete(self, outputs: Sequence[object]) -> None:
        """Take note of what the forward returned, and save what it wants saved."""
        self.input_metadata = tuple(
            metadata_of(one.array) if isinstance(one, Variable) else None
            for one in outputs
        )
        devices = [one.device for one in self.input_metadata if one is not None]
        elsewhere = [device for device in devices if device is not CPU]
        self.device = elsewhere[0] if elsewhere else CPU

    def save(self, outputs: Sequence[object]) -> None:
        """Save what the forward wants saved; its outputs are part of the graph now."""
        ctx = self.ctx
        tensors = ctx.to_save or ()
        ctx._saved = tuple(map(self._saved, tensors, range(len(tensors))))
        if tensors and (listener := probe.current) is not None:
            listener.tensor_saved(self.id, sum(map(size_bytes, map(raw, tensors))))
        if creation_hooks.num_hooks:
            arrays = [one.array for one in outputs if isinstance(one, Variable)]
            creation_hooks.call(self, arrays)

    def _saved(self, tensor: object, index: int) -> "SavedVariable | SavedNone":
        if tensor is None:
            return SavedNone()
        if not isinstance(tensor, Variable):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {index} is "
                f"of type {type(tensor).__name__}"
            )
        if tensor.grad_fn is not self:
            return SavedVariable(tensor)
        # An output leads back to this node, and would keep it alive.
        saved = SavedVariable(detached(tensor), output_nr=tensor.output_nr)
        saved.pack_result(self)
        return saved

    def apply(self, *grads: Gradient) -> Sequence[Gradient]:
        """The gradients of the inputs that are tensors, by the user's ``backward``.

        Raises:
            RuntimeError: It returned too many or too few, or what is no tensor.
        """
        if self.ctx.materialize_grads:
            grads = tuple(map(_materialized, grads, self.input_metadata))
        result = self.function.gradients(self.ctx, tuple(map(as_tensor, grads)))
        results = result if isinstance(result, tuple) else (result,)
        return tuple(map(as_flowing, self._of_tensors(results)))

    def _of_tensors(self, results: tuple[object, ...]) -> list[Value]:
        """Those of `results` that belong to tensors, all of which are checked."""
        num_inputs = len(self.takes_tensors)
        if all(one is None for one in results[num_inputs:]):
            results = results[:num_inputs]
        if len(results) != num_inputs:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients "
                f"(expected {num_inputs}, got {len(results)})"
            )
        gradients: list[Value] = []
        for position, (result, is_tensor) in enumerate(
            zip(results, self.takes_tensors, strict=True), 1
        ):
            if not is_tensor:
                if result is not None:
                    raise RuntimeError(
                        f"function {self.name()} returned a gradient different than "
                        f"None at position {position}, but the corresponding forward "
                        f"input was not a Variable"
                    )
                continue
            if result is not None and not isinstance(result, Variable):
                raise RuntimeError(
                    f"expected Variable or None (got {type(result).__name__})"
                )
            gradients.append(result)
        return gradients

    def release_variables(self) -> None:
        """Let go of what was saved."""
        if self.ctx._saved:
            for saved in self.ctx._saved:
                saved.release()
            self.ctx._saved = ()
            self.ctx._is_freed = True

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the user's attribute
        if (
            name.startswith("__")
            or name in FunctionNode.__slots__
            or name == "_metadata"
        ):
            raise AttributeError(name)
        return getattr(self.ctx, name)

    def __setattr__(self, name: str, value: object) -> None:
        try:
            super().__setattr__(name, value)
        except AttributeError:
            setattr(self.ctx, name, value)


def _materialized(gradient: Gradient, metadata: InputMetadata | None) -> Gradient:
    """`gradient`, or zeros if it did not come."""
    if gradient is not None or metadata is None:
        return gradient
    return copy_to(np.zeros(metadata.shape, metadata.dtype), metadata.device)
