"""Cases of ops on each element."""

from collections.abc import Iterator
from math import inf, nan
from typing import Any, Final

from tests.ops.cases.case import (
    ALL,
    BOOL,
    COMPLEX,
    DOUBLE,
    FLOATS,
    INEXACT,
    INTS,
    NUMBERS,
    REAL,
    A,
    Case,
    V,
)

#: Where functions bend, jump or end.
EDGES: Final = (nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 3.0, -3.0, 6.0)

#: Those where PyTorch's digamma has a slope: at its poles it is any large number.
NO_POLES: Final = tuple(x for x in EDGES if x not in (-1, -3))

#: Shapes that broadcast with each other.
PAIRS: Final = (
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((2, 3), ()),
    ((), (2, 3)),
    ((), ()),
    ((1, 3), (0, 3)),
)

WITH_INTS: Final = (*INEXACT, "int64", "uint8", "bool")
REAL_WITH_INTS: Final = (*FLOATS, "int64", "uint8", "bool")


# --- functions of one tensor ------------------------------------------------------


def unary(
    name: str,
    low: float = -2.0,
    high: float = 2.0,
    *,
    dtypes: tuple[str, ...] = FLOATS,
    module: str = "",
    edges: tuple[float, ...] = EDGES,
    in_place: bool = True,
    args: tuple[Any, ...] = (),
    **options: Any,
) -> Iterator[Case]:
    """A function of one tensor, in every shape, in place, and at its edges."""
    path = f"{module}{name}"
    inexact = tuple(dtype for dtype in dtypes if dtype in INEXACT) or dtypes
    yield Case(path, (A((2, 3), low, high), *args), dtypes=dtypes, **options)
    yield Case(path, (A((), low, high), *args), dtypes=inexact[:1], **options)
    yield Case(path, (A((2, 0), low, high), *args), dtypes=inexact[:1], **options)
    if in_place:
        yield Case(
            f"Tensor.{name}_", (A((3,), low, high), *args), dtypes=inexact, **options
        )
    if edges:
        options = {**options, "numeric": False, "second": False}
        yield Case(path, (V(edges), *args), dtypes=("float64",), **options)


