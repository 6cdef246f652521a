"""Cases of indexing, and of what gathers and scatters by indices and masks."""

from typing import Final

from tests.ops.cases.case import ALL, FLOATS, INEXACT, A, Case, Refused, V

X = A((2, 3, 4))
M = A((3, 4))
NUMBER = A(())
#: Places along a dimension of length 3, some of them twice.
ROWS = V((2, 0, 2), kind="i")
ONCE = V((2, 0), kind="i")
EACH = V(((0, 2, 1, 0), (2, 2, 0, 1)), kind="i")
DIFFERENT = V(((0, 2, 1, 0), (2, 0, 0, 1)), kind="i")
MASK = V((True, False, True), kind="b")
GRID = V(((True, False, True, False),) * 3, kind="b")
TOO_LARGE: Final = "fails in backward, as the source is larger than the index"
ALL_OF_IT: Final = slice(None)

_BRACKETS: Final = tuple(
    Case("Tensor.__getitem__", (x, index), dtypes=dtypes)
    for x, index, dtypes in (
        (X, 1, ALL),
        (X, -1, FLOATS),
        (X, (0, 2), FLOATS),
        (X, (1, 2, 3), FLOATS),
        (X, slice(1, None), ALL),
        (X, slice(None, None, 2), FLOATS),
        (X, (ALL_OF_IT, slice(0, 2)), FLOATS),
        (X, (ALL_OF_IT, ALL_OF_IT), FLOATS),
        (X, slice(5, 1), FLOATS),
        (X, (0, None, slice(1, 3)), FLOATS),
        (X, (..., 1), FLOATS),
        (X, (1, ..., 2), FLOATS),
        (X, ..., FLOATS),
        (X, None, FLOATS),
        (X, (ALL_OF_IT, None), FLOATS),
        (X, (), FLOATS),
        (X, True, FLOATS),
        (X, False, FLOATS),
        (X, [1, 0], ALL),
        (X, V((1, 1), kind="i"), INEXACT),
        (X, (ALL_OF_IT, ROWS), INEXACT),
        (X, (..., V((3, 3), kind="i")), FLOATS),
        (X, (0, ALL_OF_IT, V((1, 3), kind="i")), FLOATS),
        (X, (V((1, 0), kind="i"), ALL_OF_IT, V((1, 3), kind="i")), FLOATS),
        (X, (ALL_OF_IT, V((1, 0), kind="i"), V((1, 3), kind="i")), FLOATS),
        (X, (V(((0,), (1,)), kind="i"), ROWS), FLOATS),
        (X, (ALL_OF_IT, MASK), FLOATS),
        (M, GRID, ALL),
        (X, (ALL_OF_IT, GRID), FLOATS),
        (X, (V((1, 0), kind="i"), None, MASK), FLOATS),
        (X, V(1, kind="i"), FLOATS),
        (X, [], FLOATS),
        (NUMBER, ..., FLOATS),
        (NUMBER, None, FLOATS),
        (NUMBER, True, FLOATS),
    )
)

_GATHERED: Final = (
    Case("select", (X, 1, -1), dtypes=ALL),
    Case("narrow", (X, 1, 1, 2), dtypes=ALL),
    Case("narrow", (X, -1, -3, 2)),
    Case("gather", (M, 0, EACH), dtypes=ALL),
    Case("gather", (M, 1, V(((3, 0), (1, 1)), kind="i"))),
    Case("gather", (NUMBER, 0, V((0, 0), kind="i"))),
    Case("gather", (A((3,)), 0, V((2, 2), kind="i"))),
    Case("take_along_dim", (M, EACH, 0), dtypes=ALL),
    Case("take_along_dim", (M, V(((1,), (0,), (3,)), kind="i"), 1)),
    Case("take_along_dim", (M, V((11, 0), kind="i"))),
    Case("index_select", (M, 0, ROWS), dtypes=ALL),
    Case("index_select", (X, -1, ROWS), dtypes=INEXACT),
    Case("index_select", (NUMBER, 0, V(0, kind="i"))),
    Case("take", (M, V(((0, 11), (5, -1)), kind="i")), dtypes=ALL),
    Case("masked_select", (M, GRID), dtypes=ALL),
    Case("masked_select", (A((4,)), GRID)),
    Case("nonzero", (V(((1, 0), (2, 3))),), dtypes=ALL, numeric=False),
    Case(
        "nonzero", (V(((1, 0), (2, 3)), kind="i"),), {"as_tuple": True}, numeric=False
    ),
    Case("argwhere", (V(((1, 0), (2, 3)), kind="i"),), numeric=False),
    Case("unravel_index", (V((5, 1), kind="i"), (2, 3)), numeric=False),
    Case("nn.functional.one_hot", (V((0, 2, 1), kind="i"),), numeric=False),
    Case("nn.functional.one_hot", (V(((0, 2), (1, 1)), kind="i"), 4), numeric=False),
)

