"""Two accelerators that take notes, and what a test does with them.

Arrays are single numbers. See `tests.backends.noted_device`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

from gradviz.backends.base import copy_to
from gradviz.backends.device import Device
from gradviz.backends.stream import Stream, current_stream
from gradviz.engine import Edge, Node
from tests.backends.noted_device import Notebook, NotedBackend
from tests.engine.nodes import edge

NOTED_0 = Device("noted", 0)
NOTED_1 = Device("noted", 1)


class Flags(NamedTuple):
    owndata: bool = True
    writeable: bool = True


class Array:
    """A number in the memory of a noted device."""

    dtype: type = float
    flags = Flags()
    nbytes = 8
    shape = ()

    def __init__(self, notebook: Notebook, device: Device, value: float) -> None:
        self.notebook = notebook
        self.device = device
        self.value = value
        self.memory = notebook.allocate(current_stream(device))

    def __del__(self) -> None:
        self.notebook.free(self.memory)

    def __add__(self, other: "Array") -> "Array":
        return kernel("add", self, other, value=self.value + other.value)

    def __iadd__(self, other: "Array") -> Self:
        stream = current_stream(self.device)
        self.notebook.launch("add in place", stream, [other.memory], [self.memory])
        self.value += other.value
        return self

    def copy(self) -> "Array":
        return kernel("copy", self, value=self.value)


def kernel(
    name: str, *reads: Array, value: float, device: Device | None = None
) -> Array:
    """Launch work on the current stream of the first array's device."""
    first = reads[0]
    result = Array(first.notebook, device or first.device, value)
    first.notebook.launch(
        name,
        current_stream(first.device),
        [one.memory for one in reads],
        [result.memory],
    )
    return result


class Backend(NotedBackend):
    """Two devices of type ``noted``."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__("noted", (Array,), 2, notebook)

    def to_peer(self, array: Array, device: Device) -> Array:
        source, target = current_stream(array.device), current_stream(device)
        source.wait_stream(target)
        result = kernel("to_peer", array, value=array.value, device=device)
        target.wait_stream(source)
        return result


class Work(Node):
    """Adds up its gradients on its device, and sends the sum to all receivers.

    It is copied to where a receiver is that runs elsewhere. `returns` replaces that.
    """

    __slots__ = ("label", "ran_on", "returns")

    def __init__(
        self,
        *receivers: "Node | Edge | None",
        device: Device = NOTED_0,
        inputs: int = 1,
        label: str = "work",
        returns: "Callable[..., Any] | None" = None,
    ) -> None:
        super().__init__([edge(one) for one in receivers], (None,) * inputs, device)
        self.label = label
        self.returns = returns
        self.ran_on: Stream | None = None

    def apply(self, *grads: Any) -> Any:
        self.ran_on = current_stream(self.runs_on)
        if self.returns is not None:
            return self.returns(*grads)
        known = [grad for grad in grads if grad is not None]
        total = kernel(self.label, *known, value=sum(one.value for one in known))
        return tuple(_moved(total, receiver) for receiver, _ in self.next_edges)


def _moved(array: Array, receiver: Node | None) -> Array:
    if receiver is None or receiver.runs_on in (array.device, Device("cpu")):
        return array
    return copy_to(array, receiver.runs_on)


def gradient(notebook: Notebook, device: Device = NOTED_0, value: float = 1.0) -> Array:
    """A number that the current stream writes."""
    array = Array(notebook, device, value)
    notebook.launch("fill", current_stream(device), writes=[array.memory])
    return array


def use(*arrays: Array) -> None:
    """Read arrays on the current streams, as a user's program does."""
    for array in arrays:
        array.notebook.launch("use", current_stream(array.device), [array.memory])
