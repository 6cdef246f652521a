"""Methods about a tensor's place in the graph: backward, hooks, leaving it."""

from collections.abc import Callable
from typing import Any, Self

from gradviz.engine.graph.node import Node
from gradviz.engine.threads.tracebacks import shorten
from gradviz.ops.variables.variable import Variable, detached, variable
from gradviz.ops.variables.version import INFERENCE
from gradviz.tensors.backward import Inputs, backward
from gradviz.tensors.gradient_cuts import report_cut
from gradviz.tensors.hooks import (
    RemovableHandle,
    register_hook,
    register_post_accumulate_grad_hook,
    retain_grad,
)


class GraphPlace(Variable):
    """A tensor's place in the graph.

    Source: torch/_tensor.py.
    """

    __slots__ = ()

    def backward(
        self,
        gradient: Variable | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Inputs | None = None,
    ) -> None:
        """Add this tensor's gradients to the ``.grad`` of its leaves.

        See `gradviz.autograd.backward`, also for what is raised.
        """
        try:
            backward(self, gradient, retain_graph, create_graph, inputs=inputs)
        except BaseException as error:
            shorten(error)
            raise

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad`; returns the tensor.

        Raises:
            RuntimeError: An op made the tensor, or it has other than floats.
        """
        if requires_grad and self.edge is not None and self.edge.is_valid:
            return self
        if requires_grad and self.is_leaf and self.array.dtype.kind not in "fc":
            raise RuntimeError(
                "only Tensors of floating point dtype can require gradients"
            )
        self.requires_grad = requires_grad
        return self

    def detach(self) -> Self:
        """The same memory, outside the graph; changes of it are counted together."""
        report_cut(self, "detach")
        return detached(self)

    def detach_(self) -> Self:
        """Take the tensor out of the graph.

        Raises:
            RuntimeError: It is a view.
        """
        if self.viewed is not None:
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using "
                "DistributedDataParallel (DDP) for training, and "
                "gradient_as_bucket_view is set as True, gradients are views of DDP "
                "buckets, and hence detach_() cannot be called on these gradients. To "
                "fix this error, please refer to the Optimizer.zero_grad() function in "
                "torch/optim/optimizer.py as the solution."
            )
        self.edge, self.needs_grad = None, False
        return self

    @property
    def _version(self) -> int:
        """Number of changes in place of the memory.

        Raises:
            RuntimeError: This is an inference tensor.
        """
        if self.version is INFERENCE:
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if self.version is None else self.version.value

    @property
    def _base(self) -> Self | None:
        """The tensor that owns the memory of this view, None if it is not a view."""
        base: Any = None if self.viewed is None else self.viewed.base
        return base

    def _is_view(self) -> bool:
        """Return whether this tensor is a view that ops in place keep in step."""
        return self.viewed is not None

    def is_inference(self) -> bool:
        """Return whether this tensor was made in inference mode."""
        return self.version is INFERENCE

    def register_hook(
        self, hook: Callable[[Variable], Variable | None]
    ) -> RemovableHandle:
        """Call `hook` with the gradient; its result replaces the gradient."""
        return register_hook(self, hook)

    def register_post_accumulate_grad_hook(
        self, hook: Callable[[Self], object]
    ) -> RemovableHandle:
        """Call `hook` with this leaf each time its ``.grad`` was updated.

        Raises:
            RuntimeError: The tensor needs no gradient, or is not a leaf.
        """
        return register_post_accumulate_grad_hook(self, hook)

    def retain_grad(self) -> None:
        """Have backward fill ``.grad``, though this is not a leaf."""
        retain_grad(self)

    @property
    def _grad_fn(self) -> Node | None:
        """Backward node, like `grad_fn`; deleting it raises a helpful error."""
        return self.grad_fn

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")

    @property
    def _backward_hooks(self) -> object:
        """PyTorch's private dictionary of hooks; here they are not in there."""
        return self.__dict__.get("_backward_hooks")

    @_backward_hooks.setter
    def _backward_hooks(self, hooks: object) -> None:
        self.__dict__["_backward_hooks"] = hooks

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")

    @property
    def data(self) -> Self:
        """The same memory outside the graph; its changes are not counted.

        Setting it gives the tensor other elements, which what was saved of it has too.

        Raises:
            TypeError: Set to something else than a tensor.
            RuntimeError: Set to other than floats, though gradients are wanted.
        """
        report_cut(self, ".data")
        return variable(self.array)

    @data.setter
    def data(self, other: Variable) -> None:
        if not isinstance(other, Variable):
            raise TypeError(
                f"Variable data has to be a tensor, but got {type(other).__name__}"
            )
        if self.requires_grad and other.array.dtype.kind not in "fc":
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point "
                "or complex dtype"
            )
        array = other.array
        if array.dtype != self.array.dtype or other.device is not self.device:
            self.forget_accumulator()
        self.replace_array(array)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError(
            "Deleting tensor data is not allowed. Delete tensor instead!"
        )
