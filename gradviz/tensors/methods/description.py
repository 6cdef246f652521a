"""Methods that describe a tensor: its shape, its dtype, its memory."""

from typing import Any, overload

from gradviz.backends.device import CPU
from gradviz.ops.conventions.dimensions import wrap_dim
from gradviz.ops.variables.variable import Variable
from gradviz.tensors.attributes.dtypes import DType, dtype_of
from gradviz.tensors.attributes.layout import Layout
from gradviz.tensors.attributes.size import Size


class Description(Variable):
    """Methods that describe a tensor."""

    __slots__ = ()

    @property
    def shape(self) -> Size:
        """Length of each dimension."""
        return Size(self.array.shape)

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        return dtype_of(self.array.dtype)

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
        return self.array.ndim

    ndimension = dim

    @overload
    def size(self) -> Size: ...
    @overload
    def size(self, dim: int) -> int: ...
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
        return _address(self)

    def storage_offset(self) -> int:
        """Return the number of elements in memory before the tensor's first one.

        Counted from the tensor that this one views, if it is a view.

        Raises:
            TypeError: The tensor is not in host memory.
        """
        if self.viewed is None:
            return 0
        start = _address(self.viewed.base)
        return (_address(self) - start) // self.array.dtype.itemsize

    @overload
    def stride(self) -> tuple[int, ...]: ...
    @overload
    def stride(self, dim: int) -> int: ...
    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        """Return the step in memory, in elements, for each dimension or for one."""
        size = self.array.dtype.itemsize
        strides = tuple(step // size for step in self.array.strides)
        return strides if dim is None else strides[wrap_dim(dim, len(strides))]

    def is_same_size(self, other: Variable) -> bool:
        """Return whether `other` has the same shape."""
        return bool(self.array.shape == other.array.shape)

    def is_floating_point(self) -> bool:
        """Return whether the elements are floats."""
        return self.dtype.kind == "f"

    def is_complex(self) -> bool:
        """Return whether the elements are complex numbers."""
        return self.dtype.kind == "c"

    def is_signed(self) -> bool:
        """Return whether the elements may be negative."""
        return self.dtype.kind in "fci"

    def is_nonzero(self) -> bool:
        """Return whether the only element is other than 0.

        Raises:
            RuntimeError: There are more, or none.
        """
        size = self.array.size
        if size != 1:
            number = "more than one value" if size else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {number} is ambiguous")
        return bool(self.array.item())

    def is_set_to(self, tensor: Variable) -> bool:
        """Return whether `tensor` has the same memory, shape and strides."""
        return _memory(self.array) == _memory(tensor.array)

    # --- what it might be in PyTorch, and never is here -------------------------------

    @property
    def layout(self) -> Layout:
        """Memory layout of the elements: always strided."""
        return Layout.STRIDED

    is_sparse = is_quantized = is_nested = is_mkldnn = False
    name = None

    def is_conj(self) -> bool:
        """Return whether the elements are still to be conjugated."""
        return False

    def is_neg(self) -> bool:
        """Return whether the elements are still to be negated."""
        return False


def _address(x: Variable) -> int:
    if x.device is not CPU:
        raise TypeError(f"the memory of {x.device} has no address on the host")
    return int(x.array.ctypes.data)


def _memory(array: Any) -> tuple[Any, ...]:  # noqa: ANN401 - of any backend
    interface = getattr(array, "__array_interface__", None)
    place = id(array) if interface is None else interface["data"][0]
    return place, array.shape, array.strides, array.dtype
