"""Methods that work on each element and change the tensor itself: ``x.sin_()``."""

from gradviz.ops.elementwise import (
    activation,
    arithmetic,
    bessel_functions,
    bitwise,
    comparison,
    error_functions,
    gamma_functions,
    incomplete_gamma,
    powers,
    rounding,
    selection,
    special_functions,
    transcendental,
    trigonometric,
)
from gradviz.ops.recording.in_place import in_place
from gradviz.ops.recording.variable import Value, Variable
from gradviz.ops.shapes import complex_parts
from gradviz.tensors.methods.elementwise import operator


class ElementwiseInPlace(Variable):
    """Arithmetic and functions of elements, in place."""

    __slots__ = ()

    # --- arithmetic -----------------------------------------------------------------

    add_ = in_place(arithmetic.add)
    sub_ = subtract_ = in_place(arithmetic.sub)
    mul_ = multiply_ = in_place(arithmetic.mul)
    div_ = divide_ = true_divide_ = in_place(arithmetic.div)
    floor_divide_ = in_place(arithmetic.floor_divide)
    remainder_ = in_place(arithmetic.remainder)
    fmod_ = in_place(arithmetic.fmod)
    neg_ = negative_ = in_place(arithmetic.neg)
    reciprocal_ = in_place(arithmetic.reciprocal)
    addcmul_ = in_place(arithmetic.addcmul)
    addcdiv_ = in_place(arithmetic.addcdiv)
    lerp_ = in_place(arithmetic.lerp)
    pow_ = in_place(powers.pow)
    square_ = in_place(powers.square)
    float_power_ = in_place(powers.float_power)
    ldexp_ = in_place(special_functions.ldexp)
    __iadd__ = operator(add_)
    __isub__ = operator(sub_)
    __imul__ = operator(mul_)
    __itruediv__ = operator(div_)
    __ifloordiv__ = operator(floor_divide_)
    __imod__ = operator(remainder_)
    __ipow__ = operator(pow_)

    # --- exponentials and logarithms ------------------------------------------------

    exp_ = in_place(transcendental.exp)
    exp2_ = in_place(transcendental.exp2)
    expm1_ = in_place(transcendental.expm1)
    log_ = in_place(transcendental.log)
    log2_ = in_place(transcendental.log2)
    log10_ = in_place(transcendental.log10)
    log1p_ = in_place(transcendental.log1p)
    sqrt_ = in_place(transcendental.sqrt)
    rsqrt_ = in_place(transcendental.rsqrt)
    xlogy_ = in_place(special_functions.xlogy)
    logit_ = in_place(special_functions.logit)

    # --- trigonometry -----------------------------------------------------------------

    sin_ = in_place(trigonometric.sin)
    cos_ = in_place(trigonometric.cos)
    tan_ = in_place(trigonometric.tan)
    asin_ = arcsin_ = in_place(trigonometric.asin)
    acos_ = arccos_ = in_place(trigonometric.acos)
    atan_ = arctan_ = in_place(trigonometric.atan)
    atan2_ = arctan2_ = in_place(trigonometric.atan2)
    sinh_ = in_place(trigonometric.sinh)
    cosh_ = in_place(trigonometric.cosh)
    tanh_ = in_place(trigonometric.tanh)
    asinh_ = arcsinh_ = in_place(trigonometric.asinh)
    acosh_ = arccosh_ = in_place(trigonometric.acosh)
    atanh_ = arctanh_ = in_place(trigonometric.atanh)
    hypot_ = in_place(trigonometric.hypot)
    sinc_ = in_place(trigonometric.sinc)
    deg2rad_ = in_place(trigonometric.deg2rad)
    rad2deg_ = in_place(trigonometric.rad2deg)

    # --- special functions ------------------------------------------------------------

    erf_ = in_place(error_functions.erf)
    erfc_ = in_place(error_functions.erfc)
    erfinv_ = in_place(error_functions.erfinv)
    i0_ = in_place(bessel_functions.i0)
    igamma_ = in_place(incomplete_gamma.igamma)
    igammac_ = in_place(incomplete_gamma.igammac)
    lgamma_ = in_place(gamma_functions.lgamma)
    digamma_ = in_place(gamma_functions.digamma)
    mvlgamma_ = in_place(gamma_functions.mvlgamma)

    # --- signs, rounding, choices -----------------------------------------------------

    abs_ = absolute_ = in_place(rounding.abs_in_place)
    sign_ = in_place(rounding.sign)
    sgn_ = in_place(rounding.sgn)
    copysign_ = in_place(rounding.copysign)
    floor_ = in_place(rounding.floor)
    ceil_ = in_place(rounding.ceil)
    round_ = in_place(rounding.round)
    trunc_ = fix_ = in_place(rounding.trunc)
    frac_ = in_place(rounding.frac)
    clamp_ = clip_ = in_place(selection.clamp)
    clamp_min_ = in_place(selection.clamp_min)
    clamp_max_ = in_place(selection.clamp_max)
    nan_to_num_ = in_place(selection.nan_to_num)
    masked_fill_ = in_place(selection.masked_fill)

    # --- comparisons, as numbers of the tensor's dtype --------------------------------

    eq_ = in_place(comparison.eq)
    ne_ = not_equal_ = in_place(comparison.ne)
    lt_ = less_ = in_place(comparison.lt)
    le_ = less_equal_ = in_place(comparison.le)
    gt_ = greater_ = in_place(comparison.gt)
    ge_ = greater_equal_ = in_place(comparison.ge)
    logical_and_ = in_place(comparison.logical_and)
    logical_or_ = in_place(comparison.logical_or)
    logical_xor_ = in_place(comparison.logical_xor)
    logical_not_ = in_place(comparison.logical_not)
    heaviside_ = in_place(comparison.heaviside)
    bitwise_and_ = in_place(bitwise.bitwise_and)
    bitwise_or_ = in_place(bitwise.bitwise_or)
    bitwise_xor_ = in_place(bitwise.bitwise_xor)
    bitwise_not_ = in_place(bitwise.bitwise_not)
    bitwise_left_shift_ = in_place(bitwise.bitwise_left_shift)
    bitwise_right_shift_ = in_place(bitwise.bitwise_right_shift)
    gcd_ = in_place(bitwise.gcd)
    lcm_ = in_place(bitwise.lcm)
    __iand__ = operator(bitwise_and_)
    __ior__ = operator(bitwise_or_)
    __ixor__ = operator(bitwise_xor_)
    __ilshift__ = operator(bitwise_left_shift_)
    __irshift__ = operator(bitwise_right_shift_)

    # --- activations ------------------------------------------------------------------

    conj_physical_ = in_place(complex_parts.conj_in_place)
    relu_ = in_place(activation.relu)
    sigmoid_ = in_place(activation.sigmoid)

    def polygamma_(self, n: int) -> Value:
        """The derivative of order `n` of `digamma`, in place."""
        return _polygamma_(self, n)


def _polygamma(x: Variable, n: int) -> Value:
    return gamma_functions.polygamma(n, x)


_polygamma_ = in_place(_polygamma)
