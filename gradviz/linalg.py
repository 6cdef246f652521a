"""Linear algebra: ``gradviz.linalg``, PyTorch's names.

The ops are documented where they are defined, in `gradviz.ops`.
"""

import sys

from gradviz.ops.dispatch.public import Home
from gradviz.ops.shapes.diagonals import diagonal as _diagonal
from gradviz.ops.shapes.matrices import LinAlgError
from gradviz.ops.table import publish
from gradviz.ops.variables.variable import Value


def diagonal(A: Value, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:  # noqa: N803 - PyTorch's name
    """Return the diagonals of matrices, as a view."""
    return _diagonal(A, offset, dim1, dim2)


__all__ = ["LinAlgError", "diagonal"]
__all__ += publish(Home.LINALG, sys.modules[__name__])  # noqa: PLE0605 - strings
