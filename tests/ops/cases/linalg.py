"""Cases of linear algebra: products, solutions, factorizations, norms."""

import math
from typing import Final

from tests.ops.cases.case import COMPLEX, DOUBLE, INTS, NUMBERS, A, Case, Refused, V

#: What LAPACK knows.
LAPACK: Final = (*DOUBLE, *COMPLEX)

#: Well-conditioned: rows are dominated by their diagonals.
M = ((4.0, 1.0, -0.5), (0.5, -3.0, 1.0), (1.0, -1.25, 5.0))
N = ((-3.0, 0.5, 1.0), (1.0, 4.0, -0.5), (0.25, 1.0, 2.5))
#: A triangle.
LOWER = ((2.0, 0.0, 0.0), (0.5, -1.5, 0.0), (1.0, 0.25, 1.0))
#: Of full rank, with singular values far apart.
TALL: Final = V(((4.0, 1.0), (0.5, -2.0), (1.0, 0.25)))
WIDE: Final = V(((4.0, 0.5, 1.0), (1.0, -2.0, 0.25)))
#: Symmetric and positive-definite.
P = ((4.0, 1.0, -0.5), (1.0, 3.0, 0.5), (-0.5, 0.5, 2.0))
SQUARE: Final = (V(M), V((M, N)))

PRODUCTS: Final = (
    *(
        Case("matmul", (A(left), A(right)), dtypes=NUMBERS)
        for left, right in (
            ((3,), (3,)),
            ((2, 3), (3,)),
            ((3,), (3, 2)),
            ((2, 3), (3, 4)),
            ((2, 2, 3), (3,)),
            ((2, 2, 3), (3, 4)),
            ((3,), (2, 3, 4)),
            ((2, 3), (2, 3, 4)),
            ((2, 2, 3), (2, 3, 4)),
            ((2, 1, 2, 3), (2, 3, 2)),
            ((2, 0), (0, 3)),
            ((0, 3), (3, 2)),
        )
    ),
    Case("mm", (A((2, 3)), A((3, 4))), dtypes=NUMBERS),
    Case("bmm", (A((2, 2, 3)), A((2, 3, 4))), dtypes=NUMBERS),
    Case("mv", (A((2, 3)), A((3,))), dtypes=NUMBERS),
    Case("dot", (A((3,)), A((3,))), dtypes=NUMBERS),
    Case("vdot", (A((3,)), A((3,))), dtypes=NUMBERS),
    Case("inner", (A((2, 3)), A((4, 3))), dtypes=NUMBERS),
    Case("inner", (A((3,)), A((3,)))),
    Case("inner", (A(()), A((4, 3)))),
    Case("outer", (A((2,)), A((3,))), dtypes=NUMBERS),
    Case("ger", (A((2,)), A((3,)))),
    Case("Tensor.__matmul__", (A((2, 3)), A((3,)))),
    Case("Tensor.mm", (A((2, 3)), A((3, 2)))),
    Case("addmm", (A((4,)), A((2, 3)), A((3, 4))), dtypes=NUMBERS),
    Case(
        "addmm",
        (A((2, 1)), A((2, 3)), A((3, 4))),
        {"beta": 2, "alpha": -3},
        dtypes=(*DOUBLE, *COMPLEX, *INTS[:1]),
    ),
    Case("addmm", (A((2, 4)), A((2, 3)), A((3, 4))), {"beta": 0}),
    Case("addmv", (A((2,)), A((2, 3)), A((3,))), {"beta": 0.5, "alpha": 2}),
    Case("addr", (A((2, 3)), A((2,)), A((3,))), {"beta": 0.5, "alpha": 2}),
    Case("addbmm", (A((2, 4)), A((2, 2, 3)), A((2, 3, 4))), {"beta": 0.5, "alpha": 2}),
    Case(
        "baddbmm",
        (A((2, 2, 4)), A((2, 2, 3)), A((2, 3, 4))),
        {"beta": 0.5, "alpha": 2},
    ),
    Case("Tensor.addmm_", (A((2, 4)), A((2, 3)), A((3, 4))), {"alpha": 2}),
    Case("tensordot", (A((2, 3)), A((3, 4)), 1), dtypes=(*DOUBLE, *COMPLEX)),
    Case("tensordot", (A((2, 3, 4)), A((4, 2, 2)), ([0, 2], [1, 0]))),
    Case("tensordot", (A((2, 3)), A((3, 2)), ([0, 1], [1, 0]))),
    Case("tensordot", (A((2, 1, 4)), A((3, 4)), ([1, 2], [0, 1]))),
    Case("kron", (A((2, 2)), A((3,))), dtypes=NUMBERS),
    Case("kron", (A((2, 1)), A((2, 3)))),
    Case("cross", (A((3, 2)), A((3, 2)), 0), dtypes=NUMBERS),
    Case("linalg.cross", (A((2, 3)), A((1, 3)))),
    Case("linalg.vecdot", (A((2, 3)), A((2, 3))), dtypes=LAPACK),
    Case("linalg.vecdot", (A((2, 3)), A((2, 3))), {"dim": 0}),
    Case("linalg.multi_dot", ([A((2, 3)), A((3, 4)), A((4, 2))],)),
    Case("linalg.multi_dot", ([A((3,)), A((3, 4)), A((4, 2)), A((2, 3)), A((3,))],)),
    Case("linalg.matrix_power", (A((3, 3)), 1)),
    Case("linalg.matrix_power", (A((3, 3)), 3), dtypes=(*DOUBLE, *COMPLEX)),
    Case("linalg.matrix_power", (A((2, 3, 3), -1, 1), 5), dtypes=DOUBLE),
    Case("linalg.matrix_power", (V(M), -2), dtypes=LAPACK),
    Case("matrix_power", (A((2, 2)), 2)),
    Case("linalg.vander", (A((3,)),), {"N": 3}, dtypes=DOUBLE),
    *(
        Case("cdist", (A((3, 2)), A((4, 2), 3, 5), p), dtypes=DOUBLE, second=False)
        for p in (1.0, 2.0, 3.0)
    ),
    Case("dist", (A((3, 2)), A((2,), 3, 5)), dtypes=DOUBLE),
)

