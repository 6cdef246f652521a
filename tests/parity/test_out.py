"""``out=`` of another dtype: taken, or refused in the same words, as in PyTorch.

Not here is where PyTorch cannot do what it says (`bernoulli` into complex numbers,
`nansum` into integers), or says nothing of use (`median`, `mvlgamma`).
"""

import warnings
from functools import cache
from itertools import product
from typing import Any

import pytest

import gradviz as gv
from tests.parity.worlds import torch

pytestmark = pytest.mark.parity

UNARY = (
    "abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh argmax "
    "argmin asin asinh atan atanh ceil conj_physical cos cosh deg2rad diff digamma erf "
    "erfc erfinv exp exp2 expm1 fix floor frac isneginf isposinf lgamma log log10 "
    "log1p log2 logit logical_not mean msort nan_to_num neg negative nonzero rad2deg "
    "reciprocal round rsqrt sgn sigmoid sign signbit sin sinc sinh sort sqrt square "
    "std tan tanh trunc var aminmax"
)
BINARY = (
    "add arctan2 atan2 complex copysign div divide dot eq float_power floor_divide "
    "fmax fmin fmod ge greater heaviside hypot inner kron ldexp le logaddexp "
    "logaddexp2 logical_and logical_or lt maximum max minimum min mul multiply ne "
    "outer polar pow remainder searchsorted bucketize sub subtract true_divide vdot "
    "xlogy"
)
OF_INTEGERS = (
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd lcm"
)
OF_MATRICES = (
    "cholesky cholesky_inverse inverse linalg.cholesky linalg.cond linalg.det "
    "linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv linalg.inv_ex "
    "linalg.matrix_norm linalg.matrix_rank linalg.norm linalg.pinv linalg.qr "
    "linalg.slogdet linalg.svd linalg.svdvals linalg.vector_norm qr svd tril triu"
)
OF_TWO_MATRICES = "cholesky_solve linalg.matmul linalg.solve matmul mm"
JOINING = "cat concat column_stack dstack hstack row_stack stack vstack"
ALONG_A_DIMENSION = (
    "amax amin cummax cummin cumprod cumsum log_softmax logcumsumexp logsumexp max "
    "mode prod softmax sum"
)
SCATTERING = "index_add index_copy scatter scatter_add"


@cache
def calls(lib: Any) -> dict[str, tuple[Any, ...]]:
    """Return the arguments of each function."""
    x, i, b = lib.tensor([0.5, 0.25]), lib.tensor([1, 0]), lib.tensor([True, False])
    m = lib.tensor([[2.0, 0.5], [0.5, 1.5]])
    found: dict[str, tuple[Any, ...]] = {
        **dict.fromkeys(UNARY.split(), (x,)),
        **{f"{name} of two": (x, x) for name in BINARY.split()},
        **dict.fromkeys(OF_INTEGERS.split(), (i, i)),
        **dict.fromkeys(OF_MATRICES.split(), (m,)),
        **dict.fromkeys(OF_TWO_MATRICES.split(), (m, m)),
        **dict.fromkeys(JOINING.split(), ([x, x],)),
        **{f"{name} along": (x, 0) for name in ALONG_A_DIMENSION.split()},
        **dict.fromkeys(SCATTERING.split(), (x, 0, i, x)),
        "bitwise_not": (i,),
        "all": (b,),
        "any": (b,),
        "where": (b, x, x),
        "gather": (x, 0, i),
        "index_select": (x, 0, i),
        "take": (x, i),
        "masked_select": (x, b),
        "take_along_dim": (x, i),
        "topk": (x, 1),
        "clamp": (x, 0.0, 1.0),
        "clamp_max": (x, 1.0),
        "renorm": (m, 1, 0, 1.0),
        "addmm": (m, m, m),
        "addmv": (x, m, x),
        "mv": (m, x),
        "addr": (m, x, x),
        "addcdiv": (x, x, x),
        "lerp": (x, x, 0.5),
        "threshold": (x, 0.1, 0.0),
        "quantile": (x, 0.5),
        "histc": (x, 3, 0, 1),
        "multinomial": (x, 1),
        "kthvalue": (x, 1, 0),
        "linalg.multi_dot": ([m, m],),
        "linalg.vecdot": (x, x),
        "scatter_reduce": (x, 0, i, x, "sum"),
    }
    return {name: args for name, args in found.items() if _has(lib, name)}


def _has(lib: Any, name: str) -> bool:
    return _function(lib, name) is not None


def _function(lib: Any, name: str) -> Any:
    owner = lib.linalg if name.startswith("linalg.") else lib
    return getattr(owner, name.removeprefix("linalg.").split()[0], None)


def outcome(lib: Any, name: str, dtype: str, place: int) -> tuple[str, str]:
    """Return the outcome if the result at a place is to have that dtype."""
    call, args = _function(lib, name), calls(lib)[name]
    results = call(*args)
    is_one = hasattr(results, "dtype")
    outs = [lib.zeros(0, dtype=one.dtype) for one in ([results] if is_one else results)]
    if place >= len(outs):
        return "no such result", ""
    outs[place] = lib.zeros(0, dtype=getattr(lib, dtype))
    try:
        call(*args, out=outs[0] if is_one else tuple(outs))
    except (RuntimeError, TypeError) as error:
        return type(error).__name__, str(error).partition("\n")[0]
    return "taken", ""


@pytest.mark.parametrize("name", sorted(calls(gv)))
def test_an_out_of_another_dtype_is_taken_or_refused_alike(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype, place in product(("int32", "float64"), range(2)):
            expected = outcome(torch, name, dtype, place)
            assert outcome(gv, name, dtype, place) == expected
