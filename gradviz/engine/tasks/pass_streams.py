"""The streams of one pass: carries out `gradviz.engine.graph.stream_rules`.

Only a pass with nodes on an accelerator has this; see Note [Streams of a backward].
Backends are called here, so no lock is held.
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
from gradviz.engine.graph import stream_rules
from gradviz.engine.graph.basic_nodes import AccumulateGrad, GraphRoot
from gradviz.engine.graph.input_buffer import Ready, StreamBuffer
from gradviz.engine.graph.node import Node
from gradviz.engine.graph.protocols import Gradient
from gradviz.engine.graph.stream_rules import Addition
from gradviz.engine.tasks import stream_mismatch
from gradviz.trace.probe import Probe


class PassStreams:
    """The current streams of a pass's caller, and the readiness of its gradients.

    Made on the caller's thread. It holds no reference to the GraphTask that owns it.

    Note [Adding in place, with streams]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    If a gradient goes to two nodes of different streams, one of them releases it as
    soon as its work is *launched*. To the other it then looks unshared, though the
    first may not have read it yet, and nothing orders that read before a sum in place.
    So unless all work of the pass is in one stream, only sums that the engine itself
    has made are overwritten. Differs: PyTorch looks at references alone.

    Args:
        task: Id of the GraphTask.
        probe: Its listener.
        streams: The streams of the nodes.

    Source: torch/csrc/autograd/engine.cpp, GraphTask::stash_current_streams (S4).
    """

    def __init__(
        self, task: int, probe: Probe | None, streams: Collection[Stream]
    ) -> None:
        self._task = task
        self._probe = probe
        #: The caller's current streams, where they are not the default ones.
        self._of_caller = chosen_streams()
        #: True if all work on accelerators is on one stream: the caller's, which nodes
        #: on the CPU use as well.
        self._has_one_stream = len(streams) == 1 and all(
            stream == self._callers(stream.device) for stream in streams
        )
        #: Streams that made the caller's gradients, with the devices of those.
        #: Appending is atomic.
        self._leaf_streams: list[tuple[Stream, Device]] = []

    # --- a gradient goes to a node --------------------------------------------

    def begin(self, root: Node, gradients: list[Gradient]) -> StreamBuffer:
        """Return the root's gradients, made by the caller's streams (X10)."""
        buffer = StreamBuffer(gradients)
        for input_nr in range(len(buffer)):
            buffer.ready[input_nr] = self.handed_on(None, root, buffer[input_nr])
        gradients.clear()  # the buffer has the only reference, or nothing can be stolen
        return buffer

    def handed_on(
        self, producer: Node | None, receiver: Node, gradient: Gradient
    ) -> Ready | None:
        """Note a gradient that is about to go from one node to another.

        Called on the thread of `producer`, with its stream current, without the mutex.

        Args:
            producer: None if the caller gave the gradient.
            receiver: The node that gets the gradient.
            gradient: The gradient, in its final form.

        Returns:
            The gradient's readiness; None if nobody will have to wait: it is on no
            accelerator, or all work of the pass is in one stream.
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
        """Make the accumulation stream wait for two gradients to be added.

        Args:
            receiver: The node that gets the sum.
            taken: Holds the earlier gradient.
            earlier: Stream state of that gradient.
            gradient: The gradient that has arrived.
            new: Stream state of the new gradient.

        Returns:
            The streams of the sum, for `summed`.
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
        """Return whether references alone decide about adding to it in place."""
        return self._has_one_stream or gradient.is_sum

    def summed(self, plan: Addition, producer: Node) -> Ready:
        """Return when a sum is ready whose work is now in the accumulation stream."""
        event = self._record(plan.stream, producer.id) if plan.records else None
        return Ready(plan.stream, event, plan.stream, producer.id, is_sum=True)

    # --- a node runs ----------------------------------------------------------

    def current_for(
        self, node: Node | None, *, is_home: bool
    ) -> AbstractContextManager[None]:
        """Make a node work on its stream, or on the caller's if it has none (E1).

        Args:
            node: The node; None for a callback.
            is_home: True if it runs on the caller's thread, in the caller's context.
                Any other thread must set its stream, and so its device (C1).
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
        """Make the stream of a node about to run wait for its gradients (C3).

        Called with that stream current.
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
        """Note that the caller gets gradients that a node made or received (S5, S6).

        Args:
            node: A node that has run on its stream.
            captured: Its gradients that the pass returns.

        Differs: PyTorch does not keep the memory for the caller's stream, which cannot
        use it before it has waited; but it may be freed before that work is done.
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
        """Make a leaf's stream wait for the caller's work on ``.grad``.

        Differs: PyTorch does so only on the devices of the roots, through the roots.
        """
        stored, caller = _stored_at(node), self._callers(own.device)
        if caller is None or device_of(stored) is not own.device:
            return
        keep_for(stored, own)
        if caller != own:
            self._wait(own, node, Ready(caller, None, own, -1))

    # --- the pass ends --------------------------------------------------------

    def join(self) -> None:
        """Make the caller's streams wait for the streams of all its gradients (S5)."""
        callers = {device: self._callers(device) for _, device in self._leaf_streams}
        for leaf, caller in stream_rules.endings(self._leaf_streams, callers):
            event = self._record(leaf, -1)
            event.wait(caller, task=self._task)
            if self._probe:
                self._probe.leaf_stream_synced(
                    self._task, str(leaf), str(caller), event.id
                )

    def put_back(self) -> None:
        """Restore the caller's current streams, in case of an interrupt (R7)."""
        restore_streams(self._of_caller)

    # --- details --------------------------------------------------------------

    def _callers(self, device: Device | None) -> Stream | None:
        """Return the caller's current stream of a device, None if it has no streams."""
        return None if device is None else stream_for(device, self._of_caller)

    def _stream_of(self, producer: Node | None, device: Device) -> Stream | None:
        """Return the stream on which a node has made a gradient on `device`."""
        if producer is None:
            return None
        if isinstance(producer, GraphRoot):  # it hands on the caller's gradients
            return self._callers(device)
        return producer.forward_stream

    def _record(self, stream: Stream, node: int) -> Event:
        event = Event(stream.device)
        event.record(stream, task=self._task, node=node)
        return event

    def _wait(self, stream: Stream, receiver: Node, ready: Ready) -> None:
        """Make a stream wait for a gradient, on behalf of `receiver`."""
        # An event recorded only now waits for too much, but never for too little. The
        # rules need it only where devices are mixed, which is an error.
        event = ready.event or self._record(ready.stream, ready.producer)
        event.wait(stream, task=self._task, node=receiver.id, producer=ready.producer)


def _stored_at(node: AccumulateGrad) -> Gradient:
    """Return the ``.grad`` of a leaf; None if it has none, or is gone."""
    leaf = node.leaf
    return None if leaf is None else node.stored(leaf)


def _current(gradient: Gradient) -> Stream | None:
    device = device_of(gradient)
    return None if device is None else stream_for(device)
