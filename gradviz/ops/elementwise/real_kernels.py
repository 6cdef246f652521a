"""Functions of real numbers as kernels: what ops of them compute forwards."""

from collections.abc import Callable

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.recording.promotion import as_floating
from gradviz.ops.recording.refusal import check_kinds


def of_reals(kernel: str, values: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A forward function of real numbers; half precision is computed in single.

    Args:
        kernel: What PyTorch calls the loop over the elements.
        values: The function, for single and double precision.
    """

    def forward(x: Array) -> Array:
        x = as_floating(x)
        check_kinds(kernel, "f", x)
        if x.dtype == np.float16:
            return values(x.astype(np.float32)).astype(x.dtype)
        return values(x)

    forward.__name__ = kernel.partition("_vml")[0]
    forward.__doc__ = values.__doc__
    return forward
