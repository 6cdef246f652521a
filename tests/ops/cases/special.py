"""Cases of special functions: Bessel's, zeta, the incomplete gamma functions."""

from math import inf, nan
from typing import Final

from tests.ops.cases.case import DOUBLE, FLOATS, A, Case, Refused, V
from tests.ops.cases.elementwise import REAL_WITH_INTS, unary

#: PyTorch's slopes at infinities and NaN are accidents.
FINITE: Final = (0.0, -0.0, 1.0, -1.0, 7.9, 8.1, -8.1, 29.0, 31.0, -31.0)

NO_HALF: Final = tuple(one for one in REAL_WITH_INTS if one != "float16")

BESSEL: Final = (
    *unary("i0", -9, 9, dtypes=REAL_WITH_INTS, edges=FINITE, in_place=False),
    *(
        case
        for name in ("i0e", "i1", "i1e")
        for case in unary(
            name,
            -9,
            9,
            module="special.",
            # PyTorch has no gradient of i1 and i1e in half precision.
            dtypes=REAL_WITH_INTS if name == "i0e" else NO_HALF,
            edges=FINITE,
            in_place=False,
        )
    ),
)

#: The derivative by the first argument is missing in PyTorch, and here.
ORDER: Final = A((2, 3), 1.2, 4, kind="d")

ZETA: Final = (
    Case("special.zeta", (ORDER, A((2, 3), 0.5, 4)), dtypes=DOUBLE, rtol=1e-9),
    Case("special.zeta", (ORDER, A((3,), 0.5, 4)), dtypes=DOUBLE, rtol=1e-9),
    Case("special.zeta", (2.5, A((2, 3), 0.5, 4)), dtypes=DOUBLE, rtol=1e-9),
    Case("special.zeta", (ORDER, 2.0), dtypes=DOUBLE, rtol=1e-9, numeric=False),
    Case(
        "special.zeta",
        (
            V(((0.5,), (1.0,), (1.5,), (2.0,), (3.0,), (30.0,)), kind="d"),
            V((-1.5, -1.0, 0.0, 0.5, 1.0, 3.0, 100.0, nan), kind="d"),
        ),
        dtypes=("float64",),
        rtol=1e-9,
    ),
)


def gammas(name: str, module: str) -> tuple[Case, ...]:
    path = f"{module}{name}"
    shape = A((2, 3), 0.2, 5, kind="d")
    # PyTorch's own error is 1e-9 where the first argument is above 20.
    return (
        Case(path, (shape, A((2, 3), 0.2, 5)), dtypes=FLOATS, rtol=1e-11),
        Case(path, (shape, A((3,), 0.2, 5)), dtypes=DOUBLE, rtol=1e-11),
        Case(path, (A((), 0.2, 5, kind="d"), A((2, 0), 0.2, 5)), dtypes=("float64",)),
        Case(
            path,
            (
                V(((-1.0,), (0.0,), (0.5,), (1.0,), (15.0,), (inf,)), kind="d"),
                V((-1.0, 0.0, 0.5, 1.0, 14.0, 90.0, inf, nan), kind="d"),
            ),
            dtypes=("float64",),
            rtol=1e-11,
        ),
    )


CASES: Final = (
    *BESSEL,
    *ZETA,
    *gammas("igamma", ""),
    *gammas("igammac", ""),
    *gammas("gammainc", "special.")[:1],
    *gammas("gammaincc", "special.")[:1],
)

X: Final = A((2, 3))

REFUSED: Final[tuple[Refused, ...]] = (
    *(
        Refused(
            f"{module}{name}",
            (X,),
            NotImplementedError,
            f"\"{kernel}\" not implemented for 'ComplexFloat'",
            dtype="complex64",
        )
        for module, name, kernel in (
            ("", "i0", "i0_vml_cpu"),
            ("special.", "i0e", "i0e_cpu"),
            ("special.", "i1", "i1_cpu"),
            ("special.", "i1e", "i1e_cpu"),
        )
    ),
    Refused(
        "special.zeta",
        (X, X),
        NotImplementedError,
        "\"zeta_cpu\" not implemented for 'Half'",
        dtype="float16",
    ),
    Refused(
        "igamma",
        (X, 2.0),
        TypeError,
        "igamma(): argument 'other' (position 2) must be Tensor, not float",
    ),
)
