"""Return types of ops with several results: named tuples."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from gradviz.ops.variables.variable import Value


class Extremes(NamedTuple):
    """Elements chosen along a dimension.

    Attributes:
        values: The elements.
        indices: Positions along the dimension at which they were.
    """

    values: Value
    indices: Value

    def __repr__(self) -> str:
        return _printed(type(self).__name__, self._asdict())


class Range(NamedTuple):
    """Result of ``aminmax``.

    Attributes:
        min: The smallest elements.
        max: The largest.
    """

    min: Value
    max: Value

    def __repr__(self) -> str:
        return _printed("aminmax", self._asdict())


class QR(NamedTuple):
    """Result of `qr`.

    Attributes:
        Q: Matrices with orthonormal columns.
        R: Upper triangular matrices.
    """

    Q: Value
    R: Value


class SVD(NamedTuple):
    """Result of `svd`.

    Attributes:
        U: The left singular vectors, as columns.
        S: The singular values, from the largest to the smallest.
        Vh: The right singular vectors, conjugated, as rows.
    """

    U: Value
    S: Value
    Vh: Value


class Eigen(NamedTuple):
    """Result of `eigh` and `eig`.

    Attributes:
        eigenvalues: For `eigh` from the smallest to the largest.
        eigenvectors: As columns.
    """

    eigenvalues: Value
    eigenvectors: Value


class OlderSVD(NamedTuple):
    """Result of ``gradviz.svd``.

    Attributes:
        U: The left singular vectors, as columns.
        S: The singular values, from the largest to the smallest.
        V: The right singular vectors, as columns.
    """

    U: Value
    S: Value
    V: Value


class SignAndLogarithm(NamedTuple):
    """Result of `slogdet`.

    Attributes:
        sign: Sign of the determinant: 1, -1 or 0, or a complex number of magnitude 1.
        logabsdet: The logarithm of its magnitude.
    """

    sign: Value
    logabsdet: Value


class InverseAndInfo(NamedTuple):
    """Result of `inv_ex`.

    Attributes:
        inverse: The inverses.
        info: 0 where there is one; else the number of the pivot that is 0.
    """

    inverse: Value
    info: Value


class LeastSquares(NamedTuple):
    """Result of `lstsq`.

    Attributes:
        solution: The X that comes nearest to ``A @ X == B``.
        residuals: The sums of the squares, where A has more rows than columns; or
            nothing, as the driver has it.
        rank: Of each matrix, or nothing.
        singular_values: Of each matrix, or nothing.
    """

    solution: Value
    residuals: Value
    rank: Value
    singular_values: Value


def _printed(name: str, results: dict[str, Value]) -> str:
    listed = ",\n".join(f"{field}={value!r}" for field, value in results.items())
    return f"gradviz.return_types.{name}(\n{listed})"


#: Makes what one op of a family returns.
ExtremesClass: TypeAlias = Callable[..., Extremes]


def _kind(name: str) -> ExtremesClass:
    """Return the class of one op's results."""
    described = f"What ``{name}`` along a dimension returns."
    attributes = {"__slots__": (), "__doc__": described, "__module__": __name__}
    return type(name, (Extremes,), attributes)


max = _kind("max")
min = _kind("min")
median = _kind("median")
nanmedian = _kind("nanmedian")
mode = _kind("mode")
kthvalue = _kind("kthvalue")
sort = _kind("sort")
topk = _kind("topk")
cummax = _kind("cummax")
cummin = _kind("cummin")
