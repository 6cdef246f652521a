"""Linear algebra: ``gradviz.linalg``, PyTorch's names.

What they do is said where they are defined, in `gradviz.ops`.
"""

from gradviz.ops.algebra.contractions import linalg_cross as cross
from gradviz.ops.algebra.contractions import multi_dot, vecdot
from gradviz.ops.algebra.factorizations import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from gradviz.ops.algebra.matrix_functions import (
    lstsq,
    matrix_exp,
    matrix_power,
    matrix_rank,
    pinv,
    vander,
)
from gradviz.ops.algebra.matrix_norms import cond, matrix_norm, norm
from gradviz.ops.algebra.products import matmul
from gradviz.ops.algebra.solving import (
    det,
    inv,
    inv_ex,
    slogdet,
    solve,
    solve_triangular,
    tensorinv,
    tensorsolve,
)
from gradviz.ops.recording.out import takes_out
from gradviz.ops.recording.variable import Value
from gradviz.ops.reductions.norms import vector_norm
from gradviz.ops.shapes.diagonals import diagonal as _diagonal
from gradviz.ops.shapes.matrices import LinAlgError


def diagonal(A: Value, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:  # noqa: N803 - PyTorch's name
    """The diagonals of matrices, as a view."""
    return _diagonal(A, offset, dim1, dim2)


__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "inv_ex",
    "lstsq",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]

# Nearly all take ``out=``.
for _name in set(__all__) - {
    "LinAlgError",
    "diagonal",
    "lstsq",
    "matrix_exp",
    "vander",
}:
    globals()[_name] = takes_out(globals()[_name], f"linalg_{_name}")
