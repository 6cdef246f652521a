"""Cases of ops that arrange elements anew: views and copies, joined and taken apart."""

from typing import Final

from tests.ops.cases.case import ALL, FLOATS, INEXACT, A, Case, Refused, V

M = A((2, 3))
X = A((2, 3, 4))
NUMBER = A(())
VECTOR = A((4,))
ROW = A((1, 3, 1))
EMPTY = A((0, 3))

_LENGTHS: Final = (
    Case("reshape", (X, (4, -1)), dtypes=ALL),
    Case("reshape", (X, (6, 4)), dtypes=INEXACT),
    Case("reshape", (NUMBER, (1, 1))),
    Case("reshape", (EMPTY, (3, 0)), numeric=False),
    Case("Tensor.view", (X, 6, -1), dtypes=ALL),
    Case("Tensor.view", (X, (24,))),
    Case("Tensor.view_as", (M, A((3, 2), kind="d"))),
    Case("Tensor.reshape_as", (M, A((3, 2), kind="d"))),
    Case("ravel", (X,), dtypes=ALL),
    Case("flatten", (X,), dtypes=ALL),
    Case("flatten", (X, 1)),
    Case("flatten", (X, 0, -2)),
    Case("flatten", (NUMBER,)),
    Case("unflatten", (X, 2, (2, -1)), dtypes=ALL),
    Case("unflatten", (M, -1, (3, 1))),
    Case("squeeze", (ROW,), dtypes=ALL),
    Case("squeeze", (ROW, 0)),
    Case("squeeze", (ROW, 1)),
    Case("squeeze", (ROW, (0, -1))),
    Case("squeeze", (NUMBER, 0)),
    Case("unsqueeze", (M, 0), dtypes=ALL),
    Case("unsqueeze", (M, -1)),
    Case("unsqueeze", (NUMBER, 0)),
    *(
        Case(f"atleast_{n}d", (one,))
        for n in (1, 2, 3)
        for one in (NUMBER, VECTOR, M, X)
    ),
    Case("atleast_2d", (NUMBER, VECTOR)),
    Case("Tensor.expand", (ROW, 2, -1, 4), dtypes=ALL),
    Case("Tensor.expand", (NUMBER, (2, 3))),
    Case("Tensor.expand_as", (A((3,)), A((2, 3), kind="d"))),
    Case("broadcast_to", (A((3, 1)), (2, 3, 2))),
    Case("broadcast_tensors", (A((3, 1)), A((1, 2)))),
    Case("Tensor.sum_to_size", (M, 1, 3)),
    Case("Tensor.sum_to_size", (M, 3)),
    Case("Tensor.squeeze_", (ROW,)),
    Case("Tensor.squeeze_", (ROW, 0)),
    Case("Tensor.unsqueeze_", (M, 1)),
    Case("Tensor.contiguous", (M,)),
    Case("clone", (M,), dtypes=ALL),
)

_DIMENSIONS: Final = (
    Case("transpose", (X, 0, 2), dtypes=ALL),
    Case("transpose", (X, -1, 1)),
    Case("transpose", (NUMBER, 0, -1)),
    Case("swapaxes", (X, 0, 1)),
    Case("swapdims", (X, 0, 1)),
    Case("t", (M,), dtypes=ALL),
    Case("t", (VECTOR,)),
    Case("permute", (X, (2, 0, 1)), dtypes=ALL),
    Case("permute", (X, (-1, 0, 1))),
    Case("Tensor.permute", (X, 1, 2, 0)),
    Case("movedim", (X, 0, 2), dtypes=ALL),
    Case("moveaxis", (X, (0, 1), (-1, 0))),
    Case("adjoint", (M,), dtypes=INEXACT),
    Case("Tensor.t_", (M,)),
    Case("Tensor.transpose_", (X, 0, 2)),
)

_PLACES: Final = (
    Case("flip", (X, (0, -1)), dtypes=ALL),
    Case("Tensor.flip", (X, 1)),
    Case("fliplr", (M,)),
    Case("flipud", (M,)),
    Case("roll", (X, 1), dtypes=ALL),
    Case("roll", (X, (1, -2), (0, 2))),
    Case("rot90", (X,), dtypes=ALL),
    Case("rot90", (X, -1, (1, 2))),
)

_JOINED: Final = (
    Case("cat", ([M, A((1, 3))],), dtypes=ALL),
    Case("cat", ([M, A((2, 1))], -1)),
    Case("cat", ([M],)),
    Case("cat", ([M, A((0,))],)),
    Case("concat", ([M, M], 1)),
    Case("concatenate", ([M, V(((1, 2, 3),), kind="i")],)),
    Case("stack", ([M, M],), dtypes=ALL),
    Case("stack", ([M, M], -1)),
    Case("stack", ([NUMBER, NUMBER],)),
    Case("hstack", ([M, M],)),
    Case("hstack", ([VECTOR, VECTOR],)),
    Case("vstack", ([VECTOR, VECTOR],)),
    Case("dstack", ([M, M],)),
    Case("block_diag", (M, VECTOR, NUMBER), dtypes=ALL),
    Case("column_stack", ([VECTOR, A((4, 2))],)),
)

