"""NumPy's functions on tensors: done by the op that does the same, graph included.

PyTorch converts to an array where it can; here ``np.sin(x)`` is ``x.sin()``. What has
no such op works on arrays, and is refused where a gradient would be lost.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from gradviz.backends.pinned_array import read_at_once
from gradviz.ops.elementwise.selection import where
from gradviz.ops.recording.promotion import DTypeLike
from gradviz.ops.recording.variable import Value, Variable, variable
from gradviz.ops.shapes.joining import cat, stack
from gradviz.tensors.methods.conversion import Conversion

#: Methods that do what a ufunc of another name does.
_UFUNCS: Final = {
    "add": "__add__",
    "subtract": "__sub__",
    "multiply": "__mul__",
    "divide": "__truediv__",
    "floor_divide": "__floordiv__",
    "remainder": "__mod__",
    "power": "__pow__",
    "matmul": "__matmul__",
    "negative": "neg",
    "absolute": "abs",
    "conjugate": "conj",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "rint": "round",
    "equal": "__eq__",
    "not_equal": "__ne__",
    "less": "__lt__",
    "less_equal": "__le__",
    "greater": "__gt__",
    "greater_equal": "__ge__",
    "bitwise_and": "__and__",
    "bitwise_or": "__or__",
    "bitwise_xor": "__xor__",
    "invert": "__invert__",
}

#: Those of one or two arrays that have the same name.
_SAME: Final = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "square",
        "reciprocal",
        "sign",
        "floor",
        "ceil",
        "trunc",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "hypot",
        "logaddexp",
        "isnan",
        "isinf",
        "isfinite",
        "signbit",
        "logical_and",
        "logical_or",
        "logical_not",
        "logical_xor",
        "copysign",
        "heaviside",
        "deg2rad",
        "rad2deg",
        "positive",
    ]
)


class NumpyProtocol(Conversion):
    """What NumPy asks of what it is given."""

    __slots__ = ()

    def __array__(self, dtype: DTypeLike = None, *, copy: Value = None) -> np.ndarray:
        array = read_at_once(self.numpy())
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> Any:  # noqa: ANN401 - a capsule
        """What another library takes to share the memory.

        Raises:
            BufferError: The tensor requires gradients.
        """
        if self.requires_grad:
            raise BufferError(
                "Can't export tensors that require gradient, use tensor.detach()"
            )
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Where the memory is, in DLPack's numbers."""
        return self.numpy().__dlpack_device__()

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Value, **kwargs: Value
    ) -> Value:
        name = ufunc.__name__
        name = _UFUNCS.get(name, name if name in _SAME else "")
        if method == "__call__" and not kwargs and name and len(inputs) <= 2:
            first, *rest = inputs
            if not isinstance(first, Variable):
                first = variable(np.asarray(first))
                if isinstance(inputs[0], np.generic):  # a number, not an array
                    return _of_number(name, inputs[0].item(), rest[0])
            return getattr(first, name)(*rest)
        result = getattr(ufunc, method)(*_arrays(inputs), **_arrays_by_name(kwargs))
        return variable(result) if isinstance(result, np.ndarray) else result

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: Sequence[Value],
        kwargs: Mapping[str, Value],
    ) -> Value:
        del types
        known = _FUNCTIONS.get(function)
        if known is not None:
            return known(*args, **kwargs)
        return function(*_arrays(args), **_arrays_by_name(kwargs))


def _of_number(name: str, number: complex, x: Value) -> Value:
    """A binary op whose first operand is a number."""
    reflected = getattr(x, name.replace("__", "__r", 1), None)
    if reflected is not None:
        return reflected(number)
    return getattr(variable(np.asarray(number, x.array.dtype)), name)(x)


def _arrays(values: Iterable[Value]) -> list[Value]:
    """Tensors as arrays, in lists and tuples too.

    Raises:
        RuntimeError: One requires gradients.
    """
    return [
        np.asarray(value)
        if isinstance(value, Variable)
        else type(value)(_arrays(value))
        if type(value) in (list, tuple)
        else value
        for value in values
    ]


def _arrays_by_name(values: Mapping[str, Value]) -> dict[str, Value]:
    return dict(zip(values, _arrays(values.values()), strict=True))


def _method(name: str) -> Callable[..., Value]:
    """The method of that name, with NumPy's names for what every method takes."""

    def call(x: Value, *args: Value, **kwargs: Value) -> Value:
        names = {"axis": "dim", "keepdims": "keepdim"}
        kwargs = {names.get(key, key): value for key, value in kwargs.items()}
        return getattr(x, name)(*args, **kwargs)

    return call


def _spread(name: str) -> Callable[..., Value]:
    """``var`` and ``std``, which count all elements in NumPy."""

    def call(
        x: Value,
        axis: Value = None,
        *,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Value:
        return getattr(x, name)(axis, correction=ddof, keepdim=keepdims)

    return call


def _joined(join: Callable[..., Value]) -> Callable[..., Value]:
    def call(arrays: Sequence[Value], axis: int = 0) -> Value:
        return join(
            [one if isinstance(one, Variable) else variable(one) for one in arrays],
            axis,
        )

    return call


def _transposed(x: Value, axes: Sequence[int] | None = None) -> Value:
    return x.permute(*(reversed(range(x.ndim)) if axes is None else axes))


_FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.numel(),
    np.sum: _method("sum"),
    np.mean: _method("mean"),
    np.prod: _method("prod"),
    np.max: _method("amax"),
    np.min: _method("amin"),
    np.argmax: _method("argmax"),
    np.argmin: _method("argmin"),
    np.cumsum: _method("cumsum"),
    np.all: _method("all"),
    np.any: _method("any"),
    np.var: _spread("var"),
    np.std: _spread("std"),
    np.clip: _method("clamp"),
    np.dot: _method("__matmul__"),
    np.reshape: _method("reshape"),
    np.ravel: _method("flatten"),
    np.squeeze: _method("squeeze"),
    np.expand_dims: _method("unsqueeze"),
    np.transpose: _transposed,
    np.concatenate: _joined(cat),
    np.stack: _joined(stack),
    np.where: where,
    np.real: lambda x: x.real,
    np.imag: lambda x: x.imag,
    np.copy: _method("clone"),
}
