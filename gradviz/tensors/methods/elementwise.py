"""Methods that work on each element: operators, functions, comparisons."""

from collections.abc import Callable
from typing import Any, Self

from gradviz.ops.elementwise import (
    activation,
    arithmetic,
    bessel_functions,
    bitwise,
    comparison,
    error_functions,
    gamma_functions,
    incomplete_gamma,
    polar_form,
    powers,
    rounding,
    selection,
    special_functions,
    transcendental,
    trigonometric,
)
from gradviz.ops.recording.promotion import UnsupportedOperandError
from gradviz.ops.recording.variable import Value, Variable, raw
from gradviz.ops.reductions import softmax
from gradviz.ops.shapes import complex_parts, copying
from gradviz.ops.shapes.assignment import setitem


def operator(op: Callable[..., Value]) -> Callable[..., Any]:
    """An op as an operator: what it does not know, the other operand may."""

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


class Elementwise(Variable):
    """Arithmetic, functions and comparisons of elements.

    Source: torch/_tensor.py.
    """

    __slots__ = ()

    def __hash__(self) -> int:
        return id(self)

    # --- operators ------------------------------------------------------------------

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

    def __invert__(self) -> Self:
        if self.array.dtype.kind not in "biu":
            raise TypeError(
                "~ (operator.invert) is only implemented on integer and Boolean-type "
                "tensors"
            )
        return bitwise.bitwise_not(self)

    # --- arithmetic -----------------------------------------------------------------

    add = arithmetic.add
    sub = subtract = arithmetic.sub
    mul = multiply = arithmetic.mul
    div = divide = true_divide = arithmetic.div
    floor_divide = arithmetic.floor_divide
    remainder = arithmetic.remainder
    fmod = arithmetic.fmod
    neg = negative = arithmetic.neg
    positive = arithmetic.positive
    reciprocal = arithmetic.reciprocal
    addcmul = arithmetic.addcmul
    addcdiv = arithmetic.addcdiv
    lerp = arithmetic.lerp
    pow = powers.pow
    square = powers.square
    float_power = powers.float_power
    ldexp = special_functions.ldexp

    # --- exponentials and logarithms ------------------------------------------------

    exp = transcendental.exp
    exp2 = transcendental.exp2
    expm1 = transcendental.expm1
    log = transcendental.log
    log2 = transcendental.log2
    log10 = transcendental.log10
    log1p = transcendental.log1p
    sqrt = transcendental.sqrt
    rsqrt = transcendental.rsqrt
    logaddexp = transcendental.logaddexp
    logaddexp2 = transcendental.logaddexp2
    xlogy = special_functions.xlogy
    logit = special_functions.logit

    # --- trigonometry -----------------------------------------------------------------

    sin = trigonometric.sin
    cos = trigonometric.cos
    tan = trigonometric.tan
    asin = arcsin = trigonometric.asin
    acos = arccos = trigonometric.acos
    atan = arctan = trigonometric.atan
    atan2 = arctan2 = trigonometric.atan2
    sinh = trigonometric.sinh
    cosh = trigonometric.cosh
    tanh = trigonometric.tanh
    asinh = arcsinh = trigonometric.asinh
    acosh = arccosh = trigonometric.acosh
    atanh = arctanh = trigonometric.atanh
    hypot = trigonometric.hypot
    sinc = trigonometric.sinc
    deg2rad = trigonometric.deg2rad
    rad2deg = trigonometric.rad2deg

    # --- special functions ------------------------------------------------------------

    erf = error_functions.erf
    erfc = error_functions.erfc
    erfinv = error_functions.erfinv
    i0 = bessel_functions.i0
    igamma = incomplete_gamma.igamma
    igammac = incomplete_gamma.igammac
    lgamma = gamma_functions.lgamma
    digamma = gamma_functions.digamma
    mvlgamma = gamma_functions.mvlgamma

    def polygamma(self, n: int) -> Self:
        """The derivative of order `n` of `digamma`."""
        return gamma_functions.polygamma(n, self)

    # --- signs and rounding -----------------------------------------------------------

    abs = absolute = rounding.abs
    sign = rounding.sign
    sgn = rounding.sgn
    copysign = rounding.copysign
    floor = rounding.floor
    ceil = rounding.ceil
    round = rounding.round
    trunc = fix = rounding.trunc
    frac = rounding.frac

    # --- choices ----------------------------------------------------------------------

    maximum = selection.maximum
    minimum = selection.minimum
    fmax = selection.fmax
    fmin = selection.fmin
    clamp = clip = selection.clamp
    clamp_min = selection.clamp_min
    clamp_max = selection.clamp_max
    nan_to_num = selection.nan_to_num
    masked_fill = selection.masked_fill

    def where(self, condition: Variable, other: Value) -> Self:
        """The elements where `condition` holds, those of `other` elsewhere."""
        return selection.where(condition, self, other)

    # --- comparisons ------------------------------------------------------------------

    eq = comparison.eq
    ne = not_equal = comparison.ne
    lt = less = comparison.lt
    le = less_equal = comparison.le
    gt = greater = comparison.gt
    ge = greater_equal = comparison.ge
    isclose = comparison.isclose
    allclose = comparison.allclose
    equal = comparison.equal
    isnan = comparison.isnan
    isinf = comparison.isinf
    isfinite = comparison.isfinite
    isposinf = comparison.isposinf
    isneginf = comparison.isneginf
    isreal = comparison.isreal
    signbit = comparison.signbit
    heaviside = comparison.heaviside
    logical_and = comparison.logical_and
    logical_or = comparison.logical_or
    logical_xor = comparison.logical_xor
    logical_not = comparison.logical_not
    bitwise_and = bitwise.bitwise_and
    bitwise_or = bitwise.bitwise_or
    bitwise_xor = bitwise.bitwise_xor
    bitwise_not = bitwise.bitwise_not
    bitwise_left_shift = bitwise.bitwise_left_shift
    bitwise_right_shift = bitwise.bitwise_right_shift
    gcd = bitwise.gcd
    lcm = bitwise.lcm

    # --- complex numbers --------------------------------------------------------------

    conj = complex_parts.conj
    conj_physical = complex_parts.conj_physical
    resolve_conj = complex_parts.resolve_conj
    resolve_neg = complex_parts.resolve_neg
    angle = polar_form.angle

    @property
    def real(self) -> Self:
        """The real parts, sharing memory; of what is real the tensor itself.

        They may be set, to a tensor or a number.
        """
        return complex_parts.real(self)

    @real.setter
    def real(self, value: Value) -> None:
        setitem(complex_parts.real(self), ..., value)

    @property
    def imag(self) -> Self:
        """The imaginary parts, sharing memory; they may be set too.

        Raises:
            RuntimeError: The elements are real.
        """
        return complex_parts.imag(self)

    @imag.setter
    def imag(self, value: Value) -> None:
        setitem(complex_parts.imag(self), ..., value)

    def is_complex(self) -> bool:
        """Whether the elements are complex numbers."""
        return bool(raw(self).dtype.kind == "c")

    # --- activations ------------------------------------------------------------------

    relu = activation.relu
    sigmoid = activation.sigmoid
    hardshrink = activation.hardshrink
    prelu = activation.prelu
    clone = copying.clone

    def softmax(self, dim: int, dtype: Value = None) -> Self:
        """Exponentials scaled to sum to 1 along `dim`."""
        return softmax.softmax(self, dim, dtype=dtype)

    def log_softmax(self, dim: int, dtype: Value = None) -> Self:
        """The logarithm of `softmax`, without its loss of precision."""
        return softmax.log_softmax(self, dim, dtype=dtype)
