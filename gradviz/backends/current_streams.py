"""Current streams, as an engine asks for them and sets them at each node.

Programs use `gradviz.backends.stream`.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from gradviz.backends.base import accelerator_of, has_streams
from gradviz.backends.device import Device, current_index, set_current_index
from gradviz.backends.stream import (
    CHOSEN,
    Stream,
    make_current_again,
    stream_at,
)

#: The default streams that the engine has asked for; entries are never replaced.
_DEFAULTS: Final[dict[Device, Stream]] = {}


def stream_for(
    device: Device, chosen: Mapping[Device, Stream] | None = None
) -> Stream | None:
    """The current stream of a device, None where there are no streams.

    Args:
        device: The device. Nobody asks whether it is there.
        chosen: Somebody else's `chosen_streams`, whose current stream is meant.
    """
    if not has_streams(device):
        return None
    known = (CHOSEN.get() if chosen is None else chosen).get(device)
    if known is None:
        known = _DEFAULTS.get(device)
    if known is None:  # every node of a device asks: making one takes thrice as long
        known = _DEFAULTS[device] = stream_at(device, 0)
    return known


def is_current(stream: Stream) -> bool:
    """Return whether `on_stream` would change nothing."""
    device = stream.device
    return stream == stream_for(device) and current_index(device.type) == device.number


def on_stream(stream: Stream, *, alone: bool = False) -> AbstractContextManager[None]:
    """Make a stream current, and its device the current one of its type."""
    device = stream.device
    if current_index(device.type) == device.number:
        return on_streams((stream,), alone=alone)
    return _on_device_too(stream, alone)


@contextmanager
def on_streams(streams: tuple[Stream, ...], *, alone: bool = False) -> Iterator[None]:
    """Make several streams current for a block, each of its device.

    Args:
        streams: Streams to make current.
        alone: Other devices are at their default streams meanwhile, and all of them
            afterwards: for a thread that works in a copy of another one's context.
    """
    outer: Mapping[Device, Stream] = {} if alone else CHOSEN.get()
    CHOSEN.set({**outer, **{stream.device: stream for stream in streams}})
    try:
        for stream in streams:
            accelerator_of(stream.device).make_current(stream)
        yield
    finally:
        CHOSEN.set(outer)
        for stream in streams:
            make_current_again(stream.device)


def chosen_streams() -> Mapping[Device, Stream]:
    """The current streams of all devices that are not at their default streams."""
    return CHOSEN.get()


def restore_streams(chosen: Mapping[Device, Stream]) -> None:
    """Choose the result of `chosen_streams`, in the same context."""
    changed = CHOSEN.get()
    if changed is chosen:
        return
    CHOSEN.set(chosen)
    for device in {**changed, **chosen}:
        make_current_again(device)


@contextmanager
def _on_device_too(stream: Stream, alone: bool) -> Iterator[None]:
    kind, number = stream.device.type, stream.device.number
    outer = current_index(kind)
    set_current_index(kind, number)
    try:
        with on_streams((stream,), alone=alone):
            yield
    finally:
        set_current_index(kind, outer)