EQUATIONS: Final = tuple(
    Case(
        "einsum", (equation, *map(A, shapes)), dtypes=dtypes, graph="ii" not in equation
    )
    for equation, shapes, dtypes in (
        ("ij,jk->ik", ((2, 3), (3, 4)), NUMBERS),
        ("ij,jk", ((2, 3), (3, 4)), DOUBLE),
        ("ii", ((3, 3),), DOUBLE),
        ("ii->i", ((3, 3),), DOUBLE),
        ("ij->ji", ((2, 3),), DOUBLE),
        ("ij->", ((2, 3),), DOUBLE),
        ("i,j->ij", ((2,), (3,)), DOUBLE),
        ("i,i->i", ((3,), (3,)), DOUBLE),
        ("bij,bjk->bik", ((2, 2, 3), (2, 3, 2)), (*DOUBLE, *COMPLEX)),
        ("bn,anm,bm->ba", ((2, 3), (4, 3, 2), (2, 2)), DOUBLE),
        ("...ij,...jk->...ik", ((2, 2, 3), (3, 2)), DOUBLE),
        ("...i->...", ((2, 3),), DOUBLE),
        ("i...,i...", ((3, 2), (3, 2)), DOUBLE),
        ("iij,jk->ki", ((2, 2, 3), (3, 2)), DOUBLE),
        ("ij,kl->", ((2, 3), (1, 2)), DOUBLE),
        ("bhqd,bhkd->bhqk", ((1, 2, 3, 2), (1, 2, 4, 2)), DOUBLE),
        ("i,j", ((0,), (2,)), DOUBLE),
    )
)