_SCATTERED: Final = (
    Case("scatter", (M, 0, DIFFERENT, A((2, 4))), dtypes=INEXACT),
    Case(
        "scatter", (M, 1, V(((3, 0), (1, 2)), kind="i"), A((3, 4))), differs=TOO_LARGE
    ),
    Case("scatter", (M, 0, DIFFERENT, 2.5)),
    Case("scatter", (M, 0, DIFFERENT), {"value": 2.5}),
    Case("scatter_add", (M, 0, EACH, A((2, 4))), dtypes=INEXACT),
    Case(
        "scatter_add",
        (M, 1, V(((3, 3), (1, 2)), kind="i"), A((3, 4))),
        differs=TOO_LARGE,
    ),
    *(
        Case(
            name,
            (A((3, 4), 0.5, 2, spaced=True), 0, index, A((2, 4), 0.6, 1.9), reduce),
            {"include_self": include},
            dtypes=FLOATS,
        )
        for name, index, reductions in (
            ("scatter_reduce", EACH, ("sum", "prod", "mean", "amax", "amin")),
            ("index_reduce", V((2, 2), kind="i"), ("prod", "mean", "amax", "amin")),
        )
        for reduce in reductions
        for include in (True, False)
    ),
    Case(
        "scatter_reduce",
        (A((2,)), 0, V((0, 0, 1), kind="i"), V((0.0, 2.0, 0.0)), "prod"),
    ),
    Case("index_add", (M, 0, ROWS, A((3, 4))), dtypes=INEXACT),
    Case("index_add", (M, 1, ONCE, A((3, 2))), {"alpha": 2}),
    Case("index_copy", (M, 0, ONCE, A((2, 4))), dtypes=INEXACT),
    Case("index_fill", (M, 0, ROWS, 2.5)),
    Case("index_fill", (M, 1, ROWS, NUMBER)),
    Case("index_put", (M, (ONCE,), A((2, 4)))),
    Case("index_put", (M, (ROWS, V((1, 0, 1), kind="i")), A((3,)), True)),
    Case("index_put", (M, (MASK,), A((4,)))),
    Case("index_put", (M, (GRID,), NUMBER)),
    Case("put", (M, V((0, 11), kind="i"), A((2,)))),
    Case("put", (M, V((0, 0), kind="i"), A((2,)), True)),
    Case("masked_scatter", (M, GRID, A((7,)))),
)

_IN_PLACE: Final = (
    Case("Tensor.scatter_", (M, 0, DIFFERENT, A((2, 4)))),
    Case("Tensor.scatter_add_", (M, 0, EACH, A((2, 4)))),
    Case("Tensor.index_add_", (M, 0, ROWS, A((3, 4)))),
    Case("Tensor.index_copy_", (M, 0, ONCE, A((2, 4)))),
    Case("Tensor.index_fill_", (M, 0, ROWS, 2.5)),
    Case("Tensor.index_put_", (M, (ONCE,), A((2, 4)))),
    Case("Tensor.masked_scatter_", (M, GRID, A((7,)))),
)

