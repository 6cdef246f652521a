"""Methods of linear algebra: products of vectors and matrices, factorisations."""

from typing import Self

from gradviz.ops.algebra import (
    contractions,
    factorizations,
    fused_products,
    matrix_functions,
    matrix_norms,
    products,
    solving,
)
from gradviz.ops.recording.dimensions import Dims
from gradviz.ops.recording.in_place import in_place
from gradviz.ops.recording.promotion import DTypeLike
from gradviz.ops.recording.variable import Value, Variable


class Linear(Variable):
    """What linear algebra there is as methods; the rest is in `gradviz.linalg`."""

    __slots__ = ()

    matmul = products.matmul
    dot = products.dot
    vdot = products.vdot
    mv = products.mv
    mm = products.mm
    bmm = products.bmm
    outer = ger = products.outer
    inner = contractions.inner
    kron = contractions.kron
    cross = contractions.cross

    addmm = fused_products.addmm
    addmv = fused_products.addmv
    addr = fused_products.addr
    addbmm = fused_products.addbmm
    baddbmm = fused_products.baddbmm
    addmm_ = in_place(fused_products.addmm)
    addmv_ = in_place(fused_products.addmv)
    addr_ = in_place(fused_products.addr)
    addbmm_ = in_place(fused_products.addbmm)
    baddbmm_ = in_place(fused_products.baddbmm)

    inverse = solving.inverse
    det = solving.det
    slogdet = solving.slogdet
    logdet = solving.logdet
    matrix_power = matrix_functions.matrix_power
    matrix_exp = matrix_functions.matrix_exp
    pinverse = matrix_functions.pinverse
    cholesky = factorizations.older_cholesky
    qr = factorizations.older_qr
    svd = factorizations.older_svd

    def __matmul__(self, other: Value) -> Self:
        if not isinstance(other, Variable) and not hasattr(other, "dtype"):
            return NotImplemented
        return products.matmul(self, other)

    def __rmatmul__(self, other: Value) -> Self:
        if not hasattr(other, "dtype"):
            return NotImplemented
        return products.matmul(other, self)

    def norm(
        self,
        p: matrix_norms.NormOrder = "fro",
        dim: Dims = None,
        keepdim: bool = False,
        dtype: DTypeLike = None,
    ) -> Self:
        """The norm; see `gradviz.norm`."""
        return matrix_norms.tensor_norm(self, p, dim, keepdim, dtype=dtype)
