"""The streams of one pass: carrying out what `gradviz.engine.stream_rules` says.

Only a pass with nodes on an accelerator has such a thing; see Note [Streams of a
backward].  Backends are called here, so no lock is held.
"""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext

from gradviz.backends.base import device_of
from gradviz.backends.current_streams import (
    chosen_streams,
    is_current,
    on_stream,
    on_streams,
    restore_streams,
    stream_for,
)
from gradviz.backends.device import Device
from gradviz.backends.stream import Event, Stream, keep_for
from gradviz.engine import stream_mismatch, stream_rules
from gradviz.engine.basic_nodes import AccumulateGrad, GraphRoot
from gradviz.engine.input_buffer import Ready, StreamBuffer
from gradviz.engine.node import Node
from gradviz.engine.protocols import Gradient
from gradviz.engine.stream_rules import Addition
from gradviz.trace.probe import Probe


class PassStreams:
    """Which streams the caller of a pass works on, and when its gradients are ready.

    Made on the caller's thread. It holds no reference to the GraphTask, which has it.

    Note [Adding in place, with streams]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    A gradient that goes to two nodes of different streams is let go by one of them as
    soon as its work is *launched*. To the other one it then looks like its own, though
    the first may not have read it yet, and nothing orders that before a sum in place.
    So unless all work of the pass is in one stream, only what the engine has added up
    itself is overwritten. Differs: PyTorch looks at references alone.

    Args:
        task: The GraphTask's id.
        probe: Who listens to it.
        streams: Those of the nodes.

    Source: torch/csrc/autograd/engine.cpp, GraphTask::stash_current_streams (S4).
    """

    def __init__(
        self, task: int, probe: Probe | None, streams: Collection[Stream]
    ) -> None:
        self._task = task
        self._probe = probe
        #: The caller's current streams, where they are not the default ones.
        self._of_caller = chosen_streams()
        #: Whether all that is done on accelerators is done on one stream: the caller's,
        #: on which nodes on the CPU work as well.
        self._has_one_stream = len(streams) == 1 and all(
            stream == self._callers(stream.device) for stream in streams
        )
        #: Streams that made what the caller gets, and the devices where that is.
        #: Appending is atomic.
        self._leaf_streams: list[tuple[Stream, Device]] = []

    # --- a gradient goes to a node --------------------------------------------

    def begin(self, root: Node, gradients: list[Gradient]) -> StreamBuffer:
        """What the caller gives the root, made by the caller's streams (X10)."""
        buffer = StreamBuffer(gradients)
        for input_nr in range(len(buffer)):
            buffer.ready[input_nr] = self.handed_on(None, root, buffer[input_nr])
        gradients.clear()  # the buffer has the only reference, or nothing can be stolen
        return buffer

    def handed_on(
        self, producer: Node | None, receiver: Node, gradient: Gradient
    ) -> Ready | None:
        """Take note of a gradient that goes from one node to another, before it goes.

        On the thread of `producer`, with its stream current, and without the mutex.

        Args:
            producer: None if the caller gave the gradient.
            receiver: Whose gradient it is.
            gradient: As it goes there.

        Returns:
            When it is ready; None if nobody will have to wait: it is on no accelerator,
            or all work of the pass is in one stream.
        """
        own = receiver.forward_stream
        if (
            self._has_one_stream
            and own is not None
            and producer is not None
            and producer.forward_stream is not None
            and not isinstance(producer, GraphRoot)
        ):
            return None
        current = _current(gradient)
        if current is None:
            return None
        device = current.device
        ready, accumulation, records = stream_rules.arrival(
            device, self._stream_of(producer, device), own, current
        )
        if isinstance(receiver, AccumulateGrad) and own is not None:
            stream_mismatch.warn_of(receiver, own, producer, ready)
        producer_id = -1 if producer is None else producer.id
        event = self._record(ready, producer_id) if records else None
        return Ready(ready, event, accumulation, producer_id)

    def prepare_sum(
        self,
        receiver: Node,
        taken: list[Gradient],
        earlier: Ready,
        gradient: Gradient,
        new: Ready,
    ) -> Addition:
        """Have the accumulation stream wait for two gradients that are to be added.

        Args:
            receiver: Who gets the sum.
            taken: Has the gradient that was there.
            earlier: When that is ready.
            gradient: The gradient that has come.
            new: When it is ready.

        Returns:
            Where to add them, and what to do then: `summed` takes it.
        """
        plan = stream_rules.addition(
            earlier.stream, earlier.accumulation, new.stream, receiver.forward_stream
        )
        if plan.waits_for_new:
            self._wait(plan.stream, receiver, new)
            keep_for(gradient, plan.stream)
        if plan.waits_for_earlier:
            self._wait(plan.stream, receiver, earlier)
            keep_for(taken[0], plan.stream)
        return plan

    def may_overwrite(self, gradient: Ready) -> bool:
        """Whether it depends on references alone if another one is added in place."""
        return self._has_one_stream or gradient.is_sum

    def summed(self, plan: Addition, producer: Node) -> Ready:
        """When a sum is ready whose work is in the accumulation stream by now."""
        event = self._record(plan.stream, producer.id) if plan.records else None
        return Ready(plan.stream, event, plan.stream, producer.id, is_sum=True)

    # --- a node runs ----------------------------------------------------------

    def current_for(
        self, node: Node | None, *, is_home: bool
    ) -> AbstractContextManager[None]:
        """Have a node work on its stream; one without, on those of the caller (E1).

        Args:
            node: Which; None for a callback.
            is_home: Whether it runs on the caller's thread, in the caller's context.
                Any other thread must be told of its stream, and so of its device (C1).
        """
        stream = None if node is None else node.forward_stream
        if is_home:
            if stream is None or is_current(stream):
                return nullcontext()
            return on_stream(stream)
        if stream is None:
            return on_streams(tuple(self._of_caller.values()), alone=True)
        return on_stream(stream, alone=True)

    def receive(self, node: Node, gradients: Sequence[Gradient]) -> None:
        """Have the stream of a node that is about to run wait for its gradients (C3).

        With that stream current.
        """
        own = node.forward_stream
        ready_times = gradients.ready if isinstance(gradients, StreamBuffer) else ()
        for input_nr, ready in enumerate(ready_times):
            if ready is None:
                continue
            current = _current(gradients[input_nr]) or ready.stream
            stream = stream_rules.consumption(ready.stream, own, current)
            if stream != ready.stream:
                self._wait(stream, node, ready)
                keep_for(gradients[input_nr], stream)
        if own is not None and isinstance(node, AccumulateGrad):
            self._receive_stored(node, own)

    def leave(self, node: Node, captured: Sequence[Gradient]) -> None:
        """Remember that the caller gets what a node has made, or was given (S5, S6).

        Args:
            node: It has run on its stream.
            captured: Those of its gradients that the pass returns.

        Differs: PyTorch does not keep the memory for the caller's stream, to which it
        is of no use until it has waited, but may be freed before that work is done.
        """
        stream = node.forward_stream
        if stream is None:
            return
        stored = _stored_at(node) if isinstance(node, AccumulateGrad) else None
        self._leaf_streams.append((stream, stream.device))
        for gradient in (stored, *captured):
            caller = self._callers(device_of(gradient))
            if caller is not None and caller != stream:
                self._leaf_streams.append((stream, caller.device))
                keep_for(gradient, caller)

    def _receive_stored(self, node: AccumulateGrad, own: Stream) -> None:
        """Have a leaf's stream wait for what the caller has done with ``.grad``.

        Differs: PyTorch does so on the devices of the roots only, by way of them.
        """
        stored, caller = _stored_at(node), self._callers(own.device)
        if caller is None or device_of(stored) is not own.device:
            return
        keep_for(stored, own)
        if caller != own:
            self._wait(own, node, Ready(caller, None, own, -1))

    # --- the pass ends --------------------------------------------------------

    def join(self) -> None:
        """Have the caller's streams wait for the streams of all that it gets (S5)."""
        callers = {device: self._callers(device) for _, device in self._leaf_streams}
        for leaf, caller in stream_rules.endings(self._leaf_streams, callers):
            event = self._record(leaf, -1)
            event.wait(caller, task=self._task)
            if self._probe:
                self._probe.leaf_stream_synced(
                    self._task, str(leaf), str(caller), event.id
                )

    def put_back(self) -> None:
        """Put the caller's current streams back, should an interrupt have come (R7)."""
        restore_streams(self._of_caller)

    # --- details --------------------------------------------------------------

    def _callers(self, device: Device | None) -> Stream | None:
        """The caller's current stream of a device, None if it has no streams."""
        return None if device is None else stream_for(device, self._of_caller)

    def _stream_of(self, producer: Node | None, device: Device) -> Stream | None:
        """The stream where a node has made a gradient on `device`."""
        if producer is None:
            return None
        if isinstance(producer, GraphRoot):  # what it hands on was the caller's
            return self._callers(device)
        return producer.forward_stream

    def _record(self, stream: Stream, node: int) -> Event:
        event = Event(stream.device)
        event.record(stream, task=self._task, node=node)
        return event

    def _wait(self, stream: Stream, receiver: Node, ready: Ready) -> None:
        """Have a stream, for `receiver`, wait for a gradient."""
        # An event that is recorded only now waits for too much, but never for too
        # little. The rules need it but where devices are mixed, which is an error.
        event = ready.event or self._record(ready.stream, ready.producer)
        event.wait(stream, task=self._task, node=receiver.id, producer=ready.producer)


def _stored_at(node: AccumulateGrad) -> Gradient:
    """The ``.grad`` of a leaf; None if it has none, or is gone."""
    leaf = node.leaf
    return None if leaf is None else node.stored(leaf)


def _current(gradient: Gradient) -> Stream | None:
    device = device_of(gradient)
    return None if device is None else stream_for(device)
