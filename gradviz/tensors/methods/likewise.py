"""Methods that make another tensor like this one: ``new_zeros`` and so on."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from gradviz.backends.base import copy_to
from gradviz.backends.device import Device, parse_device
from gradviz.ops.recording.promotion import DTypeLike
from gradviz.ops.recording.variable import Value, Variable, raw, variable


class Likewise(Variable):
    """New tensors with this one's dtype and device, unless others are given."""

    __slots__ = ()

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
        place = self.device if device is None else parse_device(device)
        new: Self = variable(
            copy_to(array.astype(dtype or self.array.dtype, copy=False), place)
        )
        if requires_grad:
            new.requires_grad = True
        return new


def _lengths(size: tuple[Value, ...]) -> tuple[int, ...]:
    if len(size) == 1 and isinstance(size[0], tuple | list):
        return tuple(size[0])
    return size or tuple(size[0:0])
