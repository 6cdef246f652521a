"""Target of injected faults: passes on every kind of thread, exact results.

Needs neither NumPy nor tensors, so that a program of a few lines starts fast. Every
gradient is an integer, so that a sum is exact or wrong.
"""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from gradviz.backends.base import register
from gradviz.backends.device import CPU, Device
from gradviz.engine import AccumulateGrad, Edge, Engine, Node
from gradviz.engine.graph.node import NodeHooks
from tests.engine.nodes import new_worker

#: Reentrant calls nested on one thread before the pool takes over: few, so that a test
#: on a pool thread is cheap.
MAX_DEPTH = 2

#: The kinds of threads that can host a fault.
PLACES = ("caller", "device", "pool")

#: How long a test waits for what must come before it fails instead of hanging: longer
#: than a loaded machine may take.
PATIENCE_SECONDS = 60.0

#: What a thread that has left a backward must be as if it had never been in one (R7).
_PUT_BACK = (
    "worker_device",
    "current_depth",
    "total_depth",
    "graph_task",
    "node",
    "are_outer_unrestricted",
    "in_user_code",
    "is_interrupted",
    "calls",
)


class _PlainBackend:
    """Eight devices without arrays of their own."""

    type = "scene"
    array_types: tuple[type, ...] = ()

    def device_count(self) -> int:
        return 8

    def is_initialized(self) -> bool:
        return False

    def device_of(self, array: Any) -> Device:
        raise NotImplementedError

    def from_host(
        self, array: Any, device: Device, *, non_blocking: bool = False
    ) -> Any:
        raise NotImplementedError

    def to_host(self, array: Any, *, non_blocking: bool = False) -> Any:
        raise NotImplementedError


register(_PlainBackend())
DEVICES = tuple(Device("scene", index) for index in range(8))


def new_engine(**settings: Any) -> Engine:
    return Engine(**{"max_depth": MAX_DEPTH} | settings)


class Leaf:
    """Leaf of an `AccumulateGrad`."""

    def __init__(self) -> None:
        self.grad: Any = None
        self.requires_grad = True


class Call(Node):
    """Runs a function of the test's; hands its gradient on if that returns None."""

    def __init__(
        self,
        function: Callable[[], object],
        *receivers: Node,
        inputs: int = 1,
        device: Device = CPU,
    ) -> None:
        super().__init__(
            [Edge(receiver, 0) for receiver in receivers], (None,) * inputs, device
        )
        self.function = function

    def apply(self, *grads: Any) -> Any:
        result = self.function()
        return (grads[0],) * len(self.next_edges) if result is None else result


def nothing() -> None:
    """Do nothing: the body of a node that only hands its gradient on."""


def calling(function: Callable[..., Any], *arguments: Any) -> Callable[[], None]:
    """Return the body of a node that calls `function` and hands its gradient on."""

    def call() -> None:
        function(*arguments)

    return call


def run(engine: Engine, root: Node, gradient: Any = 1, **settings: Any) -> Any:
    """A backward from one root."""
    return engine.execute([Edge(root, 0)], [gradient], **settings)


def run_at(
    engine: Engine, place: str, function: Callable[[], object], *receivers: Node
) -> Any:
    """A backward whose root runs `function` on a thread of the given kind."""
    if place == "pool":
        return run_nested(engine, MAX_DEPTH + 1, function, *receivers)
    device = DEVICES[0] if place == "device" else CPU
    return run(engine, Call(function, *receivers, device=device))


def run_nested(
    engine: Engine, depth: int, function: Callable[[], object], *receivers: Node
) -> Any:
    """The same inside `depth` reentrant backwards."""
    if depth == 0:
        return run(engine, Call(function, *receivers))
    return run(
        engine,
        Call(calling(run_nested, engine, depth - 1, function, *receivers)),
    )