UNARY: Final = (
    *unary("exp", dtypes=WITH_INTS),
    *unary("exp2", dtypes=WITH_INTS),
    *unary("expm1", dtypes=WITH_INTS),
    *unary("log", 0.2, 3, dtypes=WITH_INTS),
    *unary("log2", 0.2, 3, dtypes=WITH_INTS),
    *unary("log10", 0.2, 3, dtypes=WITH_INTS),
    *unary("log1p", -0.7, 3, dtypes=WITH_INTS),
    *unary("sqrt", 0.2, 3, dtypes=WITH_INTS),
    *unary("rsqrt", 0.2, 3, dtypes=WITH_INTS),
    *unary("sin", dtypes=WITH_INTS),
    *unary("cos", dtypes=WITH_INTS),
    *unary("tan", -1.2, 1.2, dtypes=WITH_INTS),
    *unary("asin", -0.9, 0.9, dtypes=WITH_INTS),
    *unary("acos", -0.9, 0.9, dtypes=WITH_INTS),
    *unary("atan", -0.9, 0.9, dtypes=WITH_INTS),
    *unary("sinh", dtypes=WITH_INTS),
    *unary("cosh", dtypes=WITH_INTS),
    *unary("tanh", dtypes=WITH_INTS),
    *unary("asinh", dtypes=WITH_INTS, in_place=False),
    *unary("acosh", 1.2, 3, dtypes=WITH_INTS, in_place=False),
    *unary("atanh", -0.9, 0.9, dtypes=WITH_INTS, in_place=False),
    *unary("arcsin", -0.9, 0.9, edges=()),
    *unary("arccos", -0.9, 0.9, edges=()),
    *unary("arctan", edges=()),
    *unary("arcsinh", edges=(), in_place=False),
    *unary("arccosh", 1.2, 3, edges=(), in_place=False),
    *unary("arctanh", -0.9, 0.9, edges=(), in_place=False),
    *(
        Case(f"Tensor.{name}_", (A((3,), 1.2, 3),), differs="no gradient in PyTorch")
        for name in ("asinh", "acosh")
    ),
    Case("Tensor.atanh_", (A((3,), -0.9, 0.9),), differs="no gradient in PyTorch"),
    *unary("sinc", dtypes=WITH_INTS),
    *unary("deg2rad", -180, 180, dtypes=REAL_WITH_INTS),
    *unary("rad2deg", dtypes=REAL_WITH_INTS),
    *unary("erf", dtypes=REAL_WITH_INTS),
    *unary("erfc", dtypes=REAL_WITH_INTS),
    *unary("erfinv", -0.9, 0.9, dtypes=REAL_WITH_INTS),
    *unary("lgamma", 0.2, 5, dtypes=REAL_WITH_INTS, rtol=1e-8),
    *unary("digamma", 0.2, 5, dtypes=REAL_WITH_INTS, edges=NO_POLES, rtol=1e-8),
    *unary("sigmoid", dtypes=WITH_INTS),
    *unary("logit", 0.1, 0.9, dtypes=REAL_WITH_INTS),
    *unary("logit", -0.5, 1.5, args=(0.1,)),
    *unary("neg", dtypes=NUMBERS),
    *unary("negative", dtypes=NUMBERS, edges=()),
    *unary("positive", dtypes=NUMBERS, in_place=False),
    *unary("abs", dtypes=NUMBERS, in_place=False),
    Case("Tensor.abs_", (A((3,)),)),
    *unary("absolute", dtypes=NUMBERS, edges=(), in_place=False),
    *unary("sign", dtypes=(*REAL, *BOOL)),
    *unary("sgn", dtypes=ALL),
    *unary("floor", dtypes=REAL),
    *unary("ceil", dtypes=REAL),
    *unary("trunc", dtypes=REAL),
    *unary("fix", dtypes=REAL, edges=()),
    *unary("round", dtypes=REAL),
    *unary("frac"),
    *unary("square", dtypes=ALL),
    *unary("reciprocal", 0.3, 2, dtypes=WITH_INTS),
    *unary("relu", dtypes=REAL),
    *unary("nan_to_num", dtypes=(*FLOATS, "int64")),
    *unary("conj_physical", dtypes=NUMBERS),
    *unary("angle", dtypes=WITH_INTS, in_place=False),
)

SPECIAL: Final = tuple(
    case
    for name, low, high in (
        ("entr", 0.2, 2),
        ("erfcx", -2, 2),
        ("erfinv", -0.9, 0.9),
        ("expit", -2, 2),
        ("gammaln", 0.3, 3),
        ("log_ndtr", -2, 2),
        ("ndtr", -2, 2),
        ("ndtri", 0.1, 0.9),
        ("psi", 0.3, 3),
    )
    for case in unary(
        name, low, high, module="special.", in_place=False, dtypes=DOUBLE, rtol=1e-8
    )
    if not (name == "psi" and isinstance(case.args[0], V))
)

# --- functions of two tensors -----------------------------------------------------


def binary(
    name: str,
    first: tuple[float, float] = (-2, 2),
    second: tuple[float, float] = (-2, 2),
    *,
    dtypes: tuple[str, ...] = FLOATS,
    module: str = "",
    in_place: bool = True,
    edges: bool = True,
    **options: Any,
) -> Iterator[Case]:
    """A function of two tensors: broadcasting, promotion, in place, at its edges."""
    path = f"{module}{name}"
    inexact = tuple(dtype for dtype in dtypes if dtype in INEXACT)
    for number, (shape, other) in enumerate(PAIRS):
        yield Case(
            path,
            (A(shape, *first), A(other, *second)),
            dtypes=inexact[:1] if number else dtypes,
            **options,
        )
    if in_place:
        yield Case(
            f"Tensor.{name}_",
            (A((2, 3), *first), A((3,), *second)),
            dtypes=inexact,
            **options,
        )
    yield Case(
        path, (A((2, 3), *first), A((3,), *second, kind="d")), **options
    )  # one gradient
    yield Case(path, (A((2,), *first, kind="d"), A((2, 2), *second)), **options)
    if edges:
        options = {**options, "numeric": False, "second": False}
        pairs = [(x, y) for x in EDGES for y in (nan, inf, -inf, 0.0, 1.0, -1.0, 2.0)]
        yield Case(
            path,
            (V(tuple(x for x, _ in pairs)), V(tuple(y for _, y in pairs))),
            dtypes=("float64",),
            **options,
        )


