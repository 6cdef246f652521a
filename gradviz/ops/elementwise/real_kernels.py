"""Functions of elements as kernels, for the forward of their ops.

Note [Block by block]
~~~~~~~~~~~~~~~~~~~~~
A special function takes dozens of passes over its elements, each of which reads and
writes memory. So large arrays are worked off in blocks whose intermediate results stay
in the cache, which halves the time.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.promotion import as_floating
from gradviz.ops.conventions.refusal import check_kinds

#: Number of elements in a block.
_BLOCK: Final = 1 << 14


def of_reals(kernel: str, values: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A forward function of real numbers; half precision is computed in single.

    Args:
        kernel: PyTorch's name of the loop over the elements.
        values: The function, for single and double precision.
    """

    def forward(x: Array) -> Array:
        x = as_floating(x)
        check_kinds(kernel, "f", x)
        if x.dtype == np.float16:
            return in_blocks(values, x.astype(np.float32)).astype(x.dtype)
        return in_blocks(values, x)

    forward.__name__ = kernel.partition("_vml")[0]
    forward.__doc__ = values.__doc__
    return forward


def in_blocks(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply a function of elements to arrays; see Note [Block by block].

    Args:
        function: Takes the arrays, or parts of them, and returns as many elements.
        *arrays: Of one shape; of those that lie otherwise, all is computed at once.
    """
    shape, size = arrays[0].shape, arrays[0].size
    if size < 2 * _BLOCK or not all(
        type(one) is np.ndarray and one.flags.c_contiguous and one.shape == shape
        for one in arrays
    ):
        return function(*arrays)
    flat = [one.reshape(-1) for one in arrays]
    first = function(*[one[:_BLOCK] for one in flat])
    result = np.empty(size, first.dtype)
    result[:_BLOCK] = first
    for start in range(_BLOCK, size, _BLOCK):
        block = slice(start, start + _BLOCK)
        result[block] = function(*[one[block] for one in flat])
    return result.reshape(shape)
