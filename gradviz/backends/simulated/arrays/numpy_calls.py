"""NumPy's calls as work of streams: launched now, computed later."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy import ufunc  # in one step: each launch asks

from gradviz.backends.arrays.mixing import MixedDevicesError
from gradviz.backends.arrays.numpy_functions import FILLS, IN_PLACE, METADATA
from gradviz.backends.device import CPU
from gradviz.backends.simulated.arrays.device_array import DeviceArray, arrays_in
from gradviz.backends.simulated.arrays.functions import SHAPED, TAKES_OUT
from gradviz.backends.simulated.arrays.inference import (
    UNKNOWN,
    VIEW,
    form_of,
    leaves,
    mapped,
)
from gradviz.backends.simulated.arrays.kernels import (
    Kwargs,
    launch,
    new_array,
    ready,
    view_of,
    wait,
)
from gradviz.backends.simulated.arrays.operands import Operands, operands, raw_value
from gradviz.backends.simulated.devices.layouts import ArrayLayout, layout_of
from gradviz.backends.simulated.devices.machine import SimulatedDevice


def call_function(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Kwargs
) -> Any:
    """Call a function or ufunc of NumPy's; return pending arrays, or views.

    Args:
        function: Also a method of a ufunc.
        args: The call's arguments, with arrays of one device in them.
        kwargs: The call's keyword arguments.
    """
    if isinstance(function, ufunc):
        return call(function, function.__name__, args, kwargs, takes_out=True)
    if isinstance(own := getattr(function, "__self__", None), ufunc):
        return _call_method(own, function, args, kwargs)
    name = function.__name__
    if function in METADATA:
        given = operands(function, args, kwargs)
        return function(*given.args, **given.kwargs)
    if function in FILLS:
        return _filled(function, name, args, kwargs)
    if function in IN_PLACE:
        return change(function, name, args, kwargs)
    if function in SHAPED and not _elements_decide(function, args, kwargs):
        # As a keyword, that is: a third argument may be the `out` already.
        takes_out = function in TAKES_OUT and (len(args) <= 2 or function is np.einsum)
        return call(function, name, args, kwargs, takes_out=takes_out, may_view=True)
    return wait_for(function, name, args, kwargs)


def _call_method(
    own: ufunc,
    method: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Kwargs,
) -> Any:
    name = f"{own.__name__}.{method.__name__}"
    if method.__name__ == "at":
        return change(method, name, args, kwargs)
    return call(method, name, args, kwargs, takes_out=True)


def change(
    function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: Kwargs
) -> None:
    """Call a function that writes to its first argument and returns nothing."""
    given = operands(function, args, kwargs)
    device = ready(given.arrays)
    target = args[0]
    _check_target(target, device)
    if form_of(function, args, kwargs, given.key) is UNKNOWN:
        wait_for(function, name, args, kwargs, (target,))
        return
    run = partial(function, *given.args, **given.kwargs)
    launch(device.current_queue(), name, run, given.arrays[1:], (target,))


def call(
    function: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: Kwargs,
    takes_out: bool = False,
    may_view: bool = False,
) -> Any:
    """Launch a call with a result of predictable shape, or make a view."""
    out: tuple[Any, ...] = ()
    if kwargs:
        out, kwargs = _places(kwargs)
    given = operands(function, args, kwargs)
    arrays = given.arrays
    device = ready(arrays)
    for array in out:
        _check_target(array, device)
    if len(out) == 1 and len(kwargs) == 1 and _fits(given, args, out[0]):
        form = None
    else:
        form = form_of(function, args, kwargs, given.key, may_view)
    result: Any
    writes: tuple[DeviceArray, ...]
    raws: tuple[np.ndarray, ...]
    if form is VIEW:
        result = function(*given.args, **given.kwargs)
        return mapped(partial(_view_of_one, arrays), result)
    if form is UNKNOWN:
        return wait_for(function, name, args, kwargs, out)
    queue = device.current_queue()
    run: Callable[[], object]
    if out:
        run = partial(function, *given.args, **given.kwargs)
        launch(queue, name, run, _without(arrays, out), out)
        return out[0] if len(out) == 1 else out
    kind = type(arrays[0])
    if type(form) is ArrayLayout:  # mostly
        result = new_array(kind, device, queue, name, form)
        writes, raws = (result,), (result.raw,)
    else:
        result = mapped(partial(new_array, kind, device, queue, name), form)
        writes, raws = _written(result)
    if takes_out:
        place = raws if isinstance(function, ufunc) else raws[0]
        run = _call_into(given, place)
    else:
        bound = partial(function, *given.args, **given.kwargs)
        run = partial(_run_into, bound, raws)
    launch(queue, name, run, arrays, writes)
    return result


def check(function: Callable[..., None], name: str, args: tuple[Any, ...]) -> None:
    """Launch a call that writes nothing, but may raise."""
    given = operands(function, args, {})
    queue = ready(given.arrays).current_queue()
    launch(queue, name, partial(function, *given.args), given.arrays, ())


def _written(
    result: Any,
) -> tuple[tuple[DeviceArray, ...], tuple[np.ndarray, ...]]:
    """Return the arrays in a result, and their form for a kernel."""
    arrays = tuple(leaves(result))
    return arrays, tuple(one.raw for one in arrays)


def _without(arrays: list[DeviceArray], out: tuple[Any, ...]) -> list[DeviceArray]:
    """The arrays that are not among those to write to."""
    return [one for one in arrays if all(one is not other for other in out)]


def _places(kwargs: Kwargs) -> tuple[tuple[Any, ...], Kwargs]:
    """Return the places for results, and the arguments without a void `out`."""
    out = kwargs.get("out")
    if out is None:
        return (), {name: value for name, value in kwargs.items() if name != "out"}
    return out if isinstance(out, tuple) else (out,), kwargs


def _fits(given: Operands, args: tuple[Any, ...], out: Any) -> bool:
    """Return whether a ufunc's result fits its place, as far as is known."""
    function = given.key[0]
    if not isinstance(function, ufunc) or not isinstance(out, DeviceArray):
        return False
    form = form_of(function, args, {}, given.key[: 1 + len(args)])
    return (
        isinstance(form, ArrayLayout)
        and form.shape == out.raw.shape
        and out.raw.flags.writeable
        and np.can_cast(form.dtype, out.raw.dtype, "same_kind")
    )