BINARY: Final = (
    *binary("add", dtypes=ALL),
    *binary("sub", dtypes=NUMBERS),
    *binary("subtract", dtypes=NUMBERS, edges=False),
    *binary("mul", dtypes=ALL),
    *binary("multiply", dtypes=ALL, edges=False),
    *binary("div", second=(0.5, 2), dtypes=INEXACT),
    *binary("true_divide", second=(0.5, 2), edges=False),
    *binary("divide", second=(0.5, 2), edges=False),
    *binary("remainder", (2, 5), (0.6, 0.9)),
    *binary("fmod", (2, 5), (0.6, 0.9)),
    *binary("pow", (0.3, 2), dtypes=INEXACT),
    *binary("float_power", (0.3, 2), dtypes=("float64", "complex128")),
    *binary("rsub", dtypes=NUMBERS, in_place=False),
    *binary("atan2", dtypes=REAL_WITH_INTS),
    *binary("arctan2", edges=False),
    *binary("hypot"),
    *binary("logaddexp", in_place=False),
    *binary("logaddexp2", in_place=False),
    *binary("xlogy", second=(0.2, 2), dtypes=REAL_WITH_INTS),
    *binary("copysign"),
    *binary("maximum", dtypes=(*REAL, *BOOL), in_place=False),
    *binary("minimum", dtypes=(*REAL, *BOOL), in_place=False),
    *binary("fmax", dtypes=(*REAL, *BOOL), in_place=False),
    *binary("fmin", dtypes=(*REAL, *BOOL), in_place=False),
    *binary("ldexp", dtypes=FLOATS),
    *binary(
        "xlog1py", second=(-0.5, 2), module="special.", in_place=False, dtypes=DOUBLE
    ),
)

# --- the rest, one by one ---------------------------------------------------------

X: Final = A((2, 3))
POSITIVE: Final = A((2, 3), 0.3, 2)

NUMBERS_BESIDE: Final = tuple(
    Case(
        f"Tensor.__{operator}__", (X if number > 0 else POSITIVE, number), dtypes=kinds
    )
    for operator, numbers, kinds in (
        ("add", (2, 1.5, True), INEXACT),
        ("radd", (2, 1.5), INEXACT),
        ("sub", (2, 1.5), INEXACT),
        ("rsub", (2, 1.5), INEXACT),
        ("mul", (2, 1.5, 2j), INEXACT),
        ("truediv", (2, 1.5), INEXACT),
        ("mod", (2, 1.5), FLOATS),
    )
    for number in numbers
    if not isinstance(number, complex)
)

