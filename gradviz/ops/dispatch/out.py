"""``out=``: results that are put where the caller says, if their dtypes fit there."""

import functools
import warnings
from typing import Final

import numpy as np

from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.ops.conventions.dtype_names import cpp_name, scalar_type_name
from gradviz.ops.dispatch.differentiable import Op
from gradviz.ops.dispatch.in_place import (
    check_changeable,
    is_castable,
    need_grad,
    write,
)
from gradviz.ops.variables.variable import Value, Variable

_STRUCTURED: Final = (
    "Expected out tensor to have dtype {result_cpp}, but got {out_cpp} instead"
)
_SAME_DTYPE: Final = "Found dtype {out} but expected {result}"
_BOOLEAN: Final = "{op} does not support non-boolean outputs."
_SEARCH: Final = (
    "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) "
    "or Long(int64) depending on whether out_int32 flag is True, but we got output "
    "tensor's dtype {out} and out_int32 flag is False"
)

#: Error texts of functions that put their result only where its own dtype is, by their
#: names; those with several results all do.
_EXACT: Final = {
    name: words
    for words, names in {
        _STRUCTURED: (
            "addmm addmv argmax argmin baddbmm bmm cross diag gather index_add "
            "index_copy index_reduce inverse linalg_cholesky linalg_cross linalg_det "
            "linalg_eigvalsh linalg_inv linalg_matmul linalg_matrix_power linalg_solve "
            "linalg_svdvals linalg_vector_norm log_softmax matmul matrix_power mm "
            "msort mv renorm scatter scatter_add scatter_reduce slice_scatter softmax "
            "take_along_dim tril triu"
        ),
        _SAME_DTYPE: (
            "abs absolute bitwise_not ceil clamp clamp_max clamp_min clip "
            "conj_physical fix floor frac neg negative round sgn sign trunc"
        ),
        _BOOLEAN: "isneginf isposinf signbit",
        _SEARCH: "bucketize searchsorted",
        "result dtype {out} does not match input dtype {result}": "dot vdot",
        "{op} only supports bool tensor for result, got: {out}": "all any",
        "Expected the dtype for input and out to match, but got {result} for input's "
        "dtype and {out} for out's dtype.": "amax amin",
        "Expected object of scalar type {result} but got scalar type {out} for "
        "argument 'out'": "complex polar",
        "{op}(): self and result must have the same scalar type": (
            "index_select masked_select"
        ),
        "{op}: dtype of out: {out} should be same as input: {result}": "nan_to_num",
        "the output given to {op} has dtype {out} but the operation's result requires "
        "dtype {result}": "float_power",
        "{op} is not yet implemented for tensors with different dtypes.": "heaviside",
        "tensordot: Expected the output tensor to have dtype {result}, but got an "
        "output tensor with dtype {out}": "inner",
        "self and mat2 must have the same dtype, but got {out} and {result}": "addbmm",
        "torch.histogram: input tensor and hist tensor should have the same dtype, but "
        "got input {result_cpp} and hist {out_cpp}": "histc",
        "expected scalar_type {result} but found {out}": "cummax cummin logcumsumexp",
        "expected scalar type {result} but found {out}": "linalg_solve_triangular",
        "linalg.matrix_norm expected out tensor dtype {result} but got: {out}": (
            "linalg_matrix_norm"
        ),
        "linalg.norm expected out tensor dtype {result} but got: {out}": "linalg_norm",
        "linalg.vecdot: Expected out of dtype{result} but found {out}": "linalg_vecdot",
        "multi_dot(): expected out tensor to have dtype {result_cpp} but got "
        "{out_cpp}": "linalg_multi_dot",
        "expected scalar type '{result}' but got '{out}' for {field} output": "mode",
        "{op} expects {result} tensor out, got: {out}": "multinomial",
        "quantile() out tensor must be same dtype as the input tensor": (
            "nanquantile quantile"
        ),
        "{op}: Expected out tensor to have scalar type {result} but got scalar "
        "type{out}": "nonzero",
        "{op}(): self and out expected to have the same dtype, but got self.dtype = "
        "{result} and out.dtype = {out}": "take",
        "Expected out type to be {result} but got {out}": "where",
        "output values must be of same type as input": "kthvalue.values",
        "output indices must be of scalar type Long": "kthvalue.indices",
    }.items()
    for name in names.split()
}

_UNCASTABLE: Final = (
    "result type {result} can't be cast to the desired output type {out}"
)

#: Error text of `cat` and its like for a result that would lose its kind; it is a
#: TypeError.
_JOINED: Final = (
    "torch.cat(): input types can't be cast to the desired output type {out}"
)

_SAFELY: Final = (
    ": Expected result to be safely castable from {result} dtype, but got result with "
    "dtype {out}"
)

