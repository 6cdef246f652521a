"""Cases of ops that look at all elements of a dimension."""

from math import inf, nan
from typing import Final

from tests.ops.cases.case import (
    ALL,
    COMPLEX,
    DOUBLE,
    FLOATS,
    INEXACT,
    NUMBERS,
    REAL,
    A,
    Case,
    Dtype,
    Refused,
    V,
)

SHAPE = (2, 3, 4)
X = A(SHAPE)
#: All elements differ: there is one largest, and one order.
D = A(SHAPE, spaced=True)
POSITIVE = A(SHAPE, 0.5, 2)
TIES = V(((1, 3, 3), (2, 2, 0)))
WITH_NAN = V(((1.0, nan, 3.0), (nan, 2.0, 0.0)))
ONE_ZERO = V(((2.0, 0.0, -3.0), (0.5, 1.0, 4.0)))
TWO_ZEROS = V(((2.0, 0.0, 0.0), (0.5, 1.0, 4.0)))

_SUMS: Final = tuple(
    case
    for name, dtypes in (("sum", ALL), ("nansum", REAL), ("mean", INEXACT))
    for case in (
        Case(name, (X,), dtypes=dtypes),
        Case(name, (A(()),), dtypes=dtypes),
        Case(name, (A((0, 3)),), dtypes=dtypes, numeric=name != "mean"),
        Case(name, (A((0, 3)), 0), dtypes=dtypes, numeric=name != "mean"),
        Case(name, (A((2, 0)), 0), dtypes=dtypes),
        Case(name, (A(()), -1), {"keepdim": True}, dtypes=dtypes),
        Case(name, (X, 1), dtypes=dtypes),
        Case(name, (X, -1, True), dtypes=dtypes),
        Case(name, (X,), {"dim": (0, -1)}, dtypes=dtypes),
        Case(name, (X,), {"axis": 1, "keepdims": True}, dtypes=dtypes),
        Case(name, (X, ()), dtypes=dtypes),
        Case(name, (X,), {"dtype": Dtype("float64")}, dtypes=FLOATS),
    )
)

_MORE_SUMS: Final = (
    Case("nansum", (WITH_NAN,), numeric=False),
    Case("nansum", (WITH_NAN, 0), numeric=False),
    Case("nanmean", (X, 1)),
    Case("nanmean", (X,), {"keepdim": True}),
    Case("nanmean", (WITH_NAN, 1), numeric=False),
    Case(
        "mean",
        (X,),
        {"dtype": Dtype("float32")},
        dtypes=("int64", "float32"),
        numeric=False,
    ),
    Case("logsumexp", (X, 1), dtypes=INEXACT),
    Case("logsumexp", (X, (0, 2), True), dtypes=FLOATS),
    Case("logsumexp", (A(()), 0), dtypes=FLOATS),
    Case("logsumexp", (V((1e4, -1e4)), 0), dtypes=DOUBLE),
    Case("logsumexp", (V((-inf, -inf)), 0), dtypes=DOUBLE, numeric=False, second=False),
    Case("logsumexp", (A((3,), kind="i", low=0, high=9), 0)),
)

_PRODUCTS: Final = tuple(
    case
    for name in ("prod", "cumprod")
    for case in (
        Case(name, (A((2, 3)), 0), dtypes=NUMBERS),
        Case(name, (A((2, 3)), -1), dtypes=NUMBERS),
        Case(name, (A(()), 0), dtypes=INEXACT),
        Case(name, (A((2, 0)), 1), dtypes=INEXACT),
        Case(name, (ONE_ZERO, 1), dtypes=INEXACT),
        Case(name, (ONE_ZERO, 0), dtypes=INEXACT),
        Case(name, (TWO_ZEROS, 1), dtypes=INEXACT),
        Case(name, (A((3,), kind="b"), 0)),
    )
)

_MORE_PRODUCTS: Final = (
    Case("prod", (A((2, 3)),), dtypes=NUMBERS),
    Case("prod", (ONE_ZERO,), dtypes=INEXACT),
    Case("prod", (TWO_ZEROS,), dtypes=INEXACT),
    Case("prod", (A((2, 3)), 1, True), dtypes=INEXACT),
    Case("prod", (A((2, 3)),), {"dtype": Dtype("float64")}),
    Case("cumprod", (A((2, 3)), 1), {"dtype": Dtype("float64")}),
)