SOLUTIONS: Final = (
    *(Case("linalg.inv", (x,), dtypes=LAPACK) for x in SQUARE),
    Case("inverse", (V(M),), dtypes=DOUBLE),
    Case("linalg.inv", (A((0, 0)),), dtypes=DOUBLE),
    *(Case("linalg.det", (x,), dtypes=LAPACK) for x in SQUARE),
    Case(
        "linalg.det",
        (V(((1.0, 2.0), (2.0, 4.0))),),
        dtypes=DOUBLE,
        second=False,
        differs="PyTorch's gradient is 0 and not the cofactors",
    ),
    *(Case("linalg.slogdet", (x,), dtypes=LAPACK) for x in SQUARE),
    Case("logdet", (V(P),), dtypes=DOUBLE),
    *(Case("linalg.solve", (x, A((3, 2))), dtypes=LAPACK) for x in SQUARE),
    Case("linalg.solve", (V(M), A((3,))), dtypes=LAPACK),
    Case("linalg.solve", (V((M, N)), A((2, 3))), dtypes=DOUBLE),
    Case("linalg.solve", (V(M), A((2, 3))), {"left": False}, dtypes=LAPACK),
    *(
        Case(
            "linalg.solve_triangular",
            (V(M), A((3, 2)) if left else A((2, 3))),
            {"upper": upper, "left": left, "unitriangular": unit},
            dtypes=LAPACK,
        )
        for upper in (False, True)
        for left in (False, True)
        for unit in (False, True)
    ),
    Case("linalg.tensorsolve", (V(M), A((3,))), dtypes=DOUBLE),
    Case("linalg.pinv", (TALL,), dtypes=LAPACK, rtol=1e-10),
    Case("linalg.pinv", (WIDE,), dtypes=DOUBLE, rtol=1e-10),
    Case("cholesky_solve", (A((3, 2)), V(LOWER)), dtypes=LAPACK, numeric=False),
    Case("cholesky_solve", (A((3, 2)), V(LOWER), True), dtypes=DOUBLE, numeric=False),
    Case("cholesky_inverse", (V(LOWER),), dtypes=LAPACK, numeric=False),
    Case("linalg.lstsq", (TALL, A((3, 2))), dtypes=DOUBLE, rtol=1e-10, second=False),
    Case(
        "linalg.lstsq",
        (V(M), A((3, 2))),
        dtypes=("complex128",),
        rtol=1e-10,
        second=False,
    ),
    Case("linalg.inv_ex", (V(M),), dtypes=DOUBLE),
    Case("linalg.matrix_rank", (V(((1.0, 2.0), (2.0, 4.0))),), dtypes=DOUBLE),
    Case("linalg.matrix_exp", (A((3, 3)),), dtypes=LAPACK, rtol=1e-11),
    Case("linalg.matrix_exp", (A((2, 2, 2), -5, 5),), dtypes=DOUBLE, rtol=1e-10),
)

_SIGNS = "the signs of vectors depend on the library"
_TRIANGLE = {"numeric": False}  # one triangle counts, but both get gradients

FACTORIZATIONS: Final = (
    Case("linalg.cholesky", (V(P),), dtypes=LAPACK, **_TRIANGLE),
    Case("linalg.cholesky", (V(P),), {"upper": True}, dtypes=LAPACK, **_TRIANGLE),
    Case("cholesky", (V((P, P)),), dtypes=DOUBLE, **_TRIANGLE),
    Case("linalg.qr", (TALL,), dtypes=DOUBLE, rtol=1e-11),
    Case("linalg.qr", (V(M),), dtypes=DOUBLE, rtol=1e-11),
    Case("linalg.qr", (A((2, 2)),), dtypes=COMPLEX, rtol=1e-11),
    Case("linalg.qr", (WIDE,), dtypes=DOUBLE, rtol=1e-11),
    Case("linalg.qr", (WIDE, "complete"), dtypes=DOUBLE, rtol=1e-11),
    Case("linalg.svd", (V(M),), dtypes=DOUBLE, differs=_SIGNS),
    Case(
        "linalg.svd",
        (TALL,),
        {"full_matrices": False},
        dtypes=DOUBLE,
        differs=_SIGNS,
    ),
    Case(
        "linalg.svd",
        (WIDE,),
        {"full_matrices": False},
        dtypes=DOUBLE,
        differs=_SIGNS,
    ),
    Case("linalg.svdvals", (TALL,), dtypes=LAPACK),
    Case("linalg.svdvals", (V((M, N)),), dtypes=DOUBLE),
    Case("linalg.eigh", (V(P),), dtypes=DOUBLE, differs=_SIGNS, **_TRIANGLE),
    Case("linalg.eigvalsh", (V(P),), dtypes=LAPACK, **_TRIANGLE),
    Case("linalg.eigvalsh", (V(P), "U"), dtypes=LAPACK, **_TRIANGLE),
    Case("linalg.eigvals", (V(M),), dtypes=LAPACK, numeric=False, differs=_SIGNS),
)

