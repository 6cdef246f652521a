"""What is computed with tensors: operators, and methods that are ops.

Most methods are the ops themselves, set as attributes: what they do is said where they
are defined, in `gradviz.ops`.
"""

from collections.abc import Sequence
from typing import Final, Self

import numpy as np

from gradviz.ops import (
    activation,
    arithmetic,
    copying,
    indexing,
    linalg,
    reduction,
    transcendental,
)
from gradviz.ops import shape as shapes
from gradviz.ops.variable import Value, Variable, raw, variable
from gradviz.tensors import inplace

Scalar = bool | int | float | complex


class Operators(Variable):
    """The arithmetic of a Tensor.

    Source: torch/_tensor.py.
    """

    __slots__ = ()

    # NumPy's operators leave `array * tensor` to the tensor.
    __array_ufunc__: Final = None

    def __hash__(self) -> int:
        return id(self)

    # --- arithmetic -----------------------------------------------------------------

    __add__ = __radd__ = arithmetic.add
    __sub__ = arithmetic.sub
    __rsub__ = arithmetic.rsub
    __mul__ = __rmul__ = mul = arithmetic.mul
    __truediv__ = div = arithmetic.div
    __pow__ = pow = arithmetic.pow
    __mod__ = remainder = arithmetic.remainder
    __neg__ = neg = arithmetic.neg
    __abs__ = abs = arithmetic.abs
    __matmul__ = matmul = linalg.matmul
    __getitem__ = indexing.getitem
    __eq__ = eq = arithmetic.eq
    __ne__ = ne = arithmetic.ne
    __lt__ = lt = arithmetic.lt
    __le__ = le = arithmetic.le
    __gt__ = gt = arithmetic.gt
    __ge__ = ge = arithmetic.ge
    sign = arithmetic.sign
    square = arithmetic.square
    reciprocal = arithmetic.reciprocal
    clamp = arithmetic.clamp
    maximum = arithmetic.maximum
    minimum = arithmetic.minimum
    exp = transcendental.exp
    expm1 = transcendental.expm1
    log = transcendental.log
    log1p = transcendental.log1p
    sqrt = transcendental.sqrt
    sin = transcendental.sin
    cos = transcendental.cos
    tan = transcendental.tan
    tanh = transcendental.tanh
    relu = activation.relu
    sigmoid = activation.sigmoid
    softmax = activation.softmax
    log_softmax = activation.log_softmax
    dot = linalg.dot
    mv = linalg.mv
    mm = linalg.mm
    bmm = linalg.bmm
    outer = linalg.outer
    sum = reduction.sum
    mean = reduction.mean
    max = reduction.max
    min = reduction.min
    amax = reduction.amax
    amin = reduction.amin
    argmax = reduction.argmax
    argmin = reduction.argmin
    all = reduction.all
    any = reduction.any
    clone = copying.clone
    flatten = shapes.flatten
    transpose = shapes.transpose
    t = shapes.t
    squeeze = shapes.squeeze
    unsqueeze = shapes.unsqueeze

    def add(self, other: Value, *, alpha: Scalar = 1) -> Self:
        """``self + alpha * other``."""
        return arithmetic.add(self, other if alpha == 1 else other * alpha)

    def sub(self, other: Value, *, alpha: Scalar = 1) -> Self:
        """``self - alpha * other``."""
        return arithmetic.sub(self, other if alpha == 1 else other * alpha)

    def __rtruediv__(self, other: Value) -> Self:
        return arithmetic.div(other, self)

    def __rpow__(self, other: Value) -> Self:
        return arithmetic.pow(other, self)

    def __rmatmul__(self, other: Value) -> Self:
        return linalg.matmul(other, self)

    def __invert__(self) -> Self:
        return variable(np.invert(self.array))

    def __and__(self, other: Value) -> Self:
        return variable(np.bitwise_and(self.array, raw(other)))

    def __or__(self, other: Value) -> Self:
        return variable(np.bitwise_or(self.array, raw(other)))

    # --- shape ----------------------------------------------------------------------

    @property
    def T(self) -> Self:  # noqa: N802 - NumPy's and PyTorch's name
        """The dimensions in reverse order."""
        return shapes.reversed_dims(self)

    @property
    def mT(self) -> Self:  # noqa: N802 - PyTorch's name
        """The last two dimensions exchanged."""
        return shapes.transpose(self, -2, -1)

    def reshape(self, *lengths: Value) -> Self:
        """The elements in another shape: a view where that is possible."""
        return shapes.reshape(self, _lengths(lengths))

    def view(self, *lengths: Value) -> Self:
        """The elements in another shape, sharing memory."""
        return shapes.view(self, _lengths(lengths))

    def permute(self, *dims: Value) -> Self:
        """The dimensions in another order."""
        return shapes.permute(self, _lengths(dims))

    def expand(self, *lengths: Value) -> Self:
        """Repeated to a larger shape without copying."""
        return shapes.expand(self, _lengths(lengths))

    def expand_as(self, other: Variable) -> Self:
        """Repeated to the shape of `other` without copying."""
        return shapes.expand(self, other.array.shape)

    def is_contiguous(self) -> bool:
        """Whether the elements lie in memory in C order."""
        return bool(self.array.flags.c_contiguous)

    def contiguous(self) -> Self:
        """The tensor, or a copy if its elements do not lie in C order."""
        return self if self.is_contiguous() else copying.clone(self)

    # --- in place ---------------------------------------------------------------------

    def add_(self, other: Value, *, alpha: Scalar = 1) -> Self:
        """Add ``alpha * other`` in place."""
        term = other if alpha == 1 else other * alpha
        return inplace.update(self, term, arithmetic.add, np.add)

    def sub_(self, other: Value, *, alpha: Scalar = 1) -> Self:
        """Subtract ``alpha * other`` in place."""
        term = other if alpha == 1 else other * alpha
        return inplace.update(self, term, arithmetic.sub, np.subtract)

    def mul_(self, other: Value) -> Self:
        """Multiply in place."""
        return inplace.update(self, other, arithmetic.mul, np.multiply)

    def div_(self, other: Value) -> Self:
        """Divide in place."""
        return inplace.update(self, other, arithmetic.div, np.true_divide)

    __iadd__ = add_
    __isub__ = sub_
    __imul__ = mul_
    __itruediv__ = div_

    def zero_(self) -> Self:
        """Set all elements to 0."""
        return self.fill_(0)

    def fill_(self, value: Scalar) -> Self:
        """Set all elements to `value`."""
        inplace.write(self, ..., value)
        return self

    def copy_(self, other: Variable) -> Self:
        """Set the elements to those of `other`, which may be on another device."""
        if other.device is not self.device:
            other = copying.to_copy(other, other.array.dtype, self.device)
        inplace.write(self, ..., other)
        return self

    def __setitem__(self, index: Value, value: Value) -> None:
        inplace.write(self, index, value)


def _lengths(arguments: Sequence[Value]) -> tuple[int, ...]:
    """Integers given one by one, or as one sequence."""
    if len(arguments) == 1 and not isinstance(arguments[0], int):
        return tuple(arguments[0])
    return tuple(arguments)
