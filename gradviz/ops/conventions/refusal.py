"""Refusal of operands that an op does not take, in PyTorch's words."""

from collections.abc import Callable, Sequence
from typing import Any

from gradviz.ops.conventions.dtype_names import scalar_type_name


def check_kinds(kernel: str, kinds: str, *arrays: Any) -> None:  # noqa: ANN401 - any library's
    """See that arrays are of a kind that an op is defined for.

    Args:
        kernel: PyTorch's name of the loop over the elements.
        kinds: NumPy's letters of the kinds of dtype that it takes.
        *arrays: Arrays and Python numbers; the latter are of any kind.

    Raises:
        NotImplementedError: One is of another kind.
    """
    for array in arrays:
        dtype = getattr(array, "dtype", None)
        if dtype is not None and dtype.kind not in kinds:
            raise NotImplementedError(
                f"\"{kernel}\" not implemented for '{scalar_type_name(dtype)}'"
            )


def check_tensors(op: str, **operands: Any) -> None:  # noqa: ANN401 - whatever it is
    """See that operands are tensors or arrays where a number will not do.

    Args:
        op: The op's name.
        **operands: Operands that were given, by the names of the op's parameters in
            their order.

    Raises:
        TypeError: One is something else.
    """
    for position, (name, value) in enumerate(operands.items(), 1):
        if not hasattr(value, "dtype"):
            raise TypeError(
                f"{op}(): argument '{name}' (position {position}) must be Tensor, "
                f"not {type(value).__name__}"
            )


def check_list(tensors: Sequence[Any]) -> None:
    """See that all of several operands are tensors or arrays.

    Raises:
        TypeError: One is something else.
    """
    for i, tensor in enumerate(tensors):
        if not hasattr(tensor, "dtype"):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got "
                f"{type(tensor).__name__}"
            )


def check_shapes(*arrays: Any) -> None:  # noqa: ANN401 - any library's
    """See that arrays broadcast with each other.

    Raises:
        RuntimeError: They do not, from left to right.
    """
    so_far: tuple[int, ...] = ()
    for array in arrays:
        shape = getattr(array, "shape", ())
        if shape == so_far:
            continue
        ndim = max(len(shape), len(so_far))
        a = (1,) * (ndim - len(so_far)) + so_far
        b = (1,) * (ndim - len(shape)) + shape
        for dimension in reversed(range(ndim)):
            if a[dimension] != b[dimension] and 1 not in (a[dimension], b[dimension]):
                raise RuntimeError(
                    f"The size of tensor a ({a[dimension]}) must match the size of "
                    f"tensor b ({b[dimension]}) at non-singleton dimension {dimension}"
                )
        so_far = tuple(
            one if other == 1 else other for one, other in zip(a, b, strict=True)
        )


def not_implemented(op: str) -> Callable[[Any], Any]:
    """A formula that PyTorch plans to have some day: computing it raises.

    Args:
        op: The name of what computes the result there.
    """

    def formula(grad: Any) -> Any:  # noqa: ANN401 - it returns nothing
        del grad
        raise NotImplementedError(f"the derivative for '{op}' is not implemented.")

    return formula


def without_derivative(op: str) -> Callable[[Any], Any]:
    """A formula for an op that PyTorch has no derivative of: backward raises.

    Args:
        op: The op's name.
    """

    def formula(grad: Any) -> Any:  # noqa: ANN401 - it returns nothing
        del grad
        raise RuntimeError(f"derivative for aten::{op} is not implemented")

    return formula