_EXTREMES: Final = tuple(
    case
    for name in ("max", "min")
    for case in (
        Case(name, (D,), dtypes=REAL),
        Case(name, (TIES,), dtypes=REAL, numeric=False),
        Case(name, (A(()),), dtypes=REAL),
        Case(name, (D, 1), dtypes=REAL),
        Case(name, (D, -1, True), dtypes=REAL),
        Case(name, (TIES, 1), dtypes=REAL, numeric=False),
        Case(name, (WITH_NAN, 0), numeric=False),
        Case(name, (WITH_NAN,), numeric=False),
        Case(name, (A(()), 0), dtypes=REAL),
        Case(name, (A((2, 0)), 0)),
        Case(name, (D, A(SHAPE)), dtypes=REAL),
        Case(f"a{name}", (D,), dtypes=REAL),
        Case(f"a{name}", (D, (0, 2)), dtypes=REAL),
        Case(f"a{name}", (D, 1, True), dtypes=REAL),
        Case(f"a{name}", (TIES, 1), dtypes=REAL, numeric=False),
        Case(f"a{name}", (A(()), 0), dtypes=REAL),
        Case(f"arg{name}", (D,), dtypes=REAL),
        Case(f"arg{name}", (D, 1), dtypes=REAL),
        Case(f"arg{name}", (TIES, -1, True), dtypes=REAL),
        Case(f"arg{name}", (WITH_NAN, 1)),
        Case(f"arg{name}", (A(()), 0), dtypes=REAL),
        Case(f"cum{name}", (D, 1), dtypes=REAL),
        Case(f"cum{name}", (TIES, 1), dtypes=REAL, numeric=False),
        Case(f"cum{name}", (WITH_NAN, 1), numeric=False),
        Case(f"cum{name}", (A(()), 0), dtypes=REAL),
    )
)

_MORE_EXTREMES: Final = (
    Case("aminmax", (D,), dtypes=REAL),
    Case("aminmax", (D,), {"dim": 1}, dtypes=REAL),
    Case("aminmax", (D,), {"dim": -1, "keepdim": True}, dtypes=REAL),
    Case("aminmax", (TIES,), {"dim": 1}, dtypes=REAL, numeric=False),
)

_STATISTICS: Final = tuple(
    case
    for name in ("var", "std", "var_mean", "std_mean")
    for case in (
        Case(name, (X,), dtypes=INEXACT),
        Case(name, (X, False), dtypes=FLOATS),
        Case(name, (X, 1), dtypes=INEXACT),
        Case(name, (X, (0, 2), False, True), dtypes=FLOATS),
        Case(name, (X,), {"dim": -1, "correction": 0.5, "keepdim": True}),
        Case(name, (A((1, 3)), 0), numeric=False, second=False),
    )
)

_COVARIANCES: Final = (
    Case("cov", (A((3, 5)),), dtypes=DOUBLE + COMPLEX),
    Case("cov", (A((5,)),), dtypes=DOUBLE),
    Case("cov", (A((3, 5)),), {"correction": 0}, dtypes=DOUBLE),
    Case("cov", (A((2, 3)),), {"fweights": V((1, 2, 1), kind="i")}, dtypes=DOUBLE),
    Case("cov", (A((2, 3)),), {"aweights": A((3,), 0.5, 2, kind="d")}, dtypes=DOUBLE),
    Case("corrcoef", (A((3, 5)),), dtypes=DOUBLE, numeric=False),
)

_RANKS: Final = tuple(
    case
    for name in ("median", "nanmedian")
    for case in (
        Case(name, (D,), dtypes=REAL),
        Case(name, (D, 1), dtypes=REAL),
        Case(name, (D, -1, True), dtypes=REAL),
        Case(name, (WITH_NAN, 1), numeric=False),
        Case(name, (WITH_NAN,), numeric=False),
        Case(name, (A(()), 0), dtypes=REAL),
    )
)

_MORE_RANKS: Final = (
    Case("mode", (TIES, 1), dtypes=REAL, numeric=False),
    Case("mode", (V((3, 1, 3, 1, 2)), 0, True), dtypes=REAL, numeric=False),
    Case("kthvalue", (D, 2)),
    Case("kthvalue", (D, 3, 1, True)),
    Case("quantile", (D, 0.3), dtypes=DOUBLE),
    Case("quantile", (D, 0.3, 1), dtypes=DOUBLE),
    Case("quantile", (D, 0.6, -1, True), dtypes=DOUBLE),
    Case("quantile", (D, V((0.1, 0.9), kind="d"), 1), dtypes=DOUBLE, graph=False),
    Case("quantile", (WITH_NAN, 0.5, 1), dtypes=DOUBLE, numeric=False),
    Case("nanquantile", (WITH_NAN, 0.5, 1), dtypes=DOUBLE, numeric=False),
    *(
        Case("quantile", (D, 0.3, 1), {"interpolation": how}, dtypes=DOUBLE)
        for how in ("lower", "higher", "nearest", "midpoint")
    ),
)

