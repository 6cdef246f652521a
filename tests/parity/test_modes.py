"""Modes that a backward changes are afterwards what they are in PyTorch."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.parity.outcomes import same_in_both

pytestmark = pytest.mark.parity


def same(tensor: Any) -> Any:
    return tensor


def block(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def change(lib: Any) -> Any:
        entered = make(lib)
        entered.__enter__()
        return entered

    return change


#: What has been entered and not left. Some of it leaves a mode when it is let go.
KEPT: list[Any] = []


@pytest.fixture(autouse=True)
def leave_on_a_thread_of_no_consequence() -> Iterator[None]:
    yield
    thread = threading.Thread(target=KEPT.clear)
    thread.start()
    thread.join()


#: Each changes a mode, and returns what stands for it.
CHANGES = {
    "inference mode": block(lambda lib: lib.inference_mode()),
    "saved-tensor hooks": block(
        lambda lib: lib.autograd.graph.saved_tensors_hooks(same, same)
    ),
    "no saved-tensor hooks": block(
        lambda lib: lib.autograd.graph.disable_saved_tensors_hooks("refused")
    ),
    "gradient mode": lambda lib: lib.set_grad_enabled(True),
    "default device": lambda lib: lib.set_default_device("meta"),
    "default dtype": lambda lib: lib.set_default_dtype(lib.float64),
    "anomalies": lambda lib: lib.autograd.set_detect_anomaly(True),
}


def state(lib: Any) -> list[Any]:
    packed = []
    graph = lib.autograd.graph
    try:
        with graph.saved_tensors_hooks(packed.append, same):
            allows_hooks = True
    except RuntimeError:
        allows_hooks = False
    try:
        with graph.disable_saved_tensors_hooks("refused"):
            has_hooks = False
    except RuntimeError:
        has_hooks = True
    return [
        allows_hooks,
        has_hooks,
        lib.is_inference_mode_enabled(),
        lib.is_grad_enabled(),
        str(lib.get_default_device()),
        str(lib.get_default_dtype()).rpartition(".")[2],
        lib.is_anomaly_enabled() if hasattr(lib, "is_anomaly_enabled") else None,
    ]


def hooked(x: Any, hook: Callable[[], object]) -> Any:
    y = x * 2
    y.register_hook(lambda grad: hook() and None)
    return y


def queue(lib: Any, callback: Callable[[], object]) -> None:
    lib.autograd.Variable._execution_engine.queue_callback(callback)


def in_a_hook(lib, change, look, x):
    hooked(hooked(x, look), change).sum().backward()


def in_a_function(lib, change, look, x):
    class Changes(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            change()
            return grad

    Changes.apply(hooked(x, look)).sum().backward()


def before_a_callback(lib, change, look, x):
    x.register_hook(lambda grad: [change(), queue(lib, look)][-1])
    (x * 2).sum().backward()


def in_a_callback(lib, change, look, x):
    x.register_hook(lambda grad: [queue(lib, change), queue(lib, look)][-1])
    (x * 2).sum().backward()


def in_a_node_that_raises(lib, change, look, x):
    def hook():
        change()
        raise ValueError("raised")

    with pytest.raises(ValueError, match="raised"):
        hooked(x, hook).sum().backward()


def in_a_node_that_calls_backward(lib, change, look, x):
    with lib.enable_grad():
        inner = hooked(lib.ones(2, requires_grad=True), look).sum()

    def hook():
        change()
        look()
        inner.backward(lib.ones((), device="cpu", dtype=lib.float32))
        look()

    hooked(hooked(x, look), hook).sum().backward()


def in_an_inner_pass(lib, change, look, x):
    with lib.enable_grad():
        inner = hooked(lib.ones(2, requires_grad=True), change).sum()
    hooked(x, lambda: [inner.backward(), look()]).sum().backward()


PLACES = [
    in_a_hook,
    in_a_function,
    before_a_callback,
    in_a_callback,
    in_a_node_that_raises,
    in_a_node_that_calls_backward,
    in_an_inner_pass,
]


#: PyTorch forgets the default device within any of its own functions, `backward` too.
FORGOTTEN = (in_a_node_that_calls_backward, "default device")

CASES = [
    (place, change)
    for place in PLACES
    for change in CHANGES
    if (place, change) != FORGOTTEN
]


@pytest.mark.parametrize(("place", "change"), CASES)
def test_modes_are_what_they_are_in_pytorch(place, change):
    def program(lib):
        seen = []

        def act():
            KEPT.append(CHANGES[change](lib))

        try:
            place(
                lib,
                act,
                lambda: seen.append(state(lib)),
                lib.ones(2, requires_grad=True),
            )
            return seen, state(lib)
        finally:
            lib.set_default_dtype(lib.float32)
            lib.autograd.set_detect_anomaly(False)
            lib.set_default_device(None)

    same_in_both(program)
