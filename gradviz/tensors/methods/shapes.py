"""Methods that rearrange elements, and indexing."""

from collections.abc import Sequence
from typing import Any, Final, Self, TypeAlias, overload

import numpy as np

from gradviz.ops.conventions.dimensions import Dims, SizeArgs, varargs
from gradviz.ops.conventions.promotion import Operand
from gradviz.ops.shapes import (
    assignment,
    broadcasting,
    complex_parts,
    copying,
    indexing,
    movement,
    permutation,
    tiling,
)
from gradviz.ops.shapes import shape as shapes
from gradviz.ops.shapes.copying import MemoryFormat
from gradviz.ops.shapes.view_in_place import resize
from gradviz.ops.variables.variable import Variable
from gradviz.tensors.attributes.dtypes import DType

C_ORDER: Final = MemoryFormat.CONTIGUOUS

#: A dtype that cannot be taken for a length.
ElementType: TypeAlias = DType | np.dtype[Any] | type


class Shapes(Variable):
    """Other shapes of the same elements, and indexing."""

    __slots__ = ()

    __getitem__ = indexing.getitem

    @property
    def T(self) -> Self:  # noqa: N802 - NumPy's and PyTorch's name
        """The dimensions in reverse order."""
        return permutation.reversed_dims(self)

    @property
    def mT(self) -> Self:  # noqa: N802 - PyTorch's name
        """The last two dimensions exchanged.

        Raises:
            RuntimeError: There are less than two.
        """
        return permutation.matrix_transpose(self)

    @property
    def H(self) -> Self:  # noqa: N802 - PyTorch's name
        """A matrix transposed and conjugated.

        Raises:
            RuntimeError: There are other than two dimensions.
        """
        return permutation.conjugate_transpose(self)

    @property
    def mH(self) -> Self:  # noqa: N802 - PyTorch's name
        """The last two dimensions exchanged, and complex numbers conjugated.

        Raises:
            RuntimeError: There are less than two.
        """
        return permutation.adjoint(self)

    @property
    def real(self) -> Self:
        """The real parts, sharing memory; for a real tensor the tensor itself.

        They may be set, to a tensor or a number.
        """
        return complex_parts.real(self)

    @real.setter
    def real(self, value: Operand) -> None:
        assignment.setitem(complex_parts.real(self), ..., value)

    @property
    def imag(self) -> Self:
        """The imaginary parts, sharing memory; they may be set too.

        Raises:
            RuntimeError: The elements are real.
        """
        return complex_parts.imag(self)

    @imag.setter
    def imag(self, value: Operand) -> None:
        assignment.setitem(complex_parts.imag(self), ..., value)

    # --- lengths given one by one, or as one sequence ---------------------------------

    def reshape(self, *lengths: SizeArgs, shape: Dims = None) -> Self:
        """The elements in another shape: a view where that is possible."""
        return shapes.reshape(self, varargs("reshape", "shape", lengths, shape))

    @overload
    def view(self, *lengths: SizeArgs, size: Dims = None) -> Self: ...
    @overload
    def view(self, dtype: ElementType, /) -> Self: ...
    @overload
    def view(self, *, dtype: ElementType) -> Self: ...
    def view(
        self,
        *lengths: SizeArgs | ElementType,
        size: Dims = None,
        dtype: ElementType | None = None,
    ) -> Self:
        """The elements in another shape, sharing memory; or their bytes as a dtype."""
        if len(lengths) == 1 and isinstance(lengths[0], DType | np.dtype | type):
            dtype = lengths[0]
        if dtype is not None:
            return shapes.view_as_dtype(self, dtype)
        return shapes.view(self, varargs("view", "size", lengths, size))

    def permute(self, *order: SizeArgs, dims: Dims = None) -> Self:
        """The dimensions in another order."""
        return permutation.permute(self, varargs("permute", "dims", order, dims))

    def expand(
        self, *lengths: SizeArgs, size: Dims = None, implicit: bool = False
    ) -> Self:
        """Repeated to a larger shape without copying; `implicit` is not used."""
        del implicit
        return broadcasting.expand(self, varargs("expand", "size", lengths, size))

    def broadcast_to(self, size: Sequence[int]) -> Self:
        """Repeated to a larger shape without copying."""
        return broadcasting.expand(self, size)

    def unflatten(self, dim: int, *lengths: SizeArgs, sizes: Dims = None) -> Self:
        """One dimension taken apart to several."""
        return shapes.unflatten(
            self, dim, varargs("unflatten", "sizes", lengths, sizes)
        )

    def flip(self, *along: SizeArgs, dims: Dims = None) -> Self:
        """The elements in reverse order along dimensions, as a copy."""
        return movement.flip(self, varargs("flip", "dims", along, dims))

    def sum_to_size(self, *lengths: SizeArgs, size: Dims = None) -> Self:
        """Summed to a shape from which broadcasting leads back."""
        return broadcasting.sum_to_size(
            self, varargs("sum_to_size", "size", lengths, size)
        )

    def repeat(self, *numbers: SizeArgs, repeats: Dims = None) -> Self:
        """Copies one after the other, so many for each dimension."""
        return tiling.repeat(self, varargs("repeat", "repeats", numbers, repeats))

    def tile(self, *numbers: SizeArgs, dims: Dims = None) -> Self:
        """`repeat`, where dimensions without a number stay as they are."""
        return tiling.tile(self, varargs("tile", "dims", numbers, dims))

    def resize_(
        self,
        *lengths: SizeArgs,
        size: Dims = None,
        memory_format: MemoryFormat | None = None,
    ) -> Self:
        """Given another shape, with its first elements in C order, and zeros."""
        del memory_format
        return resize(self, varargs("resize_", "size", lengths, size))

    def resize_as_(
        self, the_template: Variable, *, memory_format: MemoryFormat | None = None
    ) -> Self:
        """`resize_` to the shape of another tensor."""
        del memory_format
        return resize(self, the_template.array.shape)

    # --- like another tensor ----------------------------------------------------------

    def reshape_as(self, other: Variable) -> Self:
        """The elements in the shape of `other`."""
        return shapes.reshape(self, other.array.shape)

    def view_as(self, other: Variable) -> Self:
        """The elements in the shape of `other`, sharing memory."""
        return shapes.view(self, other.array.shape)

    def expand_as(self, other: Variable) -> Self:
        """Repeated to the shape of `other` without copying."""
        return broadcasting.expand(self, other.array.shape)

    # --- memory -----------------------------------------------------------------------

    def is_contiguous(self, *, memory_format: MemoryFormat = C_ORDER) -> bool:
        """Return whether the elements are in C order in memory."""
        del memory_format
        return bool(self.array.flags.c_contiguous)

    def contiguous(self, *, memory_format: MemoryFormat = C_ORDER) -> Self:
        """Return the tensor, or a copy if its elements are not in C order."""
        del memory_format
        return self if self.is_contiguous() else copying.contiguous_copy(self)