def _check_target(array: Any, device: SimulatedDevice) -> None:
    """Refuse to write where a kernel cannot or may not."""
    if not isinstance(array, DeviceArray):
        raise MixedDevicesError(device.device, CPU)
    if not array.raw.flags.writeable:
        raise ValueError("output array is read-only")


def _filled(
    function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: Kwargs
) -> Any:
    """An array like an argument, of which not the elements are read."""
    given = operands(function, args, kwargs)
    device = ready(given.arrays)
    form = form_of(function, args, kwargs, given.key)
    if form is UNKNOWN:
        return wait_for(function, name, args, kwargs)
    queue = device.current_queue()
    result = new_array(type(given.arrays[0]), device, queue, name, form)
    fill = FILLS[function]
    if function is np.full_like:
        fill = args[1] if len(args) > 1 else kwargs["fill_value"]
    if fill is not None:
        run = partial(np.copyto, result.raw, raw_value(fill), "unsafe")
        launch(queue, name, run, arrays_in((fill,)), (result,))
    return result


def wait_for(
    function: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: Kwargs,
    writes: Sequence[DeviceArray] = (),
) -> Any:
    """Launch a call with an unpredictable result, and wait for it."""
    given = operands(function, args, kwargs)
    arrays = given.arrays
    device = ready(arrays)
    queue = device.current_queue()
    bound = partial(function, *given.args, **given.kwargs)
    results: list[Any] = []
    work = launch(
        queue,
        name,
        lambda: results.append(bound()),
        arrays,
        writes,
        is_awaited=True,
    )
    wait(work)
    if (out := kwargs.get("out")) is not None:
        return out
    return mapped(partial(_kept, arrays, device, name), results[0])


def _kept(
    arrays: Sequence[DeviceArray], device: SimulatedDevice, name: str, value: Any
) -> Any:
    """A result that the host has, put on the device if it is an array."""
    if not isinstance(value, np.ndarray | np.generic):
        return value
    value = np.asarray(value)
    if any(np.may_share_memory(value, one.raw) for one in arrays):
        return _view_of_one(arrays, value)
    layout = layout_of(value.shape, value.dtype, np.empty_like(value).strides)
    queue = device.current_queue()
    result = new_array(type(arrays[0]), device, queue, name, layout)
    copy = partial(np.copyto, result.raw, value)
    launch(queue, name, copy, (), (result,))
    return result


def _view_of_one(arrays: Sequence[DeviceArray], raw: np.ndarray) -> DeviceArray:
    array, *others = arrays
    for other in others:
        if np.may_share_memory(raw, other.raw):
            array = other
            break
    return view_of(array, raw)


class _CallInto:
    """``partial(function, *args, out=place, **kwargs)``, made in half the time.

    It holds memory, and no array: see `Allocation`.
    """

    __slots__ = ("args", "function", "kwargs", "place")

    function: Callable[..., Any]
    args: list[Any]
    kwargs: Kwargs
    place: Any

    def __call__(self) -> None:
        self.function(*self.args, out=self.place, **self.kwargs)


def _call_into(given: Operands, place: Any) -> _CallInto:
    call = _CallInto.__new__(_CallInto)  # when compiled: new
    call.function = given.key[0]
    call.args = given.args
    call.kwargs = given.kwargs
    call.place = place
    return call


def _run_into(run: Callable[[], Any], outs: Sequence[np.ndarray]) -> None:
    for out, result in zip(outs, leaves(run()), strict=True):
        np.copyto(out, result)


def _elements_decide(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Kwargs
) -> bool:
    """Return whether a call's result has a shape that its elements decide."""
    if function is np.where:
        return len(args) == 1
    if function is np.repeat:
        return next(arrays_in((*args[1:], *kwargs.values())), None) is not None
    return False