_APART: Final = (
    Case("split", (X, 2, 2), dtypes=ALL),
    Case("split", (VECTOR, 3)),
    Case("split", (X, [1, 3], 2)),
    Case("Tensor.split_with_sizes", (X, [1, 2], 1)),
    Case("chunk", (VECTOR, 3), dtypes=ALL),
    Case("chunk", (X, 2, -1)),
    Case("tensor_split", (VECTOR, 3)),
    Case("tensor_split", (X, (1, 2), 1)),
    Case("hsplit", (M, 3)),
    Case("vsplit", (M, 2)),
    Case("dsplit", (X, [1])),
    Case("unbind", (X,), dtypes=ALL),
    Case("unbind", (X, -1)),
    Case("unsafe_chunk", (VECTOR, 2)),
    Case("unsafe_split", (VECTOR, 2)),
)

_REPEATED: Final = (
    Case("Tensor.repeat", (M, 2, 1, 3), dtypes=ALL),
    Case("tile", (M, (2,))),
    Case("tile", (M, (2, 1, 2))),
    Case("repeat_interleave", (M, 2)),
    Case("repeat_interleave", (M, 2, 1)),
    Case("repeat_interleave", (M, V((1, 2), kind="i"), 0)),
    Case("repeat_interleave", (V((1, 2), kind="i"),), numeric=False),
    *(
        Case(
            "nn.functional.pad", (X, widths), dtypes=ALL if len(widths) == 2 else FLOATS
        )
        for widths in ((1, 2), (1, -1), (1, 0, 2, 1), (0, 0, 0, 0))
    ),
    Case("nn.functional.pad", (X, (1, 2), "constant", 5.0)),
    *(
        Case("nn.functional.pad", (x, widths, mode))
        for mode in ("reflect", "replicate")
        for x, widths in (
            (M, (2, 1)),
            (X, (1, 2)),
            (X, (1, 2, 2, 0)),
            (A((1, 2, 3, 4)), (1, 2, 0, 1)),
            (A((1, 2, 2, 3, 3)), (1, 0, 1, 1, 1, 1)),
        )
    ),
    Case("nn.functional.pad", (X, (1, 2), "circular"), differs="a chain of CopySlices"),
)

_MATRICES: Final = (
    Case("diagonal", (M,), dtypes=ALL),
    Case("diagonal", (X, 1, 0, 2)),
    Case("diagonal", (X, -1, -1, 1)),
    Case("diag", (M,), dtypes=ALL),
    Case("diag", (M, -1)),
    Case("diag", (VECTOR, 1)),
    Case("diagflat", (M,)),
    Case("diag_embed", (M,), dtypes=ALL),
    Case("diag_embed", (M, 1, 0, 2)),
    Case("Tensor.trace", (M,), dtypes=INEXACT),
    Case("Tensor.fill_diagonal_", (M, 2.0), differs="a chain of views and CopySlices"),
    Case("tril", (X,), dtypes=ALL),
    Case("tril", (M, 1)),
    Case("triu", (X,), dtypes=ALL),
    Case("triu", (M, -1)),
    Case("diagonal_scatter", (A((3, 3)), A((3,)))),
    Case("diagonal_scatter", (A((3, 3)), A((2,)), 1)),
    Case("select_scatter", (M, A((3,)), 0, 1)),
    Case("slice_scatter", (A((4, 2)), A((2, 2)), 0, 0, 4, 2)),
)

_OTHERS: Final = (
    Case("meshgrid", (A((2,)), A((3,))), {"indexing": "ij"}, dtypes=ALL),
    Case("meshgrid", (A((2,)), A((3,))), {"indexing": "xy"}),
    Case("cartesian_prod", (A((2,)), A((3,)))),
    Case("combinations", (VECTOR,)),
    Case("combinations", (VECTOR, 2, True)),
    Case("Tensor.unfold", (X, 2, 2, 1), dtypes=ALL),
    Case("Tensor.unfold", (VECTOR, 0, 2, 2)),
)

CASES: Final = (
    _LENGTHS
    + _DIMENSIONS
    + _PLACES
    + _JOINED
    + _APART
    + _REPEATED
    + _MATRICES
    + _OTHERS
)