NORMS: Final = (
    *(
        Case("linalg.vector_norm", (A((2, 3)), order), dtypes=dtypes)
        for order, dtypes in (
            (2, (*DOUBLE, "float16", *COMPLEX)),
            (1, (*DOUBLE, *COMPLEX)),
            (3, DOUBLE),
            (0.5, DOUBLE),
            (math.inf, DOUBLE),
            (-math.inf, DOUBLE),
        )
    ),
    Case("linalg.vector_norm", (A((2, 3)), 0), dtypes=DOUBLE, numeric=False),
    Case("linalg.vector_norm", (A((2, 3)),), {"dim": -1, "keepdim": True}),
    Case("linalg.vector_norm", (A((2, 3, 2)),), {"dim": (0, 2)}),
    Case("linalg.vector_norm", (A((0, 3)),), {"dim": 0}),
    Case("linalg.vector_norm", (A(()),)),
    Case("linalg.vector_norm", (V((0.0, 0.0)),), numeric=False, second=False),
    *(
        Case("linalg.matrix_norm", (V(M), order), dtypes=DOUBLE, rtol=1e-11)
        for order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
    ),
    Case("linalg.matrix_norm", (A((2, 3, 2)), 1, (0, 2), True), dtypes=DOUBLE),
    Case("linalg.norm", (A((2, 3)),), dtypes=(*DOUBLE, *COMPLEX)),
    Case("linalg.norm", (A((2, 3)), 1), dtypes=DOUBLE),
    Case("linalg.norm", (A((2, 3)), 3, 1), dtypes=DOUBLE),
    Case("norm", (A((2, 3)),)),
    Case("norm", (A((2, 3)), 1, 1)),
    Case(
        "Tensor.norm", (A((2, 3)),), {"p": 3, "dim": 0, "keepdim": True}, dtypes=DOUBLE
    ),
    Case("linalg.cond", (V(M),), dtypes=DOUBLE, rtol=1e-11),
)

CASES: Final = (*PRODUCTS, *EQUATIONS, *SOLUTIONS, *FACTORIZATIONS, *NORMS)

SINGULAR: Final = V(((1.0, 2.0), (2.0, 4.0)))

