"""How a tensor prints: as PyTorch's does."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradviz.backends.base import backend_of
from gradviz.backends.device import CPU
from gradviz.ops.promotion import get_default_dtype
from gradviz.ops.variable import Variable

_PREFIX = "tensor("
_MAX_FIXED = 1e8
_MIN_FIXED = 1e-4
_MAX_RATIO = 1e3


def format_tensor(x: Variable) -> str:
    """The elements, and what is not plain: device, dtype, place in the graph."""
    array = backend_of(x.device).to_host(x.array)
    suffixes = []
    if x.device is not CPU:
        suffixes.append(f"device='{x.device}'")
    if array.size == 0 and array.ndim != 1:
        suffixes.append(f"size={array.shape}")
    if array.dtype not in (get_default_dtype(), np.int64, np.bool_):
        suffixes.append(f"dtype={array.dtype}")
    if x.grad_fn is not None:
        suffixes.append(f"grad_fn=<{x.grad_fn.name()}>")
    elif x.requires_grad:
        suffixes.append("requires_grad=True")
    return f"{_PREFIX}{', '.join([_format_elements(array), *suffixes])})"


def _format_elements(array: np.ndarray) -> str:
    if array.size == 0:
        return "[]"
    return np.array2string(
        array,
        separator=", ",
        prefix=_PREFIX,
        threshold=1000,
        edgeitems=3,
        formatter=_formatter(array),
    )


def _formatter(array: np.ndarray) -> Any:  # noqa: ANN401 - NumPy keeps its type private
    """One format for all floats, so that they line up."""
    if array.dtype.kind != "f":
        return None
    finite = array[np.isfinite(array)]
    style = _float_style(finite)
    # As in PyTorch, what is not finite does not widen the rest.
    widths = [len(style(one)) for one in finite[finite != 0][:10_000]]
    width = max(widths, default=0) if array.ndim else 0
    return {"float_kind": lambda one: style(one).rjust(width)}


def _float_style(finite: np.ndarray) -> Callable[[float], str]:
    magnitudes = np.abs(finite[finite != 0]).astype(np.float64)
    if magnitudes.size == 0:
        return _whole
    largest, smallest = magnitudes.max(), magnitudes.min()
    wide = largest / smallest > _MAX_RATIO or largest > _MAX_FIXED
    if bool(np.all(finite == np.rint(finite))):
        if wide:
            return lambda one: f"{one:.4e}"
        return _whole
    if wide or smallest < _MIN_FIXED:
        return lambda one: f"{one:.4e}"
    return lambda one: f"{one:.4f}"


def _whole(number: float) -> str:
    return f"{number:.0f}." if np.isfinite(number) else f"{number}"