REFUSED: Final = (
    Refused("reshape", (M, (4,)), RuntimeError, "shape '[4]' is invalid for input of"),
    Refused("reshape", (M, (-1, -1)), RuntimeError, "only one dimension can be inf"),
    Refused("reshape", (EMPTY, (-1, 0)), RuntimeError, "because the unspecified"),
    Refused("reshape", (M, (-2, 3)), RuntimeError, "invalid shape dimension -2"),
    Refused("Tensor.view", (M, 4), RuntimeError, "shape '[4]' is invalid for input of"),
    Refused("flatten", (M, 1, 0), RuntimeError, "start_dim cannot come after end_dim"),
    Refused("unflatten", (M, 1, (2, 2)), RuntimeError, "don't multiply up to the size"),
    Refused("squeeze", (M, 2), IndexError, "Dimension out of range"),
    Refused("unsqueeze", (M, 3), IndexError, "expected to be in range of [-3, 2]"),
    Refused("Tensor.expand", (M, 2, 4), RuntimeError, "must match the existing size"),
    Refused("Tensor.expand", (M, 3), RuntimeError, "must be greater or equal to the"),
    Refused("Tensor.expand", (M, -1, 2, 3), RuntimeError, "non-existing dimension 0"),
    Refused(
        "broadcast_tensors",
        (A((2,)), A((3,))),
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3)",
    ),
    Refused("transpose", (M, 0, 2), IndexError, "Dimension out of range"),
    Refused("t", (X,), RuntimeError, "t() expects a tensor with <= 2 dimensions"),
    Refused("permute", (M, (0,)), RuntimeError, "input.dim() = 2 is not equal to"),
    Refused("permute", (M, (0, 0)), RuntimeError, "duplicate dims are not allowed"),
    Refused("movedim", (M, (0, 0), (0, 1)), RuntimeError, "repeated dim in `source`"),
    Refused("flip", (M, (0, 0)), RuntimeError, "dim 0 appears multiple times"),
    Refused("roll", (M, (1, 2), 0), RuntimeError, "shifts and dimensions must align"),
    Refused("rot90", (VECTOR,), RuntimeError, "expected total dims >= 2"),
    Refused("cat", ([],), ValueError, "expected a non-empty list of Tensors"),
    Refused(
        "cat", ([NUMBER],), RuntimeError, "zero-dimensional tensor (at position 0)"
    ),
    Refused("cat", ([M, VECTOR],), RuntimeError, "must have same number of dimensions"),
    Refused("cat", ([M, A((2, 4))],), RuntimeError, "must match except in dimension 0"),
    Refused("cat", ([M, M], 2), IndexError, "Dimension out of range"),
    Refused("cat", (M,), TypeError, "must be tuple of Tensors, not Tensor"),
    Refused("stack", ([],), RuntimeError, "stack expects a non-empty TensorList"),
    Refused("stack", ([M, VECTOR],), RuntimeError, "expects each tensor to be equal"),
    Refused("split", (M, -1), RuntimeError, "split_size be non-negative"),
    Refused("split", (M, [1, 2]), RuntimeError, "to sum exactly to 2"),
    Refused("chunk", (M, 0), RuntimeError, "`chunks` to be greater than 0, got: 0"),
    Refused("unbind", (NUMBER,), IndexError, "but tensor has no dimensions"),
    Refused("hsplit", (M, 2), RuntimeError, "is not divisible by the split_size 2!"),
    Refused("Tensor.repeat", (M, 2), RuntimeError, "can not be smaller than number of"),
    Refused(
        "repeat_interleave",
        (M, V((1,) * 3, kind="i"), 0),
        RuntimeError,
        "repeats must have the same size as input along dim",
    ),
    Refused("nn.functional.pad", (M, (1,)), RuntimeError, "must be divisible by 2"),
    Refused(
        "nn.functional.pad",
        (M, (3, 0), "reflect"),
        RuntimeError,
        "Padding size should be less than the corresponding input dimension",
    ),
    Refused("diag", (X,), RuntimeError, "Supports 1D or 2D tensors. Got 3D"),
    Refused("diagonal", (M, 0, 1, 1), RuntimeError, "dimensions cannot be identical"),
    Refused("Tensor.trace", (X,), RuntimeError, "trace: expected a matrix"),
    Refused("tril", (VECTOR,), RuntimeError, "must have at least 2 dimensions"),
    Refused("Tensor.unfold", (M, 0, 3, 1), RuntimeError, "maximum size for tensor at"),
    Refused("Tensor.unfold", (M, 0, 1, 0), RuntimeError, "step is 0 but must be > 0"),
    Refused(
        "meshgrid",
        (M,),
        RuntimeError,
        "Expected 0D or 1D tensor",
        {"indexing": "ij"},
        same=False,  # the whole tensor is printed there
    ),
)
