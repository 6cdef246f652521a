"""NumPy's functions by their use of the first argument's elements."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np


def named(*names: str) -> frozenset[Callable[..., Any]]:
    """Those of NumPy's functions that this version has."""
    found = (getattr(np, name, None) for name in names)
    return frozenset(function for function in found if function is not None)


#: They look at nothing but shapes, dtypes and addresses.
METADATA: Final = named(
    *("shape", "ndim", "size", "may_share_memory", "shares_memory", "iscomplexobj"),
    *("isrealobj", "result_type", "can_cast", "common_type", "min_scalar_type"),
)

#: They look at the layout of an argument only, and make an array full of something;
#: None where it is nothing, or an argument.
FILLS: Final[dict[Callable[..., Any], int | None]] = {
    np.zeros_like: 0,
    np.ones_like: 1,
    np.empty_like: None,
    np.full_like: None,
}

#: They write to their first argument and return nothing.
IN_PLACE: Final = named(
    *("copyto", "put_along_axis", "fill_diagonal", "put", "place", "putmask")
)