_RUNNING: Final = (
    Case("cumsum", (X, 1), dtypes=ALL),
    Case("cumsum", (X, -1), {"dtype": Dtype("float64")}, dtypes=REAL),
    Case("cumsum", (A(()), 0), dtypes=NUMBERS),
    Case("cumsum", (A((2, 0)), 1), dtypes=NUMBERS),
    Case("logcumsumexp", (X, 1), dtypes=FLOATS),
    Case("logcumsumexp", (A((2, 3)), 1), dtypes=("complex128",), second=False),
    Case("logcumsumexp", (A(()), 0)),
    Case("logcumsumexp", (V((50.0, -50.0, 0.0)), 0), dtypes=DOUBLE, numeric=False),
    Case("diff", (X,), dtypes=NUMBERS),
    Case("diff", (X, 2, 1), dtypes=NUMBERS),
    Case("diff", (A((3,), kind="b"),)),
    Case("diff", (A((2, 3)),), {"prepend": A((2, 1)), "append": A((2, 2))}),
    Case("trapezoid", (X,)),
    Case("trapezoid", (X,), {"dx": 0.5, "dim": 1}),
    Case("trapezoid", (A((2, 3)), A((3,)))),
    Case("trapz", (X,)),
    Case("gradient", (A((5,)),)),
    Case("gradient", (A((4, 5)),), {"spacing": 2.0, "dim": 1}),
    Case("gradient", (A((5,)),), {"edge_order": 2}),
    Case("gradient", (A((4,)),), {"spacing": (V((0, 1, 3, 4), kind="d"),)}),
    Case("gradient", (A((4,)),), {"spacing": (V((0, 1, 3, 4), kind="i"),)}, ("int64",)),
    Case("cumulative_trapezoid", (X,), {"dim": 0}),
    Case("cumulative_trapezoid", (A((2, 3)), A((2, 3)))),
)

_ORDER: Final = (
    Case("sort", (D,), dtypes=REAL),
    Case("sort", (D, 0, True), dtypes=REAL),
    Case("sort", (TIES,), {"stable": True}, dtypes=REAL, numeric=False),
    Case(
        "sort",
        (TIES,),
        {"stable": True, "descending": True},
        dtypes=REAL,
        numeric=False,
    ),
    Case("sort", (WITH_NAN,), {"descending": True}, numeric=False),
    Case("sort", (A(()), 0)),
    Case("argsort", (D, 1), dtypes=REAL, numeric=False),
    Case(
        "argsort",
        (TIES,),
        {"stable": True, "descending": True},
        dtypes=REAL,
        numeric=False,
    ),
    Case("msort", (D,), dtypes=REAL),
    Case("topk", (D, 2)),
    Case("topk", (D, 2, 1, False)),
    Case("topk", (A(()), 1), dtypes=FLOATS),
    Case("unique", (A((9,), 0, 4, kind="i"),), numeric=False),
    Case("unique", (A((3, 3), 0, 3, kind="i"), True, True, True), numeric=False),
    Case("unique", (V(((1, 2), (0, 3), (1, 2)), kind="i"),), {"dim": 0}, numeric=False),
    Case(
        "unique_consecutive", (V((1, 1, 2, 2, 1), kind="i"), True, True), numeric=False
    ),
    Case(
        "unique_consecutive",
        (V(((1, 1), (1, 1), (2, 1)), kind="i"),),
        {"dim": 0},
        numeric=False,
    ),
    Case(
        "searchsorted", (V((1.0, 3.0, 5.0)), A((2, 3), 0, 6, kind="d")), numeric=False
    ),
    Case("searchsorted", (V((1.0, 3.0, 5.0)), 3.0), {"right": True}, numeric=False),
    Case(
        "searchsorted",
        (V(((1, 3), (2, 4)), kind="i"), V(((3, 0), (3, 9)), kind="i")),
        {"side": "right", "out_int32": True},
    ),
    Case(
        "bucketize",
        (A((2, 3), 0, 6, kind="d"), V((1.0, 3.0, 5.0), kind="d")),
        numeric=False,
    ),
    Case("isin", (A((5,), 0, 5, kind="i"), V((1, 3), kind="i")), numeric=False),
    Case(
        "isin",
        (A((5,), 0, 5, kind="i"), V((1, 3), kind="i")),
        {"invert": True},
        numeric=False,
    ),
)

