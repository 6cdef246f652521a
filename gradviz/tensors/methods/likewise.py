"""Methods that make another tensor like this one: ``new_zeros`` and so on."""

from collections.abc import Sequence
from typing import Self, Unpack

import numpy as np

from gradviz.backends.arrays.pinning import pinned
from gradviz.backends.base import accelerator_of, copy_to, current_accelerator
from gradviz.backends.device import Device
from gradviz.ops.conventions.dimensions import SizeArgs
from gradviz.ops.conventions.promotion import DTypeLike, Operand
from gradviz.ops.variables.variable import Value, Variable, device_of, raw, variable
from gradviz.tensors.attributes.creation_options import (
    OF_DATA,
    Options,
    check_options,
    shape_of,
)
from gradviz.tensors.attributes.size import Size


class Likewise(Variable):
    """New tensors with this one's dtype and device, unless others are given."""

    __slots__ = ()

    def new(self, *data: object, device: Device | str | None = None) -> Self:
        """PyTorch's old constructor; see `constructed`."""
        place = self.device if device is None else Device(device)
        made: Self = constructed(data, self.array.dtype, place)
        return made

    def new_tensor(self, data: object, **options: Unpack[Options]) -> Self:
        """A leaf with a copy of `data`."""
        check_options("new_tensor", options, OF_DATA - {"pin_memory"})
        return self._new(np.copy(raw(data)), options)

    def new_full(
        self, size: Sequence[int], fill_value: Operand, **options: Unpack[Options]
    ) -> Self:
        """`fill_value` in the shape `size`."""
        check_options("new_full", options)
        shape = shape_of("new_full", (), size)
        return self._new(np.full(shape, raw(fill_value)), options)

    def new_zeros(
        self,
        *lengths: SizeArgs,
        size: SizeArgs | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Zeros of a shape, given as its lengths or as `size`."""
        check_options("new_zeros", options)
        return self._new(np.zeros(shape_of("new_zeros", lengths, size)), options)

    def new_ones(
        self,
        *lengths: SizeArgs,
        size: SizeArgs | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Ones of a shape, given as its lengths or as `size`."""
        check_options("new_ones", options)
        return self._new(np.ones(shape_of("new_ones", lengths, size)), options)

    def new_empty(
        self,
        *lengths: SizeArgs,
        size: SizeArgs | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Zeros, as `gradviz.empty` makes them, of lengths or a `size`."""
        check_options("new_empty", options)
        return self._new(np.zeros(shape_of("new_empty", lengths, size)), options)

    def _new(self, array: np.ndarray, options: Options) -> Self:
        dtype, device = options.get("dtype"), options.get("device")
        place = self.device if device is None else Device(device)
        cast = array.astype(dtype or self.array.dtype, copy=False)
        new: Self = variable(copy_to(cast, place))
        if options.get("pin_memory"):
            new.array = pinned(new.array, accelerator_of(current_accelerator()))
        if options.get("requires_grad"):
            new.requires_grad = True
        return new


def constructed(data: tuple[Value, ...], dtype: DTypeLike, device: Device) -> Value:
    """Return the result of PyTorch's old constructors.

    Args:
        data: Nothing, for no elements; lengths one by one, or a `Size`; or a list, an
            array, or a tensor, whose memory is shared if nothing must change.
        dtype: Type of the elements.
        device: Their device.

    Source: torch/csrc/utils/tensor_new.cpp, legacy_tensor_ctor.
    """
    if len(data) == 1 and isinstance(data[0], Size):
        array = np.zeros(data[0])
    elif len(data) == 1 and not isinstance(data[0], int | np.integer):
        array = raw(data[0])
        if not hasattr(array, "dtype"):
            array = np.array([raw(one) for one in array])
    else:
        array = np.zeros(data or 0)
    array = array.astype(dtype, copy=False)
    return variable(array if device_of(array) is device else copy_to(array, device))
