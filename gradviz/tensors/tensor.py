"""The Tensor: what users hold, with PyTorch's names and manners."""

import copy
import numbers
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradviz.backends.base import Array, backend_of, copy_to
from gradviz.backends.device import CPU, Device, parse_device
from gradviz.ops.recording.dimensions import wrap_dim
from gradviz.ops.recording.promotion import DTypeLike
from gradviz.ops.recording.variable import (
    Variable,
    detached,
    device_of,
    metadata_of,
    result_class,
    variable,
)
from gradviz.ops.recording.version import INFERENCE
from gradviz.ops.shapes.splitting import unbind
from gradviz.tensors.backward import Inputs, backward
from gradviz.tensors.hooks import (
    RemovableHandle,
    TensorHook,
    register_hook,
    register_post_accumulate_grad_hook,
    retain_grad,
)
from gradviz.tensors.methods.assignment import Assignment
from gradviz.tensors.methods.elementwise import Elementwise
from gradviz.tensors.methods.elementwise_in_place import ElementwiseInPlace
from gradviz.tensors.methods.likewise import Likewise
from gradviz.tensors.methods.linear import Linear
from gradviz.tensors.methods.numpy_protocol import NumpyProtocol
from gradviz.tensors.methods.reductions import Reductions
from gradviz.tensors.methods.shapes import Shapes
from gradviz.tensors.printing import format_tensor
from gradviz.tensors.size import Size


@result_class
class Tensor(
    NumpyProtocol,
    Assignment,
    Elementwise,
    ElementwiseInPlace,
    Likewise,
    Linear,
    Reductions,
    Shapes,
):
    """An array that records what is computed with it, if it requires gradients.

    Make one with `gradviz.tensor`, `gradviz.zeros` and their like.
    Source: torch/_tensor.py.
    """

    __slots__ = ("__dict__",)

    # --- what it is -----------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """Length of each dimension."""
        return Size(self.array.shape)

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

    def size(self, dim: int | None = None) -> Size | int:
        """Length of each dimension, or of one.

        Raises:
            IndexError: There is no such dimension.
        """
        if dim is None:
            return self.shape
        return self.array.shape[wrap_dim(dim, self.array.ndim)]

    def numel(self) -> int:
        """Number of elements."""
        return self.array.size

    nelement = numel

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.array.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.array.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first element.

        Raises:
            TypeError: The tensor is not in host memory.
        """
        return self._host_array().ctypes.data

    def storage_offset(self) -> int:
        """How many elements lie in memory before the first of this one's.

        Counted from the tensor that this one views, if it is a view.

        Raises:
            TypeError: The tensor is not in host memory.
        """
        base = self._base
        if base is None:
            return 0
        return (self.data_ptr() - base.data_ptr()) // self.array.dtype.itemsize

    def _host_array(self) -> np.ndarray:
        if self.device is not CPU:
            raise TypeError(f"the memory of {self.device} has no address on the host")
        return self.array

    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        """How many elements one step is in memory, for each dimension or for one."""
        size = self.array.dtype.itemsize
        strides = tuple(step // size for step in self.array.strides)
        return strides if dim is None else strides[wrap_dim(dim, len(strides))]

    def is_same_size(self, other: Variable) -> bool:
        """Whether `other` has the same shape."""
        return bool(self.array.shape == other.array.shape)

    def is_floating_point(self) -> bool:
        """Whether the elements are floats."""
        return self.dtype.kind == "f"

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
        if metadata_of(self.array) != metadata_of(other.array):
            self._accumulator = None  # its node expects what the old elements were
        self.array = other.array

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("cannot delete data of a tensor")

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
        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def requires_grad_(self, requires_grad: bool = True) -> "Tensor":
        """Set `requires_grad`; returns the tensor.

        Raises:
            RuntimeError: An op made the tensor, or it has other than floats.
        """
        if requires_grad and self.edge is not None and self.edge.is_valid:
            return self
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

    # --- a container of tensors -------------------------------------------------------

    def __len__(self) -> int:
        if not self.array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.array.shape[0]

    def __iter__(self) -> "Iterator[Tensor]":
        if not self.array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(unbind(self, 0))

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
                "the deepcopy protocol at the moment.  If you were attempting to "
                "deepcopy a module, this may be because of a "
                "torch.nn.utils.weight_norm usage, see "
                "https://github.com/pytorch/pytorch/pull/103001"
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
        ValueError: There is no such device.
    """
    if dtype is not None:
        array = array.astype(np.dtype(dtype), copy=False)
    if device is not None and parse_device(device) is not device_of(array):
        array = copy_to(array, parse_device(device))
    if requires_grad and array.dtype.kind not in "fc":
        raise RuntimeError(
            "Only Tensors of floating point and complex dtype can require gradients"
        )
    result: Tensor = variable(array)
    result.needs_grad = requires_grad
    return result
