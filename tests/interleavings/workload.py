"""Passes of scenarios: nodes whose results are known beforehand.

They multiply and add whole numbers and report when they work. Their graph is like any
other to the engine.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self, TypeAlias

from gradviz.backends.base import accelerator_of
from gradviz.backends.device import CPU, Device
from gradviz.backends.stream import current_stream
from gradviz.engine.graph.basic_nodes import AccumulateGrad
from gradviz.engine.graph.node import Edge, Node
from gradviz.testing.scheduler import pause
from gradviz.trace.probe import How
from tests.backends.noted_device import Notebook, NotedBackend

#: Told of a node for as long as it works.
Watch: TypeAlias = Callable[[Node], AbstractContextManager[None]]


class Amount:
    """A gradient: a number whose additions take time.

    Looks enough like an array that the engine may add to it in place. On a device its
    accesses are noted there.

    Args:
        value: The number.
        device: Where it is.
        reads: What it is computed from.
        by: The device that computes it, on its current stream; the CPU has `device` do
            so.
    """

    __slots__ = ("_notebook", "device", "memory", "value")

    shape = ()
    dtype = "float64"
    owndata = True
    writeable = True

    def __init__(
        self,
        value: float,
        device: Device = CPU,
        reads: "Sequence[Amount]" = (),
        by: Device = CPU,
    ) -> None:
        self.value = value
        self.device = device
        if device is not CPU:
            self._notebook = notebook_of(device)
            self.memory = self._notebook.allocate(current_stream(device))
        if by is CPU:
            by = device
        work_on(by, reads=reads, writes=(self,))
        if by is not device and device is not CPU:  # as a copy between devices ends
            current_stream(device).wait_stream(current_stream(by))

    def __del__(self) -> None:
        if self.device is not CPU:
            self._notebook.free(self.memory)

    @property
    def flags(self) -> "Amount":
        """Like an array's: says that the memory is its own."""
        return self

    def __add__(self, other: "Amount") -> "Amount":
        mine = self.value
        pause()
        return Amount(mine + other.value, self.device, (self, other))

    def __iadd__(self, other: "Amount") -> Self:
        mine = self.value
        pause()
        self.value = mine + other.value
        work_on(self.device, reads=(other,), writes=(self,))
        return self


def work_on(
    device: Device, *, reads: Sequence[Amount] = (), writes: Sequence[Amount] = ()
) -> None:
    """Note work of the current stream of a device; that of the CPU is nothing."""
    if device is CPU:
        return
    notebook_of(device).launch(
        "work",
        current_stream(device),
        [one.memory for one in reads if one.device is not CPU],
        [one.memory for one in writes if one.device is not CPU],
    )


def notebook_of(device: Device) -> Notebook:
    """Return the notebook of a scenario's device."""
    backend = accelerator_of(device)
    assert isinstance(backend, NotedBackend)
    return backend.notebook


class Leaf:
    """Leaf that a pass adds to.

    Attributes:
        grad: The sum as a plain number: adding to it takes no time.
        requires_grad: Always True.
    """

    requires_grad = True

    def __init__(self) -> None:
        self.grad: float | None = None


class Scaling(Node):
    """Multiplies the sum of its gradients by a number for each edge.

    Equal numbers give the *same* gradient object for several edges, as real operations
    do, which is then nobody's to overwrite.

    Args:
        watch: Is told while it works.
        edges: Each a factor and where that gradient goes; the first input, mostly.
        device: Where it runs.
        num_inputs: How many gradients it takes.
        body: What it does besides, in the middle of its work.
    """

    __slots__ = ("_factors", "_watch", "body")

    def __init__(
        self,
        watch: Watch,
        edges: Sequence[tuple[float, Node | Edge]],
        device: Device = CPU,
        *,
        num_inputs: int = 1,
        body: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(
            [Edge(to) if isinstance(to, Node) else to for _, to in edges],
            (None,) * num_inputs,
            device,
        )
        self._watch = watch
        self._factors = tuple(factor for factor, _ in edges)
        self.body = body

    def apply(self, *grads: Amount | None) -> Sequence[Amount]:
        """One gradient for each edge."""
        with self._watch(self):
            if self.body is not None:
                self.body()
            given = [grad for grad in grads if grad is not None]
            outputs = self.scaled(sum(grad.value for grad in given))
            places = [
                (value, CPU if receiver is None else receiver.runs_on)
                for value, (receiver, _) in zip(outputs, self.next_edges, strict=True)
            ]
            made = {
                (value, device): Amount(value, device, given, self.runs_on)
                for value, device in dict.fromkeys(places)
            }
            return tuple(made[place] for place in places)

    def scaled(self, total: float) -> tuple[float, ...]:
        """Return a node's results for gradients with this sum."""
        return tuple(factor * total for factor in self._factors)


class Total(AccumulateGrad):
    """Adds to a leaf."""

    __slots__ = ("_watch",)

    leaf: Leaf

    def __init__(self, watch: Watch, device: Device = CPU) -> None:
        super().__init__(Leaf(), None, device)
        self._watch = watch

    def accumulate(self, inputs: list[Any]) -> How:
        """Note that it runs."""
        with self._watch(self):
            return super().accumulate(inputs)

    def wrapped(self, gradient: Amount) -> float:
        """The number alone."""
        work_on(gradient.device, reads=(gradient,))
        return gradient.value

    def copied(self, leaf: Any, gradient: Amount) -> float:
        """The number alone."""
        del leaf
        return self.wrapped(gradient)


def serial_gradients(root: Node, gradient: float) -> dict[Node, float]:
    """Return the total gradient of each node under `root`, computed serially."""
    received: defaultdict[Node, float] = defaultdict(float, {root: gradient})
    for node in sorted(reachable(root), key=lambda node: -node.topological_nr):
        if isinstance(node, Scaling):
            outputs = node.scaled(received[node])
            for (receiver, _), output in zip(node.next_edges, outputs, strict=True):
                if receiver is not None:
                    received[receiver] += output
    return received


def reachable(root: Node) -> list[Node]:
    """Every node that a pass from `root` may run, `root` first."""
    found = [root]
    for node in found:  # grows while it is walked
        for receiver, _ in node.next_edges:
            if receiver is not None and receiver not in found:
                found.append(receiver)
    return found
