"""Python's operators on tensors, and tensors as containers of tensors."""

import numbers
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from gradviz.ops.algebra import products
from gradviz.ops.conventions.promotion import UnsupportedOperandError
from gradviz.ops.dispatch.in_place import in_place
from gradviz.ops.elementwise import arithmetic, bitwise, comparison, powers, rounding
from gradviz.ops.shapes.movement import flip
from gradviz.ops.shapes.splitting import unbind
from gradviz.ops.variables.variable import Value, Variable, raw


def operator(op: Callable[..., Value]) -> Callable[..., Any]:
    """Return an op as an operator, which leaves unknown operands to their class."""

    def operate(self: Variable, other: Value) -> Value:
        try:
            return op(self, other)
        except UnsupportedOperandError:
            return NotImplemented

    operate.__name__ = operate.__qualname__ = op.__name__
    operate.__doc__ = op.__doc__
    return operate


def _reflected(op: Callable[..., Value]) -> Callable[..., Any]:
    """An op as the operator of the operand on the right."""
    return operator(lambda self, other: op(other, self))


class Operators(Variable):
    """Arithmetic, comparisons and bits, also in place; products; iteration.

    Source: torch/_tensor.py.
    """

    __slots__ = ()

    def __hash__(self) -> int:
        return id(self)

    __add__ = __radd__ = operator(arithmetic.plus)
    __sub__ = operator(arithmetic.sub)
    __rsub__ = operator(arithmetic.rsub)
    __mul__ = __rmul__ = operator(arithmetic.mul)
    __truediv__ = operator(arithmetic.quotient)
    __rtruediv__ = operator(arithmetic.reflected_div)
    __floordiv__ = operator(arithmetic.floor_divide)
    __rfloordiv__ = _reflected(arithmetic.floor_divide)
    __mod__ = operator(arithmetic.remainder)
    __rmod__ = _reflected(arithmetic.remainder)
    __pow__ = operator(powers.pow)
    __rpow__ = _reflected(powers.pow)
    __neg__ = arithmetic.neg
    __pos__ = arithmetic.positive
    __abs__ = rounding.abs
    __and__ = __rand__ = operator(bitwise.bitwise_and)
    __or__ = __ror__ = operator(bitwise.bitwise_or)
    __xor__ = __rxor__ = operator(bitwise.bitwise_xor)
    __lshift__ = operator(bitwise.bitwise_left_shift)
    __rlshift__ = _reflected(bitwise.bitwise_left_shift)
    __rshift__ = operator(bitwise.bitwise_right_shift)
    __rrshift__ = _reflected(bitwise.bitwise_right_shift)
    __eq__ = operator(comparison.eq)
    __ne__ = operator(comparison.ne)
    __lt__ = operator(comparison.lt)
    __le__ = operator(comparison.le)
    __gt__ = operator(comparison.gt)
    __ge__ = operator(comparison.ge)

    __iadd__ = operator(in_place(arithmetic.add))
    __isub__ = operator(in_place(arithmetic.sub))
    __imul__ = operator(in_place(arithmetic.mul))
    __itruediv__ = operator(in_place(arithmetic.div))
    __ifloordiv__ = operator(in_place(arithmetic.floor_divide))
    __imod__ = operator(in_place(arithmetic.remainder))
    __ipow__ = operator(in_place(powers.pow))
    __iand__ = operator(in_place(bitwise.bitwise_and))
    __ior__ = operator(in_place(bitwise.bitwise_or))
    __ixor__ = operator(in_place(bitwise.bitwise_xor))
    __ilshift__ = operator(in_place(bitwise.bitwise_left_shift))
    __irshift__ = operator(in_place(bitwise.bitwise_right_shift))

    def __invert__(self) -> Self:
        if self.array.dtype.kind not in "biu":
            raise TypeError(
                "~ (operator.invert) is only implemented on integer and Boolean-type "
                "tensors"
            )
        return bitwise.bitwise_not(self)

    def __matmul__(self, other: Value | np.ndarray) -> Self:
        if not isinstance(other, Variable) and not hasattr(other, "dtype"):
            return NotImplemented
        return products.matmul(self, other)

    def __rmatmul__(self, other: Value | np.ndarray) -> Self:
        if not hasattr(other, "dtype"):
            return NotImplemented
        return products.matmul(other, self)

    # --- a container of what is along the first dimension ----------------------------

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
