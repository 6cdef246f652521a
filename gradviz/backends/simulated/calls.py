"""NumPy's calls as work of streams: what is launched, and what is returned before."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradviz.backends.device import CPU
from gradviz.backends.mixing import MixedDevicesError
from gradviz.backends.numpy_functions import FILLS, IN_PLACE, METADATA
from gradviz.backends.simulated.device_array import DeviceArray, arrays_in
from gradviz.backends.simulated.functions import SHAPED, TAKES_OUT
from gradviz.backends.simulated.inference import (
    UNKNOWN,
    VIEW,
    NewArray,
    form_of,
    leaves,
    mapped,
)
from gradviz.backends.simulated.kernels import (
    Kwargs,
    launch,
    new_array,
    ready,
    view_of,
    wait,
)
from gradviz.backends.simulated.machine import SimulatedDevice


def call_function(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Kwargs
) -> Any:
    """What a function or ufunc of NumPy's returns: arrays yet to be computed, or views.

    Args:
        function: Also a method of a ufunc.
        args: The call's, with arrays of one device in them.
        kwargs: The call's by name.
    """
    if isinstance(function, np.ufunc):
        return call(function, function.__name__, args, kwargs, takes_out=True)
    if isinstance(ufunc := getattr(function, "__self__", None), np.ufunc):
        return _call_method(ufunc, function, args, kwargs)
    name = function.__name__
    if function in METADATA:
        return function(*map(_raw, args), **_raw_values(kwargs))
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
    ufunc: np.ufunc,
    method: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Kwargs,
) -> Any:
    name = f"{ufunc.__name__}.{method.__name__}"
    if method.__name__ == "at":
        return change(method, name, args, kwargs)
    return call(method, name, args, kwargs, takes_out=True)


def change(
    function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: Kwargs
) -> None:
    """Call what writes to its first argument and returns nothing."""
    arrays = tuple(arrays_in((*args, *kwargs.values())))
    device = ready(arrays)
    target = args[0]
    _check_target(target, device)
    if form_of(function, args, kwargs) is UNKNOWN:
        wait_for(function, name, args, kwargs, (target,))
        return
    run = partial(function, *map(_raw, args), **_raw_values(kwargs))
    launch(device.current_queue(), name, run, arrays[1:], (target,))


def call(
    function: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: Kwargs,
    *,
    takes_out: bool = False,
    may_view: bool = False,
) -> Any:
    """Launch a call whose result no element decides the shape of, or make a view."""
    out = kwargs.get("out")
    if out is None and kwargs:
        kwargs = {name: value for name, value in kwargs.items() if name != "out"}
    out = () if out is None else out if isinstance(out, tuple) else (out,)
    arrays = tuple(arrays_in((*args, *kwargs.values()) if kwargs else args))
    device = ready(arrays)
    for array in out:
        _check_target(array, device)
    if len(out) == 1 and len(kwargs) == 1 and _fits(function, args, out[0]):
        form = None
    else:
        form = form_of(function, args, kwargs, may_view=may_view)
    result: Any
    if form is VIEW:
        result = function(*map(_raw, args), **_raw_values(kwargs))
        return mapped(partial(_view_of_one, arrays), result)
    if form is UNKNOWN:
        return wait_for(function, name, args, kwargs, out)
    queue = device.current_queue()
    inputs = [_raw(arg) for arg in args]
    if out:
        run = partial(function, *inputs, **_raw_values(kwargs))
        reads = [one for one in arrays if all(one is not other for other in out)]
        launch(queue, name, run, reads, out)
        return out[0] if len(out) == 1 else out
    kind = type(arrays[0])
    if type(form) is NewArray:  # mostly
        result = new_array(kind, device, form, name)
        writes, raws = [result], (result.raw,)
    else:
        result = mapped(lambda layout: new_array(kind, device, layout, name), form)
        writes = list(leaves(result))
        raws = tuple(one.raw for one in writes)
    if takes_out:
        place = raws if isinstance(function, np.ufunc) else raws[0]
        run = partial(function, *inputs, out=place, **_raw_values(kwargs))
    else:
        bound = partial(function, *inputs, **_raw_values(kwargs))
        run = partial(_run_into, bound, raws)
    launch(queue, name, run, arrays, writes)
    return result


def check(function: Callable[..., None], name: str, args: tuple[Any, ...]) -> None:
    """Launch a call that writes nothing, but may raise."""
    arrays = tuple(arrays_in(args))
    queue = ready(arrays).current_queue()
    launch(queue, name, partial(function, *map(_raw, args)), arrays, ())


def _fits(function: Callable[..., Any], args: tuple[Any, ...], out: Any) -> bool:
    """Whether the result of a ufunc can go where it is to go, as far as is known."""
    if not isinstance(function, np.ufunc) or not isinstance(out, DeviceArray):
        return False
    form = form_of(function, args, {})
    return (
        isinstance(form, NewArray)
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
    arrays = tuple(arrays_in((*args, *kwargs.values())))
    device = ready(arrays)
    form = form_of(function, args, kwargs)
    if form is UNKNOWN:
        return wait_for(function, name, args, kwargs)
    queue = device.current_queue()
    result = new_array(type(arrays[0]), device, form, name)
    fill = FILLS[function]
    if function is np.full_like:
        fill = args[1] if len(args) > 1 else kwargs["fill_value"]
    if fill is not None:
        run = partial(np.copyto, result.raw, _raw(fill), "unsafe")
        launch(queue, name, run, arrays_in((fill,)), (result,))
    return result


def wait_for(
    function: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: Kwargs,
    writes: Sequence[DeviceArray] = (),
) -> Any:
    """Launch a call and wait for it: what it returns or raises only it knows."""
    arrays = tuple(arrays_in((*args, *kwargs.values())))
    device = ready(arrays)
    queue = device.current_queue()
    bound = partial(function, *map(_raw, args), **_raw_values(kwargs))
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
    layout = NewArray(value.shape, value.dtype, np.empty_like(value).strides)
    result = new_array(type(arrays[0]), device, layout, name)
    copy = partial(np.copyto, result.raw, value)
    launch(device.current_queue(), name, copy, (), (result,))
    return result


def _view_of_one(arrays: Sequence[DeviceArray], raw: np.ndarray) -> DeviceArray:
    array, *others = arrays
    for other in others:
        if np.may_share_memory(raw, other.raw):
            array = other
            break
    return view_of(array, raw)


def _run_into(run: Callable[[], Any], outs: Sequence[np.ndarray]) -> None:
    for out, result in zip(outs, leaves(run()), strict=True):
        np.copyto(out, result)


def _elements_decide(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Kwargs
) -> bool:
    """Whether a call has a shape that its elements decide, unlike most of its kind."""
    if function is np.where:
        return len(args) == 1
    if function is np.repeat:
        return next(arrays_in((*args[1:], *kwargs.values())), None) is not None
    return False


def _raw(value: Any) -> Any:
    """What a kernel gets for a value: memory of the device, copies of the host's."""
    if isinstance(value, DeviceArray):
        return value.raw
    if isinstance(value, np.ndarray):
        return value.copy()
    kind = type(value)
    if kind is tuple or kind is list:
        return kind(map(_raw, value))
    return value


def _raw_values(kwargs: Kwargs) -> dict[str, Any]:
    return {name: _raw(value) for name, value in kwargs.items()} if kwargs else {}
