"""Methods that arrange elements anew, and indexing."""

from collections.abc import Sequence
from typing import Final, Self

import numpy as np

from gradviz.ops.recording.dimensions import varargs
from gradviz.ops.recording.in_place import in_place
from gradviz.ops.recording.variable import Value, Variable
from gradviz.ops.reductions import putting, slice_updates
from gradviz.ops.reductions import scatter as scattering
from gradviz.ops.shapes import (
    broadcasting,
    copying,
    diagonals,
    gathering,
    indexing,
    movement,
    permutation,
    places,
    slicing,
    splitting,
    striding,
    tiling,
    unit_dimensions,
    view_scatter,
)
from gradviz.ops.shapes import index_put as index_putting
from gradviz.ops.shapes import shape as shapes
from gradviz.ops.shapes.copying import MemoryFormat
from gradviz.ops.shapes.view_in_place import becoming, resize
from gradviz.tensors.dtypes import DType

C_ORDER: Final = MemoryFormat.CONTIGUOUS


class Shapes(Variable):
    """Other shapes of the same elements, and indexing."""

    __slots__ = ()

    __getitem__ = indexing.getitem

    argwhere = places.argwhere
    gather = gathering.gather
    index_add = slice_updates.index_add
    index_add_ = in_place(slice_updates.index_add)
    index_copy = slice_updates.index_copy
    index_copy_ = in_place(slice_updates.index_copy)
    index_fill = slice_updates.index_fill
    index_fill_ = in_place(slice_updates.index_fill)
    index_put = index_putting.index_put
    index_put_ = in_place(index_putting.index_put)
    index_reduce = slice_updates.index_reduce
    index_reduce_ = in_place(slice_updates.index_reduce)
    index_select = gathering.index_select
    masked_scatter = putting.masked_scatter
    masked_scatter_ = in_place(putting.masked_scatter)
    masked_select = gathering.masked_select
    narrow = slicing.narrow
    nonzero = places.nonzero
    put = putting.put
    put_ = in_place(putting.put)
    scatter = scattering.scatter
    scatter_ = in_place(scattering.scatter)
    scatter_add = scattering.scatter_add
    scatter_add_ = in_place(scattering.scatter_add)
    scatter_reduce = scattering.scatter_reduce
    scatter_reduce_ = in_place(scattering.scatter_reduce)
    select = slicing.select
    take = gathering.take
    take_along_dim = gathering.take_along_dim

    as_strided = striding.as_strided
    as_strided_ = becoming(striding.as_strided)
    unfold = striding.unfold

    diag = diagonals.diag
    diag_embed = diagonals.diag_embed
    diagflat = diagonals.diagflat
    diagonal = diagonals.diagonal
    select_scatter = view_scatter.select_scatter
    slice_scatter = view_scatter.slice_scatter
    diagonal_scatter = view_scatter.diagonal_scatter
    fill_diagonal_ = in_place(diagonals.fill_diagonal)
    trace = diagonals.trace
    tril = diagonals.tril
    tril_ = in_place(diagonals.tril)
    triu = diagonals.triu
    triu_ = in_place(diagonals.triu)

    fliplr = movement.fliplr
    flipud = movement.flipud
    roll = movement.roll
    rot90 = movement.rot90

    chunk = splitting.chunk
    dsplit = splitting.splitting_method(splitting.dsplit)
    hsplit = splitting.splitting_method(splitting.hsplit)
    split = splitting.split
    split_with_sizes = splitting.split_with_sizes
    tensor_split = splitting.tensor_split
    unbind = splitting.unbind
    unsafe_chunk = splitting.unsafe_chunk
    unsafe_split = splitting.unsafe_split
    unsafe_split_with_sizes = splitting.unsafe_split_with_sizes
    vsplit = splitting.splitting_method(splitting.vsplit)

    repeat_interleave = tiling.repeat_interleave

    adjoint = permutation.adjoint
    flatten = shapes.flatten
    moveaxis = movedim = permutation.movedim
    ravel = shapes.ravel
    squeeze = unit_dimensions.squeeze
    squeeze_ = becoming(unit_dimensions.squeeze_itself)
    swapdims = transpose = permutation.transpose
    swapaxes = permutation.swapaxes
    t = permutation.t
    t_ = becoming(permutation.t_itself)
    swapaxes_ = swapdims_ = transpose_ = becoming(permutation.transpose_itself)
    unsqueeze = unit_dimensions.unsqueeze
    unsqueeze_ = becoming(unit_dimensions.unsqueeze_itself)

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

    # --- lengths given one by one, or as one sequence ---------------------------------

    def reshape(self, *lengths: Value, shape: Value = None) -> Self:
        """The elements in another shape: a view where that is possible."""
        return shapes.reshape(self, varargs("reshape", "shape", lengths, shape))

    def view(self, *lengths: Value, size: Value = None, dtype: Value = None) -> Self:
        """The elements in another shape, sharing memory; or their bytes as a dtype."""
        if len(lengths) == 1 and isinstance(lengths[0], DType | np.dtype | type):
            dtype = lengths[0]
        if dtype is not None:
            return shapes.view_as_dtype(self, dtype)
        return shapes.view(self, varargs("view", "size", lengths, size))

    def permute(self, *order: Value, dims: Value = None) -> Self:
        """The dimensions in another order."""
        return permutation.permute(self, varargs("permute", "dims", order, dims))

    def expand(
        self, *lengths: Value, size: Value = None, implicit: bool = False
    ) -> Self:
        """Repeated to a larger shape without copying; `implicit` is not used."""
        del implicit
        return broadcasting.expand(self, varargs("expand", "size", lengths, size))

    def broadcast_to(self, size: Sequence[int]) -> Self:
        """Repeated to a larger shape without copying."""
        return broadcasting.expand(self, size)

    def unflatten(self, dim: int, *lengths: Value, sizes: Value = None) -> Self:
        """One dimension taken apart to several."""
        return shapes.unflatten(
            self, dim, varargs("unflatten", "sizes", lengths, sizes)
        )

    def flip(self, *along: Value, dims: Value = None) -> Self:
        """The elements in reverse order along dimensions, as a copy."""
        return movement.flip(self, varargs("flip", "dims", along, dims))

    def sum_to_size(self, *lengths: Value, size: Value = None) -> Self:
        """Summed to a shape from which broadcasting leads back."""
        return broadcasting.sum_to_size(
            self, varargs("sum_to_size", "size", lengths, size)
        )

    def repeat(self, *numbers: Value, repeats: Value = None) -> Self:
        """Copies one after the other, so many for each dimension."""
        return tiling.repeat(self, varargs("repeat", "repeats", numbers, repeats))

    def tile(self, *numbers: Value, dims: Value = None) -> Self:
        """`repeat`, where dimensions without a number stay as they are."""
        return tiling.tile(self, varargs("tile", "dims", numbers, dims))

    def resize_(
        self,
        *lengths: Value,
        size: Value = None,
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
        """Whether the elements lie in memory in C order."""
        del memory_format
        return bool(self.array.flags.c_contiguous)

    def contiguous(self, *, memory_format: MemoryFormat = C_ORDER) -> Self:
        """The tensor, or a copy if its elements do not lie in C order."""
        del memory_format
        return self if self.is_contiguous() else copying.contiguous_copy(self)
