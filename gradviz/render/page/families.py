"""The families of operations, as the pictures have them; leaves are one more."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from gradviz.analysis.graph import LEAF
from gradviz.analysis.op_families import OP_FAMILIES, op_family
from gradviz.trace.table import Column

FAMILIES: Final = (*OP_FAMILIES, "leaves")


def family_places(names: Sequence[str]) -> Column:
    """In which of `FAMILIES` nodes, or kernels, of these names are."""
    return np.array(
        [
            FAMILIES.index("leaves" if name == LEAF else op_family(name))
            for name in names
        ],
        np.int64,
    )
