"""A tensor as a container of those along its first dimension."""

import numbers
from collections.abc import Iterator
from typing import Self

import numpy as np

from gradviz.ops.recording.variable import Variable, raw
from gradviz.ops.shapes.movement import flip
from gradviz.ops.shapes.splitting import unbind


class Container(Variable):
    """Length, iteration, membership."""

    __slots__ = ()

    def __len__(self) -> int:
        if not self.array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.array.shape[0]

    def __iter__(self) -> Iterator[Self]:
        if not self.array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(unbind(self, 0))

    def __reversed__(self) -> Self:
        return flip(self, range(self.array.ndim))

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, Variable | numbers.Number | np.generic):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed "
                f"in a {type(value)}."
            )
        return bool(np.any(raw(self == value)))
