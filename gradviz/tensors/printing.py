"""Printing of tensors: as PyTorch's do, with the same options.

Source: torch/_tensor_str.py.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from gradviz.backends.base import backend_of
from gradviz.backends.device import CPU
from gradviz.ops.conventions.promotion import get_default_dtype
from gradviz.ops.variables.variable import Variable

_PREFIX = "tensor("


@dataclass(frozen=True)
class PrintOptions:
    """Format of printed numbers.

    Attributes:
        precision: Digits after the point.
        threshold: Number of elements beyond which the middle is left out.
        edgeitems: Number of elements shown at each end of a dimension then.
        linewidth: Characters in a line.
        sci_mode: True if powers of ten are written; None: where that is shorter.
    """

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES: Final = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}

_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors print; see `PrintOptions`.

    Args:
        precision: See `PrintOptions`, as for the next three; None leaves it as it is.
        threshold: See `PrintOptions`.
        edgeitems: See `PrintOptions`.
        linewidth: See `PrintOptions`.
        profile: Begin with those of ``"default"``, ``"short"`` or ``"full"``.
        sci_mode: See `PrintOptions`.
    """
    global _options
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    changes: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    before = _options if profile is None else _PROFILES[profile]
    _options = replace(before, **changes, sci_mode=sci_mode)


def format_tensor(x: Variable) -> str:
    """Format the elements, and unusual attributes: device, dtype, graph."""
    array = backend_of(x.device).to_host(x.array)
    suffixes = [] if x.device is CPU else [f"device='{x.device}'"]
    if array.size == 0 and array.ndim != 1:
        suffixes.append(f"size={array.shape}")
    if _says_dtype(array):
        suffixes.append(f"dtype=gradviz.{array.dtype.name}")
    try:
        grad_fn = x.grad_fn
        if grad_fn is not None:
            suffixes.append(
                f"grad_fn=<{type(grad_fn).name(grad_fn).rsplit('::', 1)[-1]}>"
            )
        elif x.requires_grad:
            suffixes.append("requires_grad=True")
    except RuntimeError:  # a view that may not be changed in place, but was
        suffixes.append("grad_fn=<Invalid>")
    return _with_suffixes(_PREFIX + _format_elements(array), suffixes)


def _says_dtype(array: np.ndarray) -> bool:
    """Return whether to print the dtype, because the elements do not show it."""
    default = get_default_dtype()
    if not array.size:
        return bool(array.dtype != default)
    complex_default = np.result_type(default, np.complex64)
    return array.dtype not in (default, complex_default, np.int64, np.bool_)


def _with_suffixes(text: str, suffixes: list[str]) -> str:
    """`text` and its suffixes, on a new line where the line is full."""
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > _options.linewidth:
            text += f",\n{' ' * len(_PREFIX)}{suffix}"
            length = len(_PREFIX) + len(suffix)
        else:
            text += f", {suffix}"
            length += len(suffix) + 2
    return f"{text})"


# --- elements ---------------------------------------------------------------------

#: Writes one element, always as wide as the others.
_Style = Callable[[Any], str]


def _format_elements(array: np.ndarray) -> str:
    if array.size == 0:
        return "[]"
    is_summary = array.size > _options.threshold
    shown = _edges(array) if is_summary else array
    style, width = _style(shown)
    return _nested(array, len(_PREFIX), style, width, is_summary=is_summary)


def _edges(array: np.ndarray) -> np.ndarray:
    """The elements that a summary shows."""
    for axis, length in enumerate(array.shape):
        if length > 2 * _options.edgeitems:
            ends = [*range(_options.edgeitems), *range(-_options.edgeitems, 0)]
            array = array.take(ends, axis)
    return array


def _nested(
    array: np.ndarray, indent: int, style: _Style, width: int, *, is_summary: bool
) -> str:
    if array.ndim == 0:
        return style(array.item())
    edge = _options.edgeitems
    parts: list[Any] = list(array)
    if is_summary and len(parts) > 2 * edge:
        parts = [*parts[:edge], None, *parts[len(parts) - edge :]]
    if array.ndim == 1:
        items = [" ..." if one is None else style(one.item()) for one in parts]
        return _lines(items, indent, width)
    texts = [
        "..."
        if one is None
        else _nested(one, indent + 1, style, width, is_summary=is_summary)
        for one in parts
    ]
    between = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return f"[{between.join(texts)}]"


def _lines(items: list[str], indent: int, width: int) -> str:
    in_line = max(1, (_options.linewidth - indent) // (width + 2))
    lines = [
        ", ".join(items[first : first + in_line])
        for first in range(0, len(items), in_line)
    ]
    return f"[{(',' + chr(10) + ' ' * (indent + 1)).join(lines)}]"


def _style(array: np.ndarray) -> tuple[_Style, int]:
    """Return the style of the elements, and their width."""
    if array.dtype.kind == "c":
        real, real_width = _style(array.real)
        imaginary, imaginary_width = _style(array.imag)

        def both(value: complex) -> str:
            text = f"{imaginary(value.imag)}j".lstrip()
            sign = "" if text[0] in "+-" else "+"
            return f"{real(value.real)}{sign}{text}"

        return both, real_width + imaginary_width + 1
    if array.dtype.kind == "f":
        return _float_style(array.astype(np.float64).reshape(-1))
    width = max(len(str(value)) for value in array.reshape(-1).tolist())
    return lambda value: str(value).rjust(width), width


def _float_style(numbers: np.ndarray) -> tuple[_Style, int]:
    counted = numbers[np.isfinite(numbers) & (numbers != 0)]
    is_whole = bool(np.all(counted == np.ceil(counted)))
    precision = _options.precision
    if _is_scientific(np.abs(counted)):
        width = max((len(f"{one:.{precision}e}") for one in counted), default=1)
        return lambda one: f"{one:.{precision}e}".rjust(width), width
    if is_whole:
        width = max((len(f"{one:.0f}") + 1 for one in counted), default=1)
        return (
            lambda one: f"{one:.0f}{'.' if math.isfinite(one) else ''}".rjust(width),
            width,
        )
    width = max((len(f"{one:.{precision}f}") for one in counted), default=1)
    return lambda one: f"{one:.{precision}f}".rjust(width), width


def _is_scientific(magnitudes: np.ndarray) -> bool:
    if not magnitudes.size:
        return False
    if _options.sci_mode is not None:
        return _options.sci_mode
    largest, smallest = magnitudes.max(), magnitudes.min()
    with np.errstate(all="ignore"):
        ratio = largest / smallest
    return bool(ratio > 1e3 or largest > 1e8 or smallest < 1e-4)
