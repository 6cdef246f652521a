"""What backends have in common that report kernels and memory."""

import itertools
from typing import Any, Final

#: Tell kernels apart, from 0.
kernel_ids: Final = itertools.count()

#: Tell allocations apart, from 0.
memory_ids: Final = itertools.count()


def layout_at(offset: int, array: Any) -> str:
    """Which bytes of its memory an array covers, as `Probe.array_accessed` has it.

    Args:
        offset: Where in the memory its first element lies.
        array: Of any library; only its shape and strides are read.
    """
    shape = ",".join(map(str, array.shape))
    strides = ",".join(map(str, array.strides))
    return f"{offset};{shape};{strides};{array.itemsize}"
