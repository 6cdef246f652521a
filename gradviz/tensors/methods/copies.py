"""Copies of a tensor, by `copy` and by `pickle`."""

import copy
from typing import Any, Self, TypeVar

from gradviz.backends.base import Array, backend_of, copy_to
from gradviz.backends.device import CPU, Device
from gradviz.ops.variables.variable import Variable, variable

V = TypeVar("V", bound=Variable)


class Copies(Variable):
    """Methods that `copy` and `pickle` call."""

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        known: Self | None = memo.get(id(self))
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

    def __copy__(self) -> Self:
        new = _restored(type(self), self.array, self.needs_grad)
        new.__dict__.update(self.__dict__)
        return new

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        host = backend_of(self.device).to_host(self.array)
        arguments = (type(self), host, self.requires_grad, self.device)
        return _restored, arguments, self.__dict__ or None


def _restored(
    cls: type[V], array: Array, needs_grad: bool, device: Device | None = None
) -> V:
    """A leaf, as it comes out of a copy or a pickle."""
    if device is not None and device is not CPU:
        array = copy_to(array, device)
    made: V = variable(array)
    if type(made) is not cls:
        made.__class__ = cls
    made.needs_grad = needs_grad
    return made
