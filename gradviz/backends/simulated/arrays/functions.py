"""NumPy's functions, by how a device runs them; those not listed wait for it."""

from typing import Final

import numpy as np

from gradviz.backends.arrays.numpy_functions import named

#: They take an `out` that changes nothing but where the result is.
TAKES_OUT: Final = named(
    *("sum", "prod", "max", "min", "amax", "amin", "any", "all", "cumsum", "cumprod"),
    *("argmax", "argmin", "concatenate", "stack", "take", "clip", "einsum", "dot"),
)

#: The shape of their result depends on no element. Some return views where they can.
SHAPED: Final = (
    TAKES_OUT
    | {np.lib.stride_tricks.sliding_window_view}
    # They refuse no matrix. Others may, and are waited for: the program is to know.
    | {np.linalg.det, np.linalg.slogdet, np.linalg.qr}
    | named(
        *("reshape", "ravel", "transpose", "swapaxes", "moveaxis", "rollaxis"),
        *("broadcast_to", "broadcast_arrays", "expand_dims", "squeeze", "real", "imag"),
        *(
            "diagonal",
            "diag",
            "atleast_1d",
            "atleast_2d",
            "atleast_3d",
            "flip",
            "fliplr",
        ),
        *("flipud", "rot90", "split", "array_split", "hsplit", "vsplit", "dsplit"),
        *("unstack", "matrix_transpose", "permute_dims", "meshgrid"),
        *(
            "mean",
            "std",
            "var",
            "ptp",
            "nansum",
            "nanprod",
            "nanmax",
            "nanmin",
            "nanmean",
        ),
        *("nanstd", "nanvar", "nancumsum", "nancumprod", "cumulative_sum", "median"),
        *("cumulative_prod", "argsort", "sort", "partition", "argpartition", "hstack"),
        *(
            "vstack",
            "dstack",
            "column_stack",
            "copy",
            "take_along_axis",
            "choose",
            "tile",
        ),
        *(
            "roll",
            "tril",
            "triu",
            "trace",
            "vdot",
            "inner",
            "outer",
            "tensordot",
            "cross",
        ),
        *("kron", "diff", "ediff1d", "gradient", "pad", "searchsorted", "digitize"),
        *("isclose", "nan_to_num", "round", "around", "fix", "isneginf", "isposinf"),
        *("angle", "i0", "sinc", "percentile", "quantile", "nanmedian", "average"),
        *("interp", "convolve", "correlate", "isin", "vander", "trapezoid", "unwrap"),
        *("diagflat", "resize", "append", "count_nonzero", "linspace", "logspace"),
        *("repeat", "where", "nanargmax", "nanargmin", "isreal", "iscomplex"),
    )
)