OTHERS: Final = (
    Case("Tensor.__rtruediv__", (POSITIVE, 2), dtypes=INEXACT),
    Case("Tensor.__rtruediv__", (POSITIVE, 1.5), dtypes=INEXACT),
    Case("Tensor.__rmod__", (POSITIVE, 5.3), differs="has no gradient in PyTorch"),
    Case("Tensor.__mul__", (X, 2j), dtypes=("float64", "complex128", "complex64")),
    Case("Tensor.__add__", (X, 2j), dtypes=("float64", "float32", "complex64")),
    Case("Tensor.__neg__", (X,), dtypes=INEXACT),
    Case("Tensor.__pos__", (X,), dtypes=INEXACT),
    Case("Tensor.__abs__", (X,), dtypes=INEXACT),
    *(
        Case(name, (X, A((3,))), {"alpha": alpha}, dtypes=NUMBERS)
        for name in ("add", "sub", "rsub", "Tensor.add_", "Tensor.sub_")
        for alpha in (2, -1)
    ),
    Case("add", (X, A((3,))), {"alpha": 0.5}, dtypes=INEXACT),
    Case("add", (X, A((3,))), {"alpha": 2j}, dtypes=COMPLEX),
    Case("add", (X, 3), {"alpha": 2}, dtypes=NUMBERS),
    Case("sub", (X, 3), {"alpha": 2}, dtypes=NUMBERS),
    Case("rsub", (X, 3), {"alpha": 2}, dtypes=NUMBERS),
    Case("rsub", (X, 1.5), dtypes=INEXACT),
    *(
        Case(name, (A((2, 3), -5, 5), A((3,), 0.6, 2)), {"rounding_mode": mode})
        for name in ("div", "Tensor.div_", "Tensor.divide")
        for mode in ("floor", "trunc")
    ),
    *(
        Case(
            "div",
            (V((7, -7, 6, -6)), V((2, 2, 3, 4))),
            {"rounding_mode": mode},
            dtypes=("int64", "int8", "float32"),
            numeric=False,
        )
        for mode in ("floor", "trunc")
    ),
    Case(
        "div",
        (V((7, -7, 6, -6)), -2.5),
        {"rounding_mode": "floor"},
        dtypes=REAL[:4],
        numeric=False,
    ),
    Case(
        "floor_divide",
        (V((7, -7, 6, -6)), V((2, 2, 3, 4))),
        dtypes=("int64", "int8"),
        numeric=False,
    ),
    Case(
        "floor_divide", (A((2, 3), kind="d"), A((3,), 0.5, 1, kind="d")), numeric=False
    ),
    Case(
        "Tensor.__floordiv__",
        (V((7, -7, 6)), 4),
        dtypes=("int64", "int32"),
        numeric=False,
    ),
    Case(
        "Tensor.__rfloordiv__",
        (V((7, -7, 6)), 9),
        dtypes=("int64", "int32"),
        numeric=False,
    ),
    Case("remainder", (A((2, 3), -5, 5), 1.7)),
    Case(
        "remainder",
        (V((7, -7, 6, -6)), V((2, -2, -4, 4))),
        dtypes=("int64", "int8"),
        numeric=False,
    ),
    Case("fmod", (A((2, 3), -5, 5), 1.7)),
    Case(
        "fmod",
        (V((7, -7, 6, -6)), V((2, -2, -4, 4))),
        dtypes=("int64", "int8"),
        numeric=False,
    ),
    *(
        Case("pow", (POSITIVE, exponent), dtypes=INEXACT)
        for exponent in (0, 1, 2, 3, -1, 0.5, 2.5, -1.5, 0.0)
    ),
    *(
        Case("pow", (V((0.0, 1, -2, nan)), exponent), numeric=False, second=False)
        for exponent in (0, 1, 2, -1, 0.5)
    ),
    Case("pow", (X, 2), dtypes=ALL),
    Case("pow", (A((2, 3), 0.3, 2), 1.5 + 0.5j), dtypes=COMPLEX),
    *(Case("pow", (base, X), dtypes=FLOATS) for base in (2, 0.5, 1.0)),
    Case("pow", (0, A((2, 3), 0.2, 2)), dtypes=FLOATS, second=False),
    *(Case("pow", (base, X), dtypes=COMPLEX) for base in (2.5, -1.0)),
    Case("pow", (A((2, 3), -2, -0.3, kind="r"), X), dtypes=COMPLEX),
    Case(
        "pow",
        (V((0.0, 0.0, 0.0, -2.0, 2.0)), V((0.0, 1.0, 2.0, 2.0, 0.0))),
        numeric=False,
        second=False,
    ),
    Case("Tensor.__pow__", (POSITIVE, 2)),
    Case("Tensor.__rpow__", (X, 2)),
    Case("Tensor.pow_", (POSITIVE, 3)),
    Case("float_power", (POSITIVE, 2), dtypes=("float64", "float32", "complex64")),
    Case("float_power", (2, X), dtypes=("float64", "float32")),
    Case(
        "float_power",
        (X, X),
        dtypes=("int64",),
        numeric=False,
        differs="negative powers",
    ),
    *(
        Case(name, (X, A((3,)), A((2, 1))), {"value": value}, dtypes=NUMBERS)
        for name in ("addcmul", "Tensor.addcmul_")
        for value in (1, 2)
    ),
    *(
        Case(name, (X, A((3,)), A((2, 1), 0.5, 2)), {"value": value}, dtypes=INEXACT)
        for name in ("addcdiv", "Tensor.addcdiv_")
        for value in (1, 0.5)
    ),
    *(
        Case(name, (X, A((3,)), weight), dtypes=INEXACT)
        for name in ("lerp", "Tensor.lerp_")
        for weight in (0.3, 0.8, A((2, 1)))
    ),
    # Halves are rounded to even in both, so no random numbers are needed.
    *(
        Case(
            "round",
            (V((0.5, 1.5, -2.5, 1.25, 123.456)),),
            {"decimals": n},
            numeric=False,
        )
        for n in (0, 1, 2, -1)
    ),
    Case("copysign", (X, -2.0)),
    Case("copysign", (X, 0)),
    *(
        Case(name, (A((3, 4)), *limits), dtypes=(*FLOATS, "int64"))
        for name in ("clamp", "clip", "Tensor.clamp_")
        for limits in ((-1, 1), (None, 1), (-1, None), (1, -1))
    ),
    Case(
        "clamp",
        (V((nan, inf, -inf, 0.0, 1.0, 2.0)),),
        {"min": 0, "max": 1},
        numeric=False,
        second=False,
    ),
    Case(
        "clamp",
        (V((1, 2, 3)),),
        {"min": 1.5},
        dtypes=("int64", "float32"),
        numeric=False,
    ),
    *(
        Case(name, (A((3, 4)), *limits), dtypes=FLOATS)
        for name in ("clamp", "Tensor.clamp_")
        for limits in (
            (A((4,), -2, 0), A((4,), 0, 2)),
            (A((3, 1)), None),
            (None, A(())),
            (A((4,)), A((4,))),
        )
    ),
    Case(
        "clamp",
        (V((0.0, 1.0, 2.0, nan)), V((0.0, 1.0, 1.0, 0.0)), V((1.0, 1.0, 2.0, nan))),
        numeric=False,
        second=False,
    ),
    *(Case(name, (A((3, 4)), 0.3), dtypes=REAL) for name in ("clamp_min", "clamp_max")),
    *(Case(name, (A((3, 4)), A((4,)))) for name in ("clamp_min", "clamp_max")),
    Case("where", (A((2, 3), kind="b"), X, A((3,))), dtypes=ALL),
    Case("where", (A((3,), kind="b"), X, 2.0), dtypes=INEXACT),
    Case("where", (A((3,), kind="b"), 2, X), dtypes=NUMBERS),
    Case("where", (A((), kind="b"), A(()), A((2,)))),
    Case("where", (A((3,), kind="b"), V((1.0, 2.0, 3.0), kind="d"), X), dtypes=COMPLEX),
    Case("where", (A((2, 3), kind="b"),), numeric=False),
    Case("Tensor.where", (X, A((2, 3), kind="b"), A((3,)))),
    *(
        Case(name, (X, A((2, 3), kind="b"), value), dtypes=INEXACT)
        for name in ("masked_fill", "Tensor.masked_fill_")
        for value in (2, 0.5, A(()))
    ),
    Case("masked_fill", (X, A((3,), kind="b"), -inf), numeric=False),
    Case("masked_fill", (A((3,)), A((2, 3), kind="b"), 1.0)),
    Case(
        "nan_to_num",
        (V((nan, inf, -inf, 1.0)), 1.5, 2.5, -2.5),
        dtypes=FLOATS,
        numeric=False,
    ),
    Case("threshold", (X, 0.3, 2.0)),
    Case("heaviside", (A((2, 3), kind="d"), A((3,), kind="d")), numeric=False),
    Case("heaviside", (V((-1.0, 0.0, 2.0), kind="d"), A((), kind="d")), numeric=False),
    Case("polygamma", (1, A((2, 3), 0.3, 4)), rtol=1e-8),
    Case("polygamma", (0, A((2, 3), 0.3, 4)), rtol=1e-8),
    Case("polygamma", (2, A((2, 3), 0.3, 4))),
    Case("mvlgamma", (A((2, 3), 2, 4), 3), rtol=1e-8),
    Case("xlogy", (X, 2.0)),
    Case("xlogy", (2, A((2, 3), 0.3, 2))),
    Case("xlogy", (0.0, A((2, 3), 0.3, 2))),
)

