"""Methods that make another tensor like this one: ``new_zeros`` and so on."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from gradviz.backends.base import copy_to
from gradviz.backends.device import Device
from gradviz.ops.recording.promotion import DTypeLike
from gradviz.ops.recording.variable import Value, Variable, device_of, raw, variable
from gradviz.tensors.size import Size


class Likewise(Variable):
    """New tensors with this one's dtype and device, unless others are given."""

    __slots__ = ()

    def new(self, *data: Value) -> Self:
        """PyTorch's old constructor; see `constructed`."""
        made: Self = constructed(data, self.array.dtype, self.device)
        return made

    def new_tensor(self, data: Value, **options: Any) -> Self:  # noqa: ANN401 - see `_new`
        """A leaf with a copy of `data`."""
        return self._new(np.array(raw(data)), **options)

    def new_full(self, size: Sequence[int], fill_value: Value, **options: Any) -> Self:  # noqa: ANN401 - see `_new`
        """`fill_value` in the shape `size`."""
        return self._new(np.full(tuple(size), raw(fill_value)), **options)

    def new_zeros(self, *size: Value, **options: Any) -> Self:  # noqa: ANN401 - see `_new`
        """Zeros of the shape `size`."""
        return self._new(np.zeros(_lengths(size)), **options)

    def new_ones(self, *size: Value, **options: Any) -> Self:  # noqa: ANN401 - see `_new`
        """Ones of the shape `size`."""
        return self._new(np.ones(_lengths(size)), **options)

    def new_empty(self, *size: Value, **options: Any) -> Self:  # noqa: ANN401 - see `_new`
        """Whatever is in memory, in the shape `size`."""
        return self._new(np.zeros(_lengths(size)), **options)

    def _new(
        self,
        array: np.ndarray,
        dtype: DTypeLike = None,
        device: Device | str | None = None,
        requires_grad: bool = False,
    ) -> Self:
        place = self.device if device is None else Device(device)
        new: Self = variable(
            copy_to(array.astype(dtype or self.array.dtype, copy=False), place)
        )
        if requires_grad:
            new.requires_grad = True
        return new


def constructed(data: tuple[Value, ...], dtype: DTypeLike, device: Device) -> Value:
    """What PyTorch's old constructors make of what they are given.

    Args:
        data: Nothing, for no elements; lengths one by one, or a `Size`; or a list, an
            array, or a tensor, whose memory is shared if nothing must change.
        dtype: Of the elements.
        device: Where they are.

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


def _lengths(size: tuple[Value, ...]) -> tuple[int, ...]:
    if len(size) == 1 and isinstance(size[0], tuple | list):
        return tuple(size[0])
    return size or tuple(size[0:0])