def wait_until(is_true: Callable[[], object]) -> None:
    """Ask again and again, and let the other threads run; fails if it never is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_true():
        assert time.monotonic() < deadline, "what was waited for never came"
        time.sleep(0.001)


def on_thread(function: Callable[[], Any]) -> Any:
    """Run `function` on a thread of its own; its result, or its error."""
    outcome: list[Any] = []

    def target() -> None:
        try:
            outcome.append((function(), None))
        except BaseException as error:  # noqa: BLE001 - the test asks for it
            outcome.append((None, error))

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    assert outcome, "the thread hangs"
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


class Scene:
    """A pass that uses all there is, and whose result is known.

    Its root fans out to the caller, two devices, and a reentrant backward deep enough
    for the pool; they meet in one node, behind which is a leaf. Hooks of every kind
    and a final callback run on the way.

    Args:
        engine: Runs it.
        touch: Called by every node, hook and callback with its name.
        is_small: Leave out devices and pool: everything on the calling thread.
    """

    def __init__(
        self,
        engine: Engine,
        touch: Callable[[str], None] = lambda name: None,
        *,
        is_small: bool = False,
    ) -> None:
        self._engine = engine
        self._touch = touch
        self._depth = 1 if is_small else MAX_DEPTH + 1
        self._leaf = Leaf()
        self._inner = Leaf()
        self._is_called_back = False
        leaf = AccumulateGrad(self._leaf)
        join = self._node("join", leaf)
        join.hooks = NodeHooks()
        join.hooks.pre = (lambda grads: touch("pre hook"),)
        join.hooks.post = (lambda outputs, inputs: touch("post hook"),)
        join.hooks.tensor_pre = ((0, lambda grad: touch("tensor hook")),)
        first, second = (CPU, CPU) if is_small else DEVICES[:2]
        branches = (
            self._node("plain", join),
            self._node(
                "first", self._node("across", join, device=second), device=first
            ),
            self._node("second", join, device=second),
            Call(self._reenter, join),
        )
        self.root = self._node("root", *branches)

    def _node(self, name: str, *receivers: Node, device: Device = CPU) -> Node:
        return Call(lambda: self._touch(name), *receivers, device=device)

    def _reenter(self) -> None:
        self._engine.queue_callback(self._called_back)
        inner = AccumulateGrad(self._inner)
        run_nested(self._engine, self._depth, lambda: self._touch("reentrant"), inner)

    def _called_back(self) -> None:
        self._touch("callback")
        self._is_called_back = True

    def run(self) -> None:
        """Run the pass; raises whatever it raises."""
        run(self._engine, self.root, 3)

    def check(self) -> None:
        """Assert that the pass that ran did all of its work, once."""
        assert self._leaf.grad == 12
        assert self._inner.grad == 1
        assert self._is_called_back


def assert_works_here(engine: Engine) -> None:
    """Assert that the calling thread is as if nothing had happened, and backward exact.

    Called by a thread that is in no backward.
    """
    assert_idle(engine)
    scene = Scene(engine)
    scene.run()
    scene.check()
    assert_idle(engine)


def assert_works(engine: Engine) -> None:
    """The same, for the calling thread and for another one."""
    assert_devices_idle(engine)
    assert_works_here(engine)
    on_thread(lambda: assert_works_here(engine))


def surviving_engine() -> Iterator[Engine]:
    """An engine that must still work when a test has done its worst to it.

    On the thread of the test and on another one, with devices and the pool, with
    nothing left behind. For the fixtures of tests.
    """
    engine = new_engine()
    yield engine
    assert_works(engine)
    engine.stop()


def assert_idle(engine: Engine) -> None:
    """Assert that the calling thread's state is that of a thread in no backward."""
    state, fresh = engine.worker(), new_worker()
    wrong = {
        name: getattr(state, name)
        for name in _PUT_BACK
        if getattr(state, name) != getattr(fresh, name)
    }
    assert not wrong, f"the thread's state was not put back: {wrong}"
    queue = state.ready_queue
    assert queue is None or not len(queue), "the thread's queue has a task left"
    # A second interrupt ends the wait for a stand-in that still runs a nested pass.
    wait_until(lambda: engine.dump_state().startswith("0 passes"))


def assert_devices_idle(engine: Engine) -> None:
    """Assert that no device has a task left, and its thread is in no backward.

    Nor does a thread of the pool stand in for one any more: a queue has one consumer.
    """
    wait_until(lambda: not engine._pool._served)
    for queue in engine.queues:
        assert not len(queue), f"{queue.name} has a task left"
    for state in engine._threads:
        if state.worker_device >= 0 and state.ready_queue in tuple(engine.queues):
            assert not state.calls, f"{state.thread_name} has calls that are over"
            assert state.total_depth == state.current_depth == 0
