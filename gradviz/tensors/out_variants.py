"""Which functions take ``out=``, where their result is to be put.

Functions of `gradviz` do, as PyTorch's; methods are the ops themselves, and do not.
"""

import functools
from collections.abc import Callable, MutableMapping
from typing import Any, Final

from gradviz.backends.device import Device
from gradviz.engine.grad_mode import GRAD_ENABLED
from gradviz.ops.recording.dtype_names import scalar_type_name
from gradviz.ops.recording.out import takes_out
from gradviz.ops.recording.variable import Value
from gradviz.tensors.tensor import Tensor

#: From PyTorch's documentation.
_NAMES: Final = """
    abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr all amax
    amin aminmax angle any arccos arccosh arcsin arcsinh arctan arctan2 arctanh
    argmax argmin asin asinh atan atan2 atanh baddbmm bernoulli bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm
    bucketize cat ceil cholesky cholesky_inverse cholesky_solve clamp clamp_max
    clamp_min clip column_stack complex concat concatenate conj_physical copysign
    cos cosh cross cummax cummin cumprod cumsum deg2rad diag diff digamma div divide
    dot dstack eq erf erfc erfinv exp exp2 expm1 fix float_power floor floor_divide
    fmax fmin fmod frac gather gcd ge ger greater greater_equal gt heaviside histc
    hstack hypot index_add index_copy index_reduce index_select inner inverse
    isneginf isposinf kron kthvalue lcm ldexp le lerp less less_equal lgamma log
    log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logical_and
    logical_not logical_or logical_xor logit logsumexp lt masked_select matmul
    matrix_power max maximum mean median min minimum mm mode msort mul multinomial
    multiply mv mvlgamma nan_to_num nanmean nanmedian nanquantile nansum ne neg
    negative nonzero not_equal outer polar polygamma pow prod qr quantile rad2deg
    reciprocal remainder renorm round row_stack rsqrt scatter scatter_add
    scatter_reduce searchsorted sgn sigmoid sign signbit sin sinc sinh slice_scatter
    softmax sort sqrt square stack std sub subtract sum svd take take_along_dim tan
    tanh threshold topk tril triu true_divide trunc var vdot vstack where xlogy
"""

#: They make tensors of nothing, in the dtype of ``out`` and where that is.
_CREATION: Final = """
    arange empty eye full linspace logspace normal ones rand randint randn randperm
    zeros
"""


def let_take_out(functions: MutableMapping[str, Any]) -> None:
    """Put in place of functions, by name, ones that take ``out=``."""
    for name in _NAMES.split():
        if name in functions:
            functions[name] = takes_out(functions[name], name)
    for name in _CREATION.split():
        functions[name] = _fills_out(functions[name])


def _fills_out(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Let a function that makes a tensor take ``out=`` instead."""

    @functools.wraps(function)
    def make(*args: Value, out: Tensor | None = None, **options: Value) -> Tensor:
        if out is None:
            return function(*args, **options)
        if GRAD_ENABLED.get() and out.requires_grad:
            raise RuntimeError(
                f"{function.__name__}(): functions with out=... arguments don't "
                f"support automatic differentiation, but one of the arguments requires "
                f"grad."
            )
        dtype = options.setdefault("dtype", out.dtype)
        if dtype != out.dtype:
            raise RuntimeError(
                f"dtype {scalar_type_name(dtype)} does not match dtype of out "
                f"parameter ({scalar_type_name(out.dtype)})"
            )
        options.setdefault("device", out.device)
        if Device(options["device"]) is not out.device:
            raise RuntimeError(
                f"device {options['device']} does not match device of out parameter "
                f"({out.device})"
            )
        made = function(*args, **options)
        if made.shape != out.shape:
            out.resize_(made.shape)
        out.copy_(made)
        return out

    return make
