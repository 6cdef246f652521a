"""The module and line that made a node, in programs of several threads.

Each layer runs a Function with a name of its own, so the name of a node tells which
layer of which model made it.
"""

import itertools
import linecache
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import gradviz as gv
from tests.parity.pytorch_recordings import faults, leaf, recorded

torch = pytest.importorskip("torch")

numbers = itertools.count()


def function(name: str) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * 2 + 0 * x.sin()

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(name, (torch.autograd.Function,), methods)


class Layer(torch.nn.Module):
    def __init__(self, name: str, layers: int = 0) -> None:
        super().__init__()
        self.run = function(name)
        parts = [Layer(f"{name}_parts_{nr}") for nr in range(layers)]
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x: Any) -> Any:
        x = self.run.apply(x)
        for part in self.parts:
            x = part(x)
        return x


class Model(Layer):
    """All models have this name, but for a number."""

    def __init__(self, layers: int = 2) -> None:
        super().__init__(f"M{next(numbers)}", layers)


def loss_of(*models: Any) -> Any:
    x = leaf(3)
    for one in models:
        x = one(x)
    return x.sum()


def in_thread(work: Callable[[], Any]) -> Any:
    """Run in a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def layers_of(recording: Any) -> dict[tuple[str, str], str]:
    """Model and path of each layer that made a node -> the module that is told."""
    layers = {}
    for node in recording.trace.nodes.values():
        if node.name.startswith("M") and node.name[1].isdigit():
            name = node.name.removesuffix("Backward")
            model, _, path = name.partition("_")
            layers[model, path.replace("_", ".")] = node.module
    return layers


def is_right(layers: dict[tuple[str, str], str]) -> bool:
    """Return whether all modules are known, and those that made the nodes."""
    roots: dict[str, str] = {}
    for (model, path), module in layers.items():
        root = module.partition(".")[0]
        if module != f"{root}.{path}".strip(".") or not root.startswith("Model"):
            return False
        if roots.setdefault(model, root) != root:
            return False
    return len(set(roots.values())) == len(roots) > 0


def after_another_model(work: Callable[[], Any]) -> Callable[[], Any]:
    """Have the thread that calls run another model, with as many numbers, before."""

    def program() -> None:
        loss_of(*[Model()] * 9).backward()
        work()

    return program


def a_worker_runs_the_forward() -> None:
    in_thread(lambda: loss_of(Model())).backward()


def a_worker_runs_the_backward() -> None:
    loss = loss_of(Model())
    in_thread(loss.backward)


def one_worker_each() -> None:
    loss = in_thread(lambda: loss_of(Model()))
    in_thread(loss.backward)


def three_models_in_three_threads_are_one_graph() -> None:
    x = in_thread(lambda: Model()(leaf(3)))
    y = in_thread(lambda: Model()(x))
    (Model()(y) + x).sum().backward()


def threads_train_at_once() -> None:
    barrier = threading.Barrier(3)

    def train() -> None:
        one = Model()
        for _ in range(3):
            barrier.wait()
            loss_of(one).backward()

    threads = [threading.Thread(target=train) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def no_module_of_the_worker_is_called() -> None:
    one = Model(0)
    in_thread(lambda: one.forward(leaf(3)).sum()).backward()


def twice_over_one_graph() -> None:
    loss = in_thread(lambda: loss_of(Model()))
    loss.backward(retain_graph=True)
    in_thread(loss.backward)


def a_second_derivative() -> None:
    x = leaf(3)
    y = in_thread(lambda: Model()(x).sum())
    (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    in_thread((Model()(gradient).sum() + y).backward)


def hooks_run_modules() -> None:
    other = Model()

    def hook(gradient: Any) -> Any:
        in_thread(lambda: loss_of(other)).backward()
        return gradient

    def forward() -> Any:
        x = Model()(leaf(3))
        x.register_hook(hook)
        return x.sum()

    in_thread(forward).backward()


PROGRAMS = [
    a_worker_runs_the_forward,
    a_worker_runs_the_backward,
    one_worker_each,
    three_models_in_three_threads_are_one_graph,
    threads_train_at_once,
    twice_over_one_graph,
    a_second_derivative,
    hooks_run_modules,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("before", [lambda one: one, after_another_model])
def test_nodes_are_of_the_module_that_made_them_on_whatever_thread(before, program):
    recording = recorded(before(program))

    assert is_right(layers_of(recording))
    assert faults(recording) == []


def test_a_node_made_outside_of_modules_has_no_module_despite_matching_numbers():
    unheard = Model(0)

    def program() -> None:
        in_thread(lambda: unheard.forward(leaf(3)).sum()).backward()

    layers = layers_of(recorded(after_another_model(program)))
    name = unheard.run.__name__
    assert layers.pop((name, "")) == ""
    assert is_right(layers)


def test_a_forward_before_the_recording_has_no_modules():
    losses = [loss_of(Model()), in_thread(lambda: loss_of(Model()))]

    def program() -> None:
        for loss in losses:
            loss.backward()

    recording = recorded(after_another_model(program))
    modules = list(layers_of(recording).values())
    assert modules.count("") == 6
    assert len(modules) == 6 + 3


def test_a_forward_in_an_earlier_recording_keeps_its_modules():
    losses: list[Any] = []
    recorded(lambda: losses.append(in_thread(lambda: loss_of(Model()))))
    with torch.no_grad():
        Model()(leaf(3))

    assert is_right(layers_of(recorded(after_another_model(losses[0].backward))))


def test_a_recording_may_end_inside_of_a_module():
    class Ending(Model):
        def forward(self, x: Any) -> Any:
            recording.close()
            return super().forward(x)

    recording = gv.pytorch.record()
    Ending()(leaf(3))
    losses = [loss_of(Model())]

    assert is_right(layers_of(recorded(lambda: loss_of(Model()).backward())))
    layers = layers_of(recorded(losses[0].backward))
    assert set(layers.values()) == {""}


def test_lines_of_anomaly_mode_stay_on_whatever_thread():
    def program() -> None:
        with torch.autograd.detect_anomaly(check_nan=False):
            in_thread(lambda: loss_of(Model())).backward()

    with pytest.warns(UserWarning, match="Anomaly"):
        recording = recorded(after_another_model(program))
    assert is_right(layers_of(recording))
    lines = [
        source(node.location)
        for node in recording.trace.nodes.values()
        if node.location and node.name.startswith("M")
    ]
    assert len(lines) >= 3
    assert all("self.run.apply(x)" in line for line in lines)


def test_lines_are_those_of_the_model_that_ran():
    models = [torch.nn.Sequential(one()) for one in (torch.nn.Sigmoid, torch.nn.Tanh)]

    def program() -> None:
        models[0](leaf(3)).sum().backward()
        in_thread(lambda: models[1](leaf(3)).sum()).backward()

    nodes = {one.name: one for one in recorded(program).trace.nodes.values()}
    first, second = nodes["SigmoidBackward0"], nodes["TanhBackward0"]
    assert first.module != second.module
    assert "models[0](" in source(first.location)
    assert "models[1](" in source(second.location)


def source(location: str) -> str:
    path, _, line = location.rpartition(":")
    return linecache.getline(path, int(line))
