"""The Tensor: what users hold, with PyTorch's names and manners."""

import copy
import numbers
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gradviz.backends.base import Array, backend_of, copy_to
from gradviz.backends.device import CPU, Device
from gradviz.engine.node import Node
from gradviz.engine.tracebacks import shorten
from gradviz.ops.recording.promotion import DTypeLike, get_default_dtype
from gradviz.ops.recording.public import Home
from gradviz.ops.recording.variable import (
    Variable,
    detached,
    device_of,
    result_class,
    variable,
)
from gradviz.ops.recording.version import INFERENCE
from gradviz.ops.shapes.movement import flip
from gradviz.ops.shapes.splitting import unbind
from gradviz.ops.table import publish
from gradviz.tensors.backward import Inputs, backward
from gradviz.tensors.hooks import (
    RemovableHandle,
    TensorHook,
    register_hook,
    register_post_accumulate_grad_hook,
    retain_grad,
)
from gradviz.tensors.methods.assignment import Assignment
from gradviz.tensors.methods.description import Description
from gradviz.tensors.methods.draws import Draws
from gradviz.tensors.methods.likewise import Likewise, constructed
from gradviz.tensors.methods.numpy_protocol import NumpyProtocol
from gradviz.tensors.methods.operators import Operators
from gradviz.tensors.methods.placement import Placement
from gradviz.tensors.methods.shapes import Shapes
from gradviz.tensors.methods.variants import Variants
from gradviz.tensors.printing import format_tensor


