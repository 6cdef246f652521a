"""The result of a kernel, foretold before it runs: shapes, dtypes and strides.

Note [Trying on nothing]
~~~~~~~~~~~~~~~~~~~~~~~~
The forms of elementwise functions and matrix products are computed. Any other NumPy
function whose result's shape does not depend on elements is tried once on zeros laid
out like its arguments, and the form is remembered: later launches with such arguments
cost a look-up. If the trial raises, the kernel may or may not: then the launch waits
for the kernel, and raises its error. It also waits if elements decide the shape:
`nonzero`, `unique`, everything not listed here. A GPU's program waits there as well.
"""

from collections.abc import Callable, Mapping
from operator import call
from typing import Any, Final, TypeAlias

import numpy as np
from numpy import ufunc  # in one step: each launch asks

from gradviz.backends.simulated.arrays.device_array import DeviceArray
from gradviz.backends.simulated.devices.layouts import in_c_order, layout_of

#: Results of a kernel: an array, nothing, or a tuple or list of such.
Form: TypeAlias = Any


class NoForm:
    """Stands for the form of a result whose form is unknown."""

    def __init__(self, meaning: str) -> None:
        self._meaning = meaning

    def __repr__(self) -> str:
        return self._meaning


#: Nothing is computed: the result lies in the memory of an argument.
VIEW: Final = NoForm("a view")
#: Only the kernel knows.
UNKNOWN: Final = NoForm("unknown")

_UNSEEN: Final = NoForm("not known yet")

_MAX_KNOWN: Final = 20_000

#: Forms by function and arguments. Any thread; replacing an entry changes nothing.
_known: dict[Any, Form] = {}


def form_of(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    key: Any,
    may_view: bool = False,
) -> Form:
    """Return the form of a call's result: a form, `VIEW` or `UNKNOWN`.

    Args:
        function: A function or ufunc of NumPy's, or a method of a ufunc; or one of a
            module of ours, tried as well.
        args: The call's arguments; only the layouts of device arrays are read.
        kwargs: The call's keyword arguments.
        key: The function, and everything that the form depends on; see `Operands`.
        may_view: True if it may return views of arguments that are not copied.
    """
    try:
        form = _known.get(key, _UNSEEN)
    except TypeError:  # it may depend on more than a key could say
        return _infer(function, args, kwargs, may_view)
    if form is _UNSEEN:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        form = _known[key] = _infer(function, args, kwargs, may_view)
    return form


def _infer(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    may_view: bool,
) -> Form:
    try:
        if not kwargs and isinstance(function, ufunc):
            form = _matmul(args) if function is np.matmul else _by_rule(function, args)
            if form is not None:
                return form
        return _tried(function, args, kwargs, may_view)
    except Exception:  # noqa: BLE001 - the kernel will say
        return UNKNOWN


def _by_rule(function: ufunc, args: tuple[Any, ...]) -> Form:
    """The form of an elementwise call, without computing anything."""
    if function.signature is not None:
        return None
    num_results = function.nout
    arrays = [_dummy(arg) for arg in args]
    dtypes: list[Any] = [
        type(arg) if type(arg) in (int, float, complex) else array.dtype
        for arg, array in zip(args, arrays, strict=True)
    ]
    results = function.resolve_dtypes((*dtypes, *[None] * num_results))[-num_results:]
    # The iterator allocates, in the order in memory that ufuncs choose as well.
    operands: Any = [*arrays, *[None] * num_results]
    flags: Any = [["readonly"]] * len(arrays) + [
        ["writeonly", "allocate"]
    ] * num_results
    iterator = np.nditer(
        operands,
        ["zerosize_ok", "refs_ok"],
        flags,
        [*[None] * len(arrays), *results],
    )
    forms = [_layout(array) for array in iterator.operands[len(arrays) :]]
    return forms[0] if num_results == 1 else tuple(forms)


def _matmul(args: tuple[Any, ...]) -> Form:
    """The form of a product of matrices; None where the rule is not as simple."""
    a, b = map(_dummy, args)
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        return None
    if max(a.ndim, b.ndim) > 2 and not (a.flags.c_contiguous and b.flags.c_contiguous):
        return None
    *_, dtype = np.matmul.resolve_dtypes((a.dtype, b.dtype, None))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return in_c_order((*batch, a.shape[-2], b.shape[-1]), dtype)


def _tried(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    may_view: bool,
) -> Form:
    """The form of a call, from another one on zeros."""
    dummies: list[np.ndarray] = []

    def dummy(value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)(map(dummy, value))
        if isinstance(value, DeviceArray):
            dummies.append(_dummy(value))
            return dummies[-1]
        return value

    with np.errstate(all="ignore"):
        result = function(
            *map(dummy, args), **{name: dummy(value) for name, value in kwargs.items()}
        )
    if may_view and all(
        isinstance(leaf, np.ndarray)
        and any(np.may_share_memory(leaf, one) for one in dummies)
        for leaf in leaves(result)
    ):
        return VIEW
    return mapped(_layout, result)


def _layout(value: Any) -> Form:
    if value is None:
        return None
    if not isinstance(value, np.ndarray | np.generic):
        raise TypeError  # a number: only the kernel knows which
    array = np.asarray(value)
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return layout_of(array.shape, array.dtype, array.strides)
    ordered = np.empty_like(array)  # dense, in the order of the strides
    return layout_of(array.shape, array.dtype, ordered.strides)


def _dummy(value: Any) -> np.ndarray:
    """Zeros laid out like an array of a device; anything else as it is.

    The memory is not touched before it is used, and costs nothing then.
    """
    if not isinstance(value, DeviceArray):
        return np.asarray(value)
    raw = value.raw
    if raw.dtype.hasobject:
        return np.zeros(raw.shape, raw.dtype)
    low = high = 0
    for length, step in zip(raw.shape, raw.strides, strict=True):
        reach = (length - 1) * step if length else 0
        low, high = low + min(reach, 0), high + max(reach, 0)
    memory = np.zeros(high - low + raw.itemsize, np.uint8)
    return np.ndarray(raw.shape, raw.dtype, memory, -low, raw.strides)


def leaves(value: Any) -> list[Any]:
    """Return the items of tuples and lists."""
    if not isinstance(value, tuple | list):
        return [value]
    # when compiled: depth
    return [one for inner in value for one in call(leaves, inner)]


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """The same tuples and lists, named ones too, with other things in them."""
    if not isinstance(value, tuple | list):
        return function(value)
    inner = [call(mapped, function, one) for one in value]
    if hasattr(value, "_make"):
        return value._make(inner)
    return type(value)(inner)