_COUNTS: Final = (
    Case("all", (A((2, 3)),), dtypes=ALL, numeric=False),
    Case("all", (A((2, 3), kind="b"), 1, True), numeric=False),
    Case("all", (A((2, 3), kind="b"), (0, 1)), numeric=False),
    Case("any", (A((2, 3)),), dtypes=ALL, numeric=False),
    Case("any", (A((2, 3), kind="b"), -1), numeric=False),
    Case("any", (A((0,), kind="b"),), numeric=False),
    Case("count_nonzero", (V(((1, 0), (2, 3))),), dtypes=ALL, numeric=False),
    Case("count_nonzero", (V(((1, 0), (2, 3))), 0), dtypes=ALL, numeric=False),
    Case("bincount", (A((9,), 0, 5, kind="i"),), numeric=False),
    Case(
        "bincount",
        (A((9,), 0, 5, kind="i"), A((9,), kind="d"), 7),
        dtypes=DOUBLE,
        numeric=False,
    ),
    Case("histc", (A((20,), kind="d"), 4, -1, 1), dtypes=DOUBLE, numeric=False),
    Case("histc", (A((20,), kind="d"), 4), dtypes=DOUBLE, numeric=False),
)

_RENORM: Final = (
    *(
        Case("renorm", (A((2, 3, 2)), p, dim, 1.5), dtypes=DOUBLE)
        for p in (1, 2, 3.0, 1.5, inf)
        for dim in (0, -1)
    ),
    Case("renorm", (A((2, 3)), 2, 0, 1.0), dtypes=("float64", "complex128")),
    Case("renorm", (A((2, 0)), 2, 0, 1.0), dtypes=("float64",)),
)

CASES: Final = (
    _SUMS
    + _RENORM
    + _MORE_SUMS
    + _PRODUCTS
    + _MORE_PRODUCTS
    + _EXTREMES
    + _MORE_EXTREMES
    + _STATISTICS
    + _COVARIANCES
    + _RANKS
    + _MORE_RANKS
    + _RUNNING
    + _ORDER
    + _COUNTS
)

M = A((2, 3))
I = A((3,), 0, 5, kind="i")  # noqa: E741 - integers
EMPTY = A((0, 3))
OUT_OF_RANGE = "Dimension out of range (expected to be in range of [-2, 1], but got 2)"

REFUSED: Final = (
    Refused("renorm", (M, 0, 1, 1.0), RuntimeError, "non-positive-norm not supported"),
    Refused("renorm", (M, 2, 1, -1.0), RuntimeError, "expected maxnorm to be >= 0"),
    Refused("renorm", (I, 2, 0, 1.0), RuntimeError, "needs at least 2 dimensions"),
    Refused("renorm", (M, 2, 2, 1.0), IndexError, OUT_OF_RANGE),
    *(
        Refused(name, (M, 2), IndexError, OUT_OF_RANGE)
        for name in (
            *("sum", "mean", "prod", "logsumexp", "max", "amin", "argmax", "all"),
            *("var", "median", "cumsum", "cumprod", "cummax", "sort", "topk"),
        )
        if name != "topk"
    ),
    Refused("topk", (M, 1, 2), IndexError, OUT_OF_RANGE),
    Refused(
        "sum",
        (A(()), 1),
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    ),
    Refused(
        "sum",
        (M, (0, 0)),
        RuntimeError,
        "dim 0 appears multiple times in the list of dims",
    ),
    Refused("mean", (I,), RuntimeError, "mean(): could not infer output dtype. Input"),
    Refused(
        "var",
        (I,),
        RuntimeError,
        "std and var only support floating point and complex dtypes",
    ),
    Refused(
        "max",
        (A((0,)),),
        RuntimeError,
        "max(): Expected reduction dim to be specified for input.numel() == 0.",
    ),
    Refused(
        "max",
        (EMPTY, 0),
        IndexError,
        "max(): Expected reduction dim 0 to have non-zero size.",
    ),
    Refused(
        "amax",
        (EMPTY, 0),
        IndexError,
        "amax(): Expected reduction dim 0 to have non-zero size.",
    ),
    Refused(
        "argmax",
        (A((0,)),),
        IndexError,
        "argmax(): Expected reduction dim to be specified for input.numel() == 0.",
    ),
    Refused(
        "median",
        (EMPTY, 0),
        IndexError,
        "median(): Expected reduction dim 0 to have non-zero size.",
    ),
    Refused(
        "kthvalue",
        (A((3,)), 4),
        RuntimeError,
        "kthvalue(): selected number k out of range for dimension 0",
    ),
    Refused("topk", (A((3,)), 4), RuntimeError, "selected index k out of range"),
    Refused(
        "quantile",
        (M, 1.5),
        RuntimeError,
        "quantile() q must be in the range [0, 1] but got 1.5",
    ),
    Refused(
        "diff",
        (A(()),),
        RuntimeError,
        "diff expects input to be at least one-dimensional",
    ),
    Refused(
        "bincount",
        (V((-1, 2), kind="i"),),
        RuntimeError,
        "bincount only supports 1-d non-negative integral inputs.",
    ),
)