class _OldConstructor(type):
    """Lets ``gv.Tensor(...)`` make tensors, though ops make them without arguments."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - see `new`
        if any("__new__" in vars(base) for base in cls.__mro__[:-1]):
            return super().__call__(*args, **kwargs)  # a subclass that knows better
        has_init = any("__init__" in vars(base) for base in cls.__mro__[:-1])
        device = None if has_init else kwargs.pop("device", None)
        if kwargs and not has_init:
            raise TypeError(
                f"new() received an invalid combination of arguments - got "
                f"{', '.join(kwargs)}, but expected lengths, or elements, and device"
            )
        place = CPU if device is None else Device(device)
        made = constructed(args, get_default_dtype(), place)
        if cls is not Tensor:
            made.__class__ = cls
            if has_init:
                made.__init__(*args, **kwargs)
        return made


@result_class
class Tensor(
    NumpyProtocol,
    Assignment,
    Description,
    Draws,
    Likewise,
    Operators,
    Placement,
    Shapes,
    Variants,
    metaclass=_OldConstructor,
):
    """An array that records what is computed with it, if it requires gradients.

    Make one with `gradviz.tensor`, `gradviz.zeros` and their like. PyTorch's old
    constructor is there too: `Tensor` takes what `Tensor.new` does, and makes floats.
    Source: torch/_tensor.py.
    """

    __slots__ = ("__dict__",)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401 - an op

    @property
    def data(self) -> "Tensor":
        """The same memory outside the graph, whose changes nobody counts.

        Setting it gives the tensor other elements, which what was saved of it has too.

        Raises:
            TypeError: Set to something else than a tensor.
            RuntimeError: Set to other than floats, though gradients are wanted.
        """
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
        self.array = array

    @data.deleter
    def data(self) -> None:
        raise RuntimeError(
            "Deleting tensor data is not allowed. Delete tensor instead!"
        )

    def __repr__(self) -> str:
        return format_tensor(self)

    # --- its graph ------------------------------------------------------------------

    def backward(
        self,
        gradient: "Tensor | None" = None,
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

    def requires_grad_(self, requires_grad: bool = True) -> "Tensor":
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

    def detach(self) -> "Tensor":
        """The same memory, outside the graph; changes of it are counted together."""
        return detached(self)

    def detach_(self) -> "Tensor":
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
        """How often the memory was changed in place.

        Raises:
            RuntimeError: This is an inference tensor.
        """
        if self.version is INFERENCE:
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if self.version is None else self.version.value

    @property
    def _base(self) -> "Tensor | None":
        """The tensor whose memory this one views, None if it has its own."""
        base: Any = None if self.viewed is None else self.viewed.base
        return base

    def _is_view(self) -> bool:
        """Whether this tensor is a view that ops in place keep in step."""
        return self.viewed is not None

    def is_inference(self) -> bool:
        """Whether this tensor was made in inference mode."""
        return self.version is INFERENCE

    def register_hook(self, hook: TensorHook) -> RemovableHandle:
        """Call `hook` with the gradient; what it returns takes the gradient's place."""
        return register_hook(self, hook)

    def register_post_accumulate_grad_hook(
        self, hook: Callable[["Tensor"], object]
    ) -> RemovableHandle:
        """Call `hook` with this leaf each time its ``.grad`` was updated.

        Raises:
            RuntimeError: The tensor needs no gradient, or is no leaf.
        """
        return register_post_accumulate_grad_hook(self, hook)

    def retain_grad(self) -> None:
        """Have backward fill ``.grad``, though this is no leaf."""
        retain_grad(self)

    @property
    def _grad_fn(self) -> Node | None:
        """As `grad_fn`, which says what to do when it is deleted."""
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

    # --- a container of tensors -------------------------------------------------------

    def __len__(self) -> int:
        if not self.array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.array.shape[0]

    def __iter__(self) -> "Iterator[Tensor]":
        if not self.array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(unbind(self, 0))

    def __reversed__(self) -> "Tensor":
        return flip(self, range(self.ndim))

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, Variable | numbers.Number | np.generic):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed "
                f"in a {type(value)}."
            )
        return bool(np.any((self == value).array))

    # --- copies -----------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> "Tensor":
        known: Tensor | None = memo.get(id(self))
        if known is not None:
            return known
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support "
                "the deepcopy protocol at the moment. Copy x.detach() instead, and "
                "compute what a module keeps besides its parameters anew."
            )
        new = _restored(type(self), self.array.copy(), self.needs_grad)
        memo[id(self)] = new
        if self._grad is not None:
            new.grad = copy.deepcopy(self._grad, memo)
        new.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return new

    def __copy__(self) -> "Tensor":
        new = _restored(type(self), self.array, self.needs_grad)
        new.__dict__.update(self.__dict__)
        return new

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        host = backend_of(self.device).to_host(self.array)
        arguments = (type(self), host, self.requires_grad, self.device)
        return _restored, arguments, self.__dict__ or None


publish(Home.TENSOR, Tensor)


def _restored(
    cls: type[Tensor], array: Array, needs_grad: bool, device: Device | None = None
) -> Tensor:
    """A leaf, as it comes out of a copy or a pickle."""
    if device is not None and device is not CPU:
        array = copy_to(array, device)
    made: Tensor = variable(array)
    if cls is not Tensor:
        made.__class__ = cls
    made.needs_grad = needs_grad
    return made


def make(
    array: Array,
    dtype: DTypeLike = None,
    device: Device | str | None = None,
    *,
    requires_grad: bool = False,
) -> Tensor:
    """A leaf.

    Args:
        array: The elements, in host memory or on a device; not copied unless moved.
        dtype: Their type, if another.
        device: Where they are to be, if elsewhere.
        requires_grad: Whether gradients are wanted.

    Raises:
        RuntimeError: Gradients are wanted of other than floats.
        RuntimeError: There is no such device.
    """
    if dtype is not None:
        array = array.astype(np.dtype(dtype), copy=False)
    place = device_of(array) if device is None else Device(device)
    if place is not device_of(array):
        array = copy_to(array, place)
    if requires_grad and array.dtype.kind not in "fc":
        raise RuntimeError(
            "Only Tensors of floating point and complex dtype can require gradients"
        )
    result: Tensor = variable(array)
    result.needs_grad = requires_grad
    return result