#: Error texts of functions that have their own for that.
_CASTABLE: Final = {
    name: words
    for words, names in {
        _JOINED: (
            "cat column_stack concat concatenate dstack hstack row_stack stack vstack"
        ),
        "{op}" + _SAFELY: "cholesky cholesky_inverse cholesky_solve",
        "linalg.cond" + _SAFELY: "linalg_cond",
        "linalg.pinv" + _SAFELY: "linalg_pinv",
        "tensorinv" + _SAFELY: "linalg_tensorinv",
        "tensorsolve" + _SAFELY: "linalg_tensorsolve",
        "torch.linalg.matrix_rank" + _SAFELY: "linalg_matrix_rank",
        "torch.linalg.eig: Expected {field} to be safely castable from {result} dtype, "
        "but got {field} with dtype {out}": "linalg_eig",
        "torch.linalg.eigvals: Expected eigenvalues to be safely castable from "
        "{result} dtype, but got eigenvalues with dtype {out}": "linalg_eigvals",
        "mean.dtype_out(): input types can't be cast to the desired output type "
        "{out}": "mean",
        "ldexp can't be cast to the desired output type {out}": "ldexp",
        "{op}(): Expected floating point type for result tensor, but got: {out}": (
            "logsumexp"
        ),
    }.items()
    for name in names.split()
}

#: Functions that compute in the dtype of ``out``.
_ADAPTING: Final = frozenset({"cumprod", "cumsum", "prod", "sum"})


def takes_out(function: Op, op: str) -> Op:
    """Return `function` with an ``out=`` for its result.

    Args:
        function: Function that computes it.
        op: PyTorch's name of the function in messages.
    """

    @functools.wraps(function)
    def call(*args: Value, out: Value = None, **kwargs: Value) -> Value:
        if out is None:
            return function(*args, **kwargs)
        targets = (out,) if isinstance(out, Variable) else tuple(out)
        if GRAD_ENABLED.get() and need_grad((*args, *kwargs.values(), *targets)):
            raise RuntimeError(
                f"{op}(): functions with out=... arguments don't "
                f"support automatic differentiation, but one of the arguments requires "
                f"grad."
            )
        if op in _ADAPTING and isinstance(out, Variable):
            kwargs.setdefault("dtype", out.array.dtype)
        was_enabled = GRAD_ENABLED.get()
        try:  # without a token: see Note [Silence]
            GRAD_ENABLED.set(False)
            result = function(*args, **kwargs)
        finally:
            GRAD_ENABLED.set(was_enabled)
        sources = (result,) if isinstance(result, Variable) else tuple(result)
        if isinstance(out, Variable) is not isinstance(result, Variable):
            expected = "Tensor" if isinstance(result, Variable) else "tuple of Tensors"
            raise TypeError(
                f"{op}(): argument 'out' must be {expected}, not {type(out).__name__}"
            )
        if len(targets) != len(sources):
            raise TypeError(
                f"{op}(): argument 'out' must have {len(sources)} "
                f"elements, got {len(targets)}"
            )
        for target in targets:
            check_changeable(target)
        fields = getattr(result, "_fields", ("",) * len(sources))
        for field, target, source in zip(fields, targets, sources, strict=True):
            _check_dtype(op, field, target, source)
        for target, source in zip(targets, sources, strict=True):
            _put(target, source)
        return out if isinstance(out, Variable) else type(result)(*targets)

    return call


def _put(target: Variable, source: Variable) -> None:
    shape = source.array.shape
    if target.array.shape != shape:
        if target.array.size:
            warnings.warn(
                f"An output with one or more elements was resized since it had shape "
                f"{list(target.array.shape)}, which does not match the required output "
                f"shape {list(shape)}. This behavior is deprecated, and in a future "
                f"PyTorch release outputs will not be resized unless they have zero "
                f"elements. You can explicitly reuse an out tensor t by resizing it, "
                f"inplace, to zero elements with t.resize_(0).",
                UserWarning,
                stacklevel=4,
            )
        target.replace_array(np.empty_like(target.array, shape=shape))
    write(target, source.array)


def _check_dtype(op: str, field: str, target: Variable, source: Variable) -> None:
    """Raise PyTorch's error if a result may not be put somewhere.

    Args:
        op: The function's name.
        field: The result's name, empty if there is but one.
        target: Tensor that it is to go to.
        source: The result.
    """
    out, result = target.array.dtype, source.array.dtype
    if out == result:
        return
    words = _EXACT.get(f"{op}.{field}") or _EXACT.get(op)
    if words is None:
        words = _CASTABLE.get(op, _STRUCTURED if field else _UNCASTABLE)
        if words is not _STRUCTURED and is_castable(result, out):
            return
    raise (TypeError if words is _JOINED else RuntimeError)(
        words.format(
            op=op,
            field=field,
            out=scalar_type_name(out),
            result=scalar_type_name(result),
            out_cpp=cpp_name(out),
            result_cpp=cpp_name(result),
        )
    )