# --- complex numbers --------------------------------------------------------------

PARTS: Final = (
    Case("conj", (X,), dtypes=NUMBERS),
    Case("real", (X,), dtypes=INEXACT),
    Case("imag", (X,), dtypes=COMPLEX),
    Case("view_as_real", (X,), dtypes=COMPLEX),
    Case("view_as_complex", (A((3, 2)),), dtypes=("float64", "float32")),
    Case("complex", (X, A((3,))), dtypes=("float64", "float32")),
    Case("polar", (POSITIVE, A((3,))), dtypes=("float64", "float32")),
    Case("resolve_conj", (X,), dtypes=INEXACT),
    # A real tensor among complex ones gets the real part of its gradient.
    *(
        Case(name, (A((2, 3), 0.3, 2), A((3,), kind="r")), dtypes=COMPLEX)
        for name in ("add", "sub", "mul", "div", "pow")
    ),
    *(
        Case(name, (A((2, 3), 0.3, 2, kind="r"), A((3,))), dtypes=COMPLEX)
        for name in ("add", "sub", "mul", "div", "pow")
    ),
)

# --- comparisons, logic, bits -----------------------------------------------------

SAME: Final = V((1.0, 2.0, 3.0, 0.0, 5.0))
OTHER: Final = V((1.0, 3.0, 2.0, 0.0, 5.0))

