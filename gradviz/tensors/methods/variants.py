"""Methods that are called otherwise than the functions of the same name."""

from typing import Self

from gradviz.ops.algebra import matrix_norms
from gradviz.ops.conventions.dimensions import Dims
from gradviz.ops.conventions.promotion import DTypeLike, Operand
from gradviz.ops.dispatch.in_place import change
from gradviz.ops.elementwise import gamma_functions, selection
from gradviz.ops.reductions import softmax
from gradviz.ops.variables.variable import Value, Variable


class Variants(Variable):
    """Methods with other parameters than their functions, or in another order."""

    __slots__ = ()

    def where(self, condition: Variable, other: Operand) -> Self:
        """The elements where `condition` holds, those of `other` elsewhere."""
        return selection.where(condition, self, other)

    def polygamma(self, n: int) -> Self:
        """The derivative of order `n` of `digamma`."""
        return gamma_functions.polygamma(n, self)

    def polygamma_(self, n: int) -> Value:
        """The derivative of order `n` of `digamma`, in place."""
        return change(self, _polygamma, n)

    def softmax(self, dim: int, dtype: DTypeLike = None) -> Self:
        """Exponentials scaled to sum to 1 along `dim`."""
        return softmax.softmax(self, dim, dtype=dtype)

    def log_softmax(self, dim: int, dtype: DTypeLike = None) -> Self:
        """The logarithm of `softmax`, without its loss of precision."""
        return softmax.log_softmax(self, dim, dtype=dtype)

    def norm(
        self,
        p: matrix_norms.NormOrder = "fro",
        dim: Dims = None,
        keepdim: bool = False,
        dtype: DTypeLike = None,
    ) -> Self:
        """The norm; see `gradviz.norm`."""
        return matrix_norms.tensor_norm(self, p, dim, keepdim, dtype=dtype)


def _polygamma(x: Variable, n: int) -> Value:
    return gamma_functions.polygamma(n, x)
