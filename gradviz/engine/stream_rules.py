"""Who waits for whom, when gradients go from one stream to another: the rules alone.

Note [Streams of a backward]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A node works on the stream that was current when it was made: its forward stream. Where
its gradient goes to a node of another stream, that one must not begin too early. So
there is an *event* in the producer's stream, recorded as soon as the gradient's work is
in it, and the consumer's stream waits for it when the consumer begins: later, if at
all, than where the gradient is handed on, so that nothing is held up meanwhile.

Several gradients for one place are added on one stream, the *accumulation stream* of
that place, which the first of them decides. It waits for each that comes after, and for
what is there already. The sum is then a gradient that this stream has produced.

How that is carried out is in `gradviz.engine.pass_streams`. Everything here is a
function of streams, which are only compared and asked for their device.

Source: torch/csrc/autograd/input_buffer.cpp, InputBuffer::add (C3).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gradviz.backends.device import Device
from gradviz.backends.stream import Stream


class Arrival(NamedTuple):
    """What holds for a gradient that is the first, or only, one at its place.

    Attributes:
        ready: The stream whose work makes it.
        accumulation: The stream on which others would be added to it.
        records: Whether an event is to be recorded on `ready`.
    """

    ready: Stream
    accumulation: Stream
    records: bool


class Addition(NamedTuple):
    """What must happen so that two gradients can be added.

    Attributes:
        stream: Where the sum is computed, and is ready.
        waits_for_new: Whether it waits for the gradient that has come, and the memory
            of that one is kept for it.
        waits_for_earlier: The same of the gradient that was there.
        records: Whether an event is to be recorded after the sum.
    """

    stream: Stream
    waits_for_new: bool
    waits_for_earlier: bool
    records: bool


def arrival(
    device: Device, producer: Stream | None, consumer: Stream | None, current: Stream
) -> Arrival:
    """A gradient on `device` arrives at a node.

    Args:
        device: An accelerator.
        producer: The stream of the node that made it. Without one, or with one of
            another kind of device, that node worked on `current`.
        consumer: The stream of the node that gets it. Without one, or with one of
            another kind of device, what is current for that node is seen when it runs,
            so there will be an event to wait for.
        current: The current stream of `device` on the producer's thread.

    No event is recorded if nobody could wait for it: if one stream makes the gradient,
    uses it, and would add others to it.

    Differs: for a consumer without a stream there always is an event. PyTorch takes it
    for granted that it works on the stream that is current for the producer.
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
    """A gradient arrives where there is one already.

    Args:
        earlier: Where the one that is there is ready.
        accumulation: What was decided when that one came.
        new: Where the one that comes is ready.
        consumer: The stream of the node that gets the sum, None if it has none.
    """
    return Addition(
        accumulation,
        waits_for_new=new != accumulation,
        waits_for_earlier=earlier != accumulation,
        records=consumer != accumulation,
    )


def consumption(ready: Stream, consumer: Stream | None, current: Stream) -> Stream:
    """The stream on which a node uses a gradient; it waits, if it is not `ready`.

    Args:
        ready: Where the gradient is ready.
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
    """Which of the caller's streams wait for which streams at the end of a pass (S5).

    Args:
        leaf_streams: Streams that made what the caller gets, and the devices where that
            is.
        caller_streams: The caller's current stream of each device. One without is left
            out (C8).

    Returns:
        Pairs: a stream, and the caller's that waits for it.
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
