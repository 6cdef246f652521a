"""NumPy's functions on tensors: done by the op that does the same, graph included.

PyTorch converts to an array where it can; here ``np.sin(x)`` is ``x.sin()``. What has
no such op works on arrays, and is refused where a gradient would be lost.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from gradviz.backends.arrays.pinned_array import read_at_once
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.ops.dispatch.public import Home
from gradviz.ops.shapes.joining import cat, stack
from gradviz.ops.table import public
from gradviz.ops.variables.variable import Value, Variable, variable
from gradviz.tensors.methods.conversion import Conversion

#: Functions that do the same as a ufunc: operators, and ops that say so themselves.
_UFUNCS: Final[Mapping[str, Callable[..., Any]]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "matmul": operator.matmul,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "invert": operator.invert,
    **public(Home.UFUNCS),
}


class NumpyProtocol(Conversion):
    """Methods by which NumPy reads a tensor."""

    __slots__ = ()

    def __array__(
        self, dtype: DTypeLike = None, *, copy: bool | None = None
    ) -> np.ndarray:
        array = read_at_once(self.numpy())
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> Any:  # noqa: ANN401 - a capsule
        """Return the capsule by which another library shares the memory.

        Raises:
            BufferError: The tensor requires gradients.
        """
        if self.requires_grad:
            raise BufferError(
                "Can't export tensors that require gradient, use tensor.detach()"
            )
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device of the memory, in DLPack's numbers."""
        return self.numpy().__dlpack_device__()

    def __array_ufunc__(
        self,
        ufunc: np.ufunc,
        method: str,
        *inputs: Any,  # noqa: ANN401 - NumPy hands on what it was given
        **kwargs: Any,  # noqa: ANN401 - as above
    ) -> Any:  # noqa: ANN401 - as above
        function = _UFUNCS.get(ufunc.__name__)
        if function and method == "__call__" and not kwargs and len(inputs) <= 2:
            return function(_first(inputs[0]), *inputs[1:])
        result = getattr(ufunc, method)(*_arrays(inputs), **_arrays_by_name(kwargs))
        return variable(result) if isinstance(result, np.ndarray) else result

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Value:
        del types
        known = _FUNCTIONS.get(function)
        if known is not None:
            return known(*args, **kwargs)
        return function(*_arrays(args), **_arrays_by_name(kwargs))


def _first(value: Value) -> Value:
    """A first operand, as an op takes it."""
    if isinstance(value, Variable):
        return value
    if isinstance(value, np.generic):  # a number, which leaves the dtype to the other
        return value.item()
    return variable(np.asarray(value))


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


#: Functions that take arguments in other ways than ours, and the ops that say so
#: themselves.
_FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.numel(),
    np.var: _spread("var"),
    np.std: _spread("std"),
    np.dot: operator.matmul,
    np.reshape: lambda x, shape: x.reshape(shape),
    np.transpose: _transposed,
    np.concatenate: _joined(cat),
    np.stack: _joined(stack),
    np.real: lambda x: x.real,
    np.imag: lambda x: x.imag,
    **{getattr(np, name): op for name, op in public(Home.ARRAY_FUNCTIONS).items()},
}
