"""The Tensor: what users hold, with PyTorch's names and manners."""

import builtins
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradviz.backends.base import Array, backend_of, copy_to
from gradviz.backends.device import CPU, Device, parse_device
from gradviz.ops.copying import to_copy
from gradviz.ops.indexing import getitem
from gradviz.ops.promotion import DTypeLike
from gradviz.ops.variable import Value, Variable, device_of, result_class, variable
from gradviz.tensors import dtypes
from gradviz.tensors.backward import Variables, backward
from gradviz.tensors.hooks import (
    RemovableHandle,
    TensorHook,
    register_hook,
    retain_grad,
)
from gradviz.tensors.operators import Operators
from gradviz.tensors.printing import format_tensor


@result_class
class Tensor(Operators):
    """An array that records what is computed with it, if it requires gradients.

    Make one with `gradviz.tensor`, `gradviz.zeros` and their like.
    Source: torch/_tensor.py.
    """

    __slots__ = ()

    # --- what it is -----------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each dimension."""
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self.array.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.array.ndim

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.array.nbytes

    def dim(self) -> int:
        """Number of dimensions."""
        return self.ndim

    def size(self, dim: int | None = None) -> tuple[int, ...] | int:
        """Length of each dimension, or of one."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        """Number of elements."""
        return self.array.size

    def is_floating_point(self) -> bool:
        """Whether the elements are floats."""
        return self.dtype.kind == "f"

    @property
    def data(self) -> "Tensor":
        """The elements without the graph; setting it replaces them."""
        return self.detach()

    @data.setter
    def data(self, other: Variable) -> None:
        self.array = other.array

    def __repr__(self) -> str:
        return format_tensor(self)

    # --- its graph ------------------------------------------------------------------

    def backward(
        self,
        gradient: "Tensor | None" = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Variables | None = None,
    ) -> None:
        """Add this tensor's gradients to the ``.grad`` of its leaves.

        See `gradviz.autograd.backward`, also for what is raised.
        """
        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def requires_grad_(self, requires_grad: bool = True) -> "Tensor":
        """Set `requires_grad`; returns the tensor."""
        self.requires_grad = requires_grad
        return self

    def detach(self) -> "Tensor":
        """The same memory, outside the graph."""
        return variable(self.array)

    def register_hook(self, hook: TensorHook) -> RemovableHandle:
        """Call `hook` with the gradient; what it returns takes the gradient's place."""
        return register_hook(self, hook)

    def retain_grad(self) -> None:
        """Have backward fill ``.grad``, though this is no leaf."""
        retain_grad(self)

    # --- to other dtypes, devices, types --------------------------------------------

    def to(
        self, *args: Value, dtype: DTypeLike = None, device: Value = None
    ) -> "Tensor":
        """The tensor with another dtype, on another device, or like another tensor.

        Args:
            *args: A dtype, a device or its name, both, or a tensor to be like.
            dtype: The dtype.
            device: The device.

        Returns:
            The tensor itself if there is nothing to change.

        Raises:
            ValueError: There is no such device.
        """
        for arg in args:
            match arg:
                case Variable():
                    dtype, device = arg.array.dtype, arg.device
                case str() | Device():
                    device = arg
                case _:
                    dtype = arg
        wanted = self.dtype if dtype is None else np.dtype(dtype)
        place = self.device if device is None else parse_device(device)
        backend_of(place)  # raises if there is no such device
        if wanted == self.dtype and place is self.device:
            return self
        source = self if wanted.kind in "fc" else self.detach()
        return to_copy(source, wanted, place)

    def cpu(self) -> "Tensor":
        """The tensor in host memory."""
        return self.to(CPU)

    def float(self) -> "Tensor":
        """The tensor in float32."""
        return self.to(dtypes.float32)

    def double(self) -> "Tensor":
        """The tensor in float64."""
        return self.to(dtypes.float64)

    def long(self) -> "Tensor":
        """The tensor in int64, outside the graph."""
        return self.to(dtypes.int64)

    def bool(self) -> "Tensor":
        """Whether each element is other than 0."""
        return self.to(dtypes.bool_)

    def astype(self, dtype: DTypeLike) -> "Tensor":
        """NumPy's name of `to`, by which the engine casts gradients."""
        return self.to(dtype)

    def numpy(self) -> np.ndarray:
        """The elements as a NumPy array that shares their memory.

        Raises:
            RuntimeError: The tensor requires gradients.
            TypeError: It is not on the CPU.
        """
        if self.needs_grad:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. "
                "Use tensor.detach().numpy() instead."
            )
        if self.device is not CPU:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. "
                f"Use Tensor.cpu() to copy the tensor to host memory first."
            )
        return self.array

    def item(self) -> Value:
        """The only element, as a Python number.

        Raises:
            RuntimeError: There are more, or none.
        """
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self.array.item()

    def tolist(self) -> Value:
        """The elements as nested lists of Python numbers."""
        return self.array.tolist()

    def __array__(self, dtype: DTypeLike = None, *, copy: Value = None) -> np.ndarray:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __float__(self) -> builtins.float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(
                "only integer tensors of a single element can be converted to an index"
            )
        return int(self.item())

    def __bool__(self) -> builtins.bool:
        if self.numel() != 1:
            raise RuntimeError(
                "Boolean value of Tensor with more than one value is ambiguous"
            )
        return bool(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> "Iterator[Tensor]":
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return (getitem(self, i) for i in range(len(self)))

    def __contains__(self, value: object) -> builtins.bool:
        return bool(np.any((self == value).array))

    def __format__(self, specification: str) -> str:
        if self.shape or not specification:
            return object.__format__(self, specification)
        return format(self.item(), specification)


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
        ValueError: There is no such device.
    """
    if dtype is not None:
        array = array.astype(np.dtype(dtype), copy=False)
    if device is not None and parse_device(device) is not device_of(array):
        array = copy_to(array, parse_device(device))
    result: Tensor = variable(array)
    if requires_grad:
        result.requires_grad = True
    return result
