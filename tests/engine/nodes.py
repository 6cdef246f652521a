"""Nodes, leaves and gradients to build test graphs from: no tensor anywhere."""

import inspect
import operator
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import gradviz.backends.cpu
import gradviz.backends.simulated  # noqa: F401 - makes sim:0 and sim:1 known
from gradviz.backends.device import CPU, Device
from gradviz.engine import Edge, Engine, InputMetadata, Node, PyTorchSchedule
from gradviz.engine.engine import MAX_DEPTH
from gradviz.engine.graph.sync import THREADS, Sync
from gradviz.engine.tasks.device_queues import DeviceQueues
from gradviz.engine.tasks.graph_task import CPU_DEVICE, GraphTask
from gradviz.engine.tasks.ready_queue import ReadyQueue
from gradviz.engine.threads.worker import Worker
from gradviz.trace.probe import METHODS, Probe

T = TypeVar("T")

SIM_0 = Device("sim", 0)
SIM_1 = Device("sim", 1)

#: How long a test waits for what must come, before it fails instead of hanging.
PATIENCE_SECONDS = 60.0


def edge(receiver: "Node | Edge | None") -> Edge:
    return receiver if isinstance(receiver, Edge) else Edge(receiver, 0)


class Call(Node):
    """Runs a function of the test's."""

    __slots__ = ("function",)

    def __init__(
        self,
        function: Callable[..., Any],
        *receivers: "Node | Edge | None",
        inputs: int = 1,
        metadata: Sequence[InputMetadata | None] | None = None,
        device: Device = CPU,
    ) -> None:
        super().__init__(
            [edge(one) for one in receivers],
            (None,) * inputs if metadata is None else metadata,
            device,
        )
        self.function = function

    def apply(self, *grads: Any) -> Any:
        return self.function(*grads)


class Pass(Node):
    """Sends the sum of its gradients, times `factor`, along every edge.

    Adds its label to `log` when it runs.
    """

    __slots__ = ("factor", "label", "log")

    def __init__(
        self,
        *receivers: "Node | Edge | None",
        log: list[str] | None = None,
        label: str = "",
        factor: int = 1,
        inputs: int = 1,
        device: Device = CPU,
    ) -> None:
        super().__init__([edge(one) for one in receivers], (None,) * inputs, device)
        self.log = [] if log is None else log
        self.label = label
        self.factor = factor

    def apply(self, *grads: Any) -> Any:
        self.log.append(self.label)
        total = sum(grad for grad in grads if grad is not None)
        return (total * self.factor,) * len(self.next_edges)


class Sink(Node):
    """Keeps what it is given."""

    __slots__ = ("received",)

    def __init__(self, inputs: int = 1, device: Device = CPU) -> None:
        super().__init__((), (None,) * inputs, device)
        self.received: list[tuple[Any, ...]] = []

    def apply(self, *grads: Any) -> Any:
        self.received.append(grads)
        return ()


@dataclass
class Leaf:
    """The least that `AccumulateGrad` asks for."""

    grad: Any = None
    requires_grad: bool = True


@dataclass(frozen=True)
class Money:
    """A gradient of the user's own class: it can be added, and nothing else."""

    cents: int

    def __add__(self, other: "Money") -> "Money":
        return Money(self.cents + other.cents)


class Listener(Probe):
    """Hears everything: who reported what, with which arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, dict[str, Any]]] = []

    def of(self, method: str, *fields: str) -> list[Any]:
        """The named fields of each call of `method`: values, or tuples of several."""
        chosen = operator.itemgetter(*fields)
        return [chosen(fields) for _, name, fields in self.calls if name == method]

    def threads_of(self, method: str) -> list[str]:
        return [thread for thread, name, _ in self.calls if name == method]


def _hearing(name: str) -> Callable[..., None]:
    signature = inspect.signature(getattr(Probe, name))

    def hear(self: Listener, *args: Any, **kwargs: Any) -> None:
        arguments = signature.bind(self, *args, **kwargs).arguments
        self.calls.append((thread_name(), name, arguments))

    return hear


for _name in METHODS:
    setattr(Listener, _name, _hearing(_name))


def new_graph_task(sync: Sync = THREADS, **settings: Any) -> GraphTask:
    """A pass without an engine; `settings` are the arguments of `GraphTask`."""
    queue: ReadyQueue = ReadyQueue(sync, PyTorchSchedule, CPU_DEVICE)
    defaults: dict[str, Any] = {
        "keep_graph": False,
        "create_graph": False,
        "reentrant_depth": 0,
        "cpu_ready_queue": queue,
        "roots": (),
        "outputs": (),
        "owner": CPU_DEVICE,
        "home": None,
        "uses_device_threads": True,
        "probe": None,
    }
    return GraphTask(sync, **(defaults | settings))


def new_worker(sync: Sync = THREADS, queues: DeviceQueues | None = None) -> Worker:
    """The calling thread without an engine, which has no devices unless given some."""
    return Worker(sync, queues or DeviceQueues(sync, PyTorchSchedule))


class WatchingLock:
    """A lock that fails if something changes while it is free.

    Args:
        look: What it guards.
    """

    def __init__(self, look: Callable[[], object]) -> None:
        self._look = look
        self.free = look()
        self.num_taken = 0

    def __enter__(self) -> bool:
        assert self._look() == self.free, "it changed before the lock was taken"
        self.num_taken += 1
        return True

    def __exit__(self, *error: object) -> None:
        self.free = self._look()


class Mailbox:
    """Lets one thread wait for another, and fails where that never comes."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def send(self) -> None:
        self._event.set()

    def wait(self) -> None:
        assert self._event.wait(PATIENCE_SECONDS), "the other thread never came"

    def arrives_within(self, seconds: float) -> bool:
        return self._event.wait(seconds)


def in_thread(function: Callable[[], T]) -> T:
    """Run `function` on a thread of its own; its result, or its error."""
    return start_thread(function).result(PATIENCE_SECONDS)


def start_thread(function: Callable[[], T]) -> "Future[T]":
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - the test asks for it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def engine_threads() -> set[threading.Thread]:
    """The threads of all engines that are alive."""
    return {
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("gv_autograd")
    }


def join_all(threads: Iterable[threading.Thread]) -> None:
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), f"{thread.name} did not end"


def thread_name() -> str:
    return threading.current_thread().name


#: The kinds of threads a node can run on.
PLACES = ("caller", "device", "pool")


def run_at(engine: Engine, place: str, function: Callable[..., Any]) -> Any:
    """Run a node that calls `function` on a thread of the given kind."""
    if place == "pool":
        return run_nested(engine, MAX_DEPTH + 1, function)
    node = Call(function, device=SIM_0 if place == "device" else CPU)
    return engine.execute([(node, 0)], [1.0])


def run_nested(engine: Engine, depth: int, function: Callable[..., Any]) -> Any:
    """Run a node that calls `function` inside `depth` reentrant backwards."""

    def descend(grad: float) -> Any:
        return run_nested(engine, depth - 1, function)

    node = Call(descend if depth else function)
    return engine.execute([(node, 0)], [1.0])


def raiser(error: BaseException) -> Callable[..., Any]:
    """Return the body of a failing node."""

    def fail(*grads: Any) -> Any:
        raise error

    return fail