CASES: Final = _BRACKETS + _GATHERED + _SCATTERED + _IN_PLACE

GET = "Tensor.__getitem__"

REFUSED: Final = (
    Refused(GET, (M, 3), IndexError, "index 3 is out of bounds for dimension 0 with"),
    Refused(GET, (M, (0, -5)), IndexError, "index -5 is out of bounds for dimension 1"),
    Refused(
        GET, (X, (None, 5)), IndexError, "index 5 is out of bounds for dimension 1"
    ),
    Refused(
        GET, (M, (0, 0, 0)), IndexError, "too many indices for tensor of dimension"
    ),
    Refused(GET, (NUMBER, -1), IndexError, "index -1 is out of bounds for dimension 0"),
    Refused(GET, (M, 1.5), IndexError, "are valid indices (got float)"),
    Refused(GET, (M, V((0.5,))), IndexError, "must be long, int, byte or bool tensors"),
    Refused(GET, (M, slice(None, None, -1)), ValueError, "step must be greater than"),
    Refused(GET, (M, slice(None, None, 0)), ValueError, "slice step cannot be zero"),
    Refused(GET, (NUMBER, 0), IndexError, "invalid index of a 0-dim tensor"),
    Refused(
        GET, (NUMBER, ALL_OF_IT), IndexError, "cannot be applied to a 0-dim tensor"
    ),
    Refused(
        GET, (M, V((5,), kind="i")), IndexError, "index 5 is out of bounds for dim"
    ),
    Refused(
        GET,
        (M, V((True, False), kind="b")),
        IndexError,
        "The shape of the mask [2] at index 0 does not match the shape of the indexed "
        "tensor [3, 4] at index 0",
    ),
    Refused(
        GET,
        (M, (V((0, 1), kind="i"), V((0, 1, 2), kind="i"))),
        IndexError,
        "indexing tensors could not be broadcast together with shapes [2], [3]",
    ),
    Refused(
        "select", (M, 0, 3), IndexError, "select(): index 3 out of range for tensor"
    ),
    Refused("narrow", (M, 0, 2, 2), RuntimeError, "exceeds dimension size (3)"),
    Refused("gather", (M, 0, ROWS), RuntimeError, "the same number of dimensions as"),
    Refused("gather", (M, 0, V(((9,),), kind="i")), RuntimeError, "index 9 is out of"),
    Refused("gather", (A((1, 4)), 1, EACH), RuntimeError, "Size does not match at"),
    Refused(
        "index_select", (M, 0, V(9, kind="i")), IndexError, "index out of range in"
    ),
    Refused(
        "index_select", (M, 0, A((2,))), RuntimeError, "Expected dtype int32 or int"
    ),
    Refused("take", (M, V(99, kind="i")), IndexError, "tried to access index 99 on a"),
    Refused(
        "masked_select", (M, A((4,))), RuntimeError, "expected BoolTensor for mask"
    ),
    Refused(
        "scatter", (M, 0, V(((9,),), kind="i"), 1.0), RuntimeError, "index 9 is out"
    ),
    Refused(
        "scatter_add",
        (M, 0, EACH, V(((1,),), kind="i")),
        RuntimeError,
        "scatter(): Expected self.dtype to be equal to src.dtype",
    ),
    Refused(
        "scatter_reduce",
        (M, 0, EACH, A((2, 4)), "most"),
        RuntimeError,
        "reduce argument must be either sum, prod, mean, amax or amin, got most",
    ),
    Refused(
        "index_add",
        (M, 0, ROWS, A((3, 5))),
        RuntimeError,
        "source tensor shape must match self tensor shape",
    ),
    Refused(
        "masked_scatter",
        (M, GRID, A((2,))),
        RuntimeError,
        "Number of elements of source < number of ones in mask",
    ),
    Refused(
        "nn.functional.one_hot",
        (V((0, 2), kind="i"), 2),
        RuntimeError,
        "Class values must be smaller than num_classes.",
    ),
)
