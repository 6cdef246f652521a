"""Stream rules: which stream waits for which when a gradient changes streams.

Note [Streams of a backward]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A node works on the stream that was current when it was made: its forward stream. A
consumer on another stream must not start before its gradient is ready. So an *event*
is recorded in the producer's stream as soon as the gradient's work is queued there,
and the consumer's stream waits for it when the consumer starts. That is later than
the moment the gradient is handed over, so nothing is held up in between.

Several gradients for one input are added on one stream, the *accumulation stream* of
that input, which the first of them decides. It waits for each later gradient, and for
the one already there. The sum is then a gradient that this stream has produced.

`gradviz.engine.tasks.pass_streams` carries this out. Everything here is a pure function
of streams, which are only compared and asked for their device.

Source: torch/csrc/autograd/input_buffer.cpp, InputBuffer::add (C3).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gradviz.backends.device import Device
from gradviz.backends.stream import Stream


class Arrival(NamedTuple):
    """Decision for the first or only gradient at an input.

    Attributes:
        ready: The stream whose work makes it.
        accumulation: The stream on which later gradients would be added to it.
        records: True if an event is recorded on `ready`.
    """

    ready: Stream
    accumulation: Stream
    records: bool


class Addition(NamedTuple):
    """Decision for adding two gradients.

    Attributes:
        stream: Computes the sum.
        waits_for_new: True if it waits for the new gradient and keeps that one's
            memory.
        waits_for_earlier: The same for the earlier gradient.
        records: True if an event is recorded after the sum.
    """

    stream: Stream
    waits_for_new: bool
    waits_for_earlier: bool
    records: bool


def arrival(
    device: Device, producer: Stream | None, consumer: Stream | None, current: Stream
) -> Arrival:
    """Decide the streams of the first gradient on `device` at an input.

    Args:
        device: An accelerator.
        producer: The stream of the node that made it. If it has none, or one of another
            kind of device, that node worked on `current`.
        consumer: The stream of the node that gets it. If it has none, or one of another
            kind of device, the current stream is known only when that node runs, so an
            event is recorded for it to wait for.
        current: The current stream of `device` on the producer's thread.

    No event is recorded if nobody could wait for it: if one stream makes the gradient,
    uses it, and would add others to it.

    Differs: for a consumer without a stream an event is always recorded. PyTorch
    assumes that it works on the stream that is current for the producer.
    """
    if producer is None or producer.device.type != device.type:
        producer = current
    has_consumer = consumer is not None and consumer.device.type == device.type
    if consumer is None or not has_consumer:
        consumer = current
    if consumer.device is device:  # case A
        accumulation = consumer
    elif producer.device is device:  # case B
        accumulation = producer
    else:  # case C
        accumulation = current
    is_at_rest = has_consumer and producer == consumer == accumulation
    return Arrival(producer, accumulation, records=not is_at_rest)


def addition(
    earlier: Stream, accumulation: Stream, new: Stream, consumer: Stream | None
) -> Addition:
    """Decide the streams of a sum when a gradient arrives at an input that has one.

    Args:
        earlier: Ready stream of the gradient already there.
        accumulation: Accumulation stream decided for the first gradient.
        new: Ready stream of the new gradient.
        consumer: The stream of the node that gets the sum, None if it has none.
    """
    return Addition(
        accumulation,
        waits_for_new=new != accumulation,
        waits_for_earlier=earlier != accumulation,
        records=consumer != accumulation,
    )


def consumption(ready: Stream, consumer: Stream | None, current: Stream) -> Stream:
    """Return the stream that uses a gradient; it must wait unless it is `ready`.

    Args:
        ready: The stream on which the gradient is ready.
        consumer: The stream of the node, None if it has none.
        current: The current stream of the gradient's device on the node's thread.
    """
    if consumer is None or consumer.device.type != ready.device.type:
        return current
    return consumer


def endings(
    leaf_streams: Iterable[tuple[Stream, Device]],
    caller_streams: Mapping[Device, Stream | None],
) -> tuple[tuple[Stream, Stream], ...]:
    """Return the streams that the caller's streams wait for at the end of a pass (S5).

    Args:
        leaf_streams: Streams that made the caller's gradients, with their devices.
        caller_streams: The caller's current stream of each device. A device without one
            is left out (C8).

    Returns:
        Pairs: a stream, and the caller's stream that waits for it.
    """
    pairs = {
        (leaf, caller): None
        for leaf, device in leaf_streams
        if (caller := caller_streams.get(device)) is not None
    }
    return tuple(
        (leaf, caller)
        for leaf, caller in pairs
        if leaf != caller and leaf.device.type == caller.device.type
    )