QUESTIONS: Final = (
    *(
        Case(name, (SAME, OTHER), dtypes=ALL, numeric=False)
        for name in (
            "eq",
            "ne",
            "not_equal",
            "isclose",
            "equal",
            "allclose",
            "logical_and",
            "logical_or",
            "logical_xor",
        )
    ),
    *(
        Case(name, (SAME, OTHER), dtypes=(*REAL, *BOOL), numeric=False)
        for name in (
            "lt",
            "le",
            "gt",
            "ge",
            "less",
            "less_equal",
            "greater",
            "greater_equal",
        )
    ),
    *(
        Case(f"Tensor.__{name}__", (SAME, number), dtypes=REAL, numeric=False)
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
        for number in (2, 2.5)
    ),
    *(
        Case(name, (V((nan, inf, -inf, 0.0, 1.0)),), numeric=False)
        for name in (
            "isnan",
            "isinf",
            "isfinite",
            "isposinf",
            "isneginf",
            "isreal",
            "signbit",
            "logical_not",
        )
    ),
    *(
        Case(name, (SAME,), dtypes=ALL, numeric=False)
        for name in ("isnan", "isinf", "isfinite", "isreal", "logical_not")
    ),
    Case(
        "isclose",
        (V((1.0, nan, inf)), V((1.0 + 1e-9, nan, inf))),
        {"equal_nan": True},
        numeric=False,
    ),
    Case(
        "isclose",
        (V((1.0, 2.0)), V((1.1, 2.0))),
        {"rtol": 0.2, "atol": 0.0},
        numeric=False,
    ),
    *(
        Case(name, (SAME, OTHER), dtypes=(*INTS, *BOOL), numeric=False)
        for name in (
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "Tensor.__and__",
            "Tensor.__or__",
            "Tensor.__xor__",
        )
    ),
    *(
        Case(name, (SAME, OTHER), dtypes=INTS, numeric=False)
        for name in (
            "bitwise_left_shift",
            "bitwise_right_shift",
            "Tensor.__lshift__",
            "Tensor.__rshift__",
            "gcd",
            "lcm",
        )
    ),
    *(
        Case(name, (SAME,), dtypes=(*INTS, *BOOL), numeric=False)
        for name in ("bitwise_not", "Tensor.__invert__")
    ),
    *(
        Case(
            f"Tensor.{name}_",
            (V(SAME.values, kind="d"), V(OTHER.values, kind="d")),
            dtypes=("float64", "int64"),
            numeric=False,
        )
        for name in ("eq", "lt", "logical_and")
    ),
)

CASES: Final = (
    *UNARY,
    *SPECIAL,
    *BINARY,
    *NUMBERS_BESIDE,
    *OTHERS,
    *PARTS,
    *QUESTIONS,
)
