"""Parameters and buffers, the tensors of a module; and parameters as one vector."""

from collections.abc import Iterable, MutableMapping
from typing import Any, Self, TypeVar

from gradviz.ops.shapes.joining import cat
from gradviz.ops.variables.variable import Variable
from gradviz.tensors.creation.from_data import tensor
from gradviz.tensors.tensor import Tensor

T = TypeVar("T", bound=Tensor)


class Parameter(Tensor):
    """A leaf that becomes a parameter of the module that it is assigned to.

    Args:
        data: The elements, shared and not copied; None for none.
        requires_grad: True if gradients are wanted.

    Raises:
        RuntimeError: Gradients are wanted of other than floats.

    Source: torch/nn/parameter.py.
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        """See the class."""
        new = _as(cls, tensor([]) if data is None else data.detach())
        if requires_grad and new.dtype.kind not in "fc":
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        new.requires_grad = requires_grad
        return new

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        del data, requires_grad  # __new__ took them

    def __deepcopy__(self, memo: MutableMapping[int, Any]) -> Self:
        known: Self | None = memo.get(id(self))
        if known is None:
            known = type(self)(self.detach().clone(), self.requires_grad)
            memo[id(self)] = known
        return known

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return type(self), (self.detach(), self.requires_grad)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor that becomes a buffer of the module that it is assigned to.

    Args:
        data: The elements, shared and not copied; None for none.
        persistent: True if it is part of the ``state_dict``.

    Source: torch/nn/parameter.py.
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        """See the class."""
        new = _as(cls, tensor([]) if data is None else data.detach())
        new.persistent = persistent
        return new

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        del data, persistent  # __new__ took them


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters, one after the other; differentiable."""
    vector: Tensor = cat([one.reshape(-1) for one in parameters])
    return vector


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give parameters the elements of a vector, as `parameters_to_vector` made it.

    Raises:
        TypeError: `vec` is not a tensor.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected gradviz.Tensor, but got: {type(vec).__name__}")
    begin = 0
    for parameter in parameters:
        end = begin + parameter.numel()
        part = vec[begin:end].detach().reshape(parameter.shape)
        parameter.data = part
        begin = end


def _as(cls: type[T], source: Tensor) -> T:
    """`source` as a tensor of another class: with the same in all of its slots."""
    new = Variable.__new__(cls)
    for base in Variable.__mro__:
        for name in getattr(base, "__slots__", ()):
            if name != "__weakref__" and hasattr(source, name):
                setattr(new, name, getattr(source, name))
    return new