REFUSED: Final = (
    Refused(
        "mm",
        (A((2, 3)), A((4, 5))),
        RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
    ),
    Refused("mm", (A((2,)), A((2, 2))), RuntimeError, "self must be a matrix"),
    Refused("mm", (A((2, 2)), A((2,))), RuntimeError, "mat2 must be a matrix"),
    Refused(
        "mm",
        (A((2, 2)), V(((1, 2), (3, 4)), "i")),
        RuntimeError,
        "expected m1 and m2 to have the same dtype, but got: float != long int",
    ),
    Refused("mv", (A((2, 3)), A((4,))), RuntimeError, "size mismatch, got input (2)"),
    Refused(
        "dot",
        (A((3,)), A((4,))),
        RuntimeError,
        "inconsistent tensor size, expected tensor [3] and src [4]",
    ),
    Refused("dot", (A((3, 2)), A((4,))), RuntimeError, "1D tensors expected"),
    Refused("bmm", (A((2, 3)), A((3, 4, 4))), RuntimeError, "batch1 must be a 3D"),
    Refused(
        "bmm",
        (A((2, 3, 4)), A((2, 3, 4))),
        RuntimeError,
        "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but "
        "got: [2, 3].",
    ),
    Refused("matmul", (A(()), A((2,))), RuntimeError, "they are 0D and 1D"),
    Refused(
        "matmul",
        (A((2, 3, 4)), A((3, 4, 4))),
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3)",
    ),
    Refused("matmul", (A((2, 3)), [1.0]), TypeError, "must be Tensor, not list"),
    Refused(
        "addmm",
        (A((4,)), A((2, 3)), A((3, 5))),
        RuntimeError,
        "The expanded size of the tensor (5) must match the existing size (4)",
    ),
    Refused("outer", (A((2, 2)), A((2,))), RuntimeError, "Expected 1-D argument self"),
    Refused(
        "inner", (A((2, 3)), A((4,))), RuntimeError, "the last dimension must match"
    ),
    Refused(
        "tensordot",
        (A((2, 3)), A((4, 5)), 1),
        RuntimeError,
        "contracted dimensions need to match, but first has size 3 in dim -1",
    ),
    Refused("linalg.cross", (A((2, 4)), A((2, 4))), RuntimeError, "must have length 3"),
    Refused(
        "linalg.multi_dot",
        ([A((2, 3)), A((4, 5))],),
        RuntimeError,
        "tensors 0 and 1 with shapes [2, 3] and [4, 5] cannot be multiplied",
    ),
    *(
        Refused("einsum", (equation, *operands), RuntimeError, message)
        for equation, operands, message in (
            ("ij,jk", (A((2, 3)), A((4, 5))), "subscript j has size 4 for operand 1"),
            ("ij->ik", (A((2, 3)),), "output subscript k does not appear"),
            ("i,j", (A((2,)),), "fewer operands were provided"),
            ("i", (A((2, 2)),), "does not match the number of dimensions (2)"),
            ("ii", (A((2, 3)),), "subscript i is repeated for operand 0"),
            ("i->ii", (A((2,)),), "appears more than once in the output"),
            ("i.j", (A((2, 2)),), "found '.' for operand 0"),
            ("i$", (A((2,)),), "invalid subscript given at index 1"),
        )
    ),
    *(
        Refused(f"linalg.{name}", (A((2, 3)),), RuntimeError, "2 by 3 matrices")
        for name in ("inv", "det", "slogdet", "cholesky", "eigh", "eig", "matrix_exp")
    ),
    *(
        Refused(f"linalg.{name}", (A((3,)),), RuntimeError, "at least 2 dimensions")
        for name in ("inv", "det", "qr", "svd", "matrix_norm", "cond")
    ),
    *(
        Refused(f"linalg.{name}", (A((2, 2), kind="i"),), RuntimeError, "Got Long")
        for name in ("inv", "det", "qr", "svd", "vector_norm")
    ),
    Refused(
        "linalg.inv",
        (SINGULAR,),
        RuntimeError,
        "linalg.inv: The diagonal element 2 is zero, the inversion could not be "
        "completed because the input matrix is singular.",
        same=False,  # the same words, but PyTorch's own class
    ),
    Refused(
        "linalg.solve",
        (SINGULAR, A((2,))),
        RuntimeError,
        "The solver failed because the input matrix is singular.",
        same=False,
    ),
    Refused(
        "linalg.cholesky",
        (V((((1.0, 0.0), (0.0, 1.0)), ((1.0, 0.0), (0.0, -1.0)))),),
        RuntimeError,
        "linalg.cholesky: (Batch element 1): The factorization could not be completed "
        "because the input is not positive-definite (the leading minor of order 2 is "
        "not positive-definite).",
        same=False,
    ),
    Refused(
        "linalg.solve",
        (A((3, 3)), A((4, 2))),
        RuntimeError,
        "Incompatible shapes of A and B for the equation AX = B (3x3 and 4x2)",
    ),
    Refused("linalg.qr", (A((3, 2)), "x"), RuntimeError, "unrecognized mode 'x'"),
    Refused(
        "linalg.matrix_norm", (A((3, 3)), 3), RuntimeError, "Order 3 not supported"
    ),
    Refused("linalg.matrix_norm", (A((3, 3)), "x"), RuntimeError, "Order x not supp"),
    Refused("linalg.cond", (A((3, 3)), 3), RuntimeError, "got an invalid norm type: 3"),
)
