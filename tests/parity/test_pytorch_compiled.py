"""Programs of PyTorch's that use `torch.compile`, recorded: it notices nothing."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import gradviz as gv
from gradviz.trace import events as e
from tests.parity.pytorch_recordings import faults, leaf, of_kind, recorded
from tests.sampled import sampled

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

#: What Dynamo counts while it compiles.
COUNTED = ("frames", "graph_break", "stats", "unimplemented", "recompiles")


class Breaks(torch.nn.Module):
    """Breaks the graph inside of a module, so that parts of it are called as ever."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(2))

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
            torch._dynamo.graph_break()
        return x.relu()


def training(backend: str) -> None:
    """Steps, the first not compiled; compiled are backward and optimizer, too."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any) -> None:
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step(torch.ones(2, 4))
    compiled = torch.compile(step, backend=backend)
    for _ in range(3):
        compiled(torch.ones(2, 4))


def breaking(backend: str) -> None:
    model = torch.compile(Breaks(), backend=backend)
    for num_rows in (2, 3):  # the second time with other shapes
        model(torch.ones(num_rows, 4)).sum().backward()


def with_hooks(backend: str) -> None:
    """The engine calls a hook, which Dynamo compiles as well."""

    @torch.compile(backend=backend)
    def step(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda grad: grad.sin() * 2)
        y.sum().backward()
        (grad,) = torch.autograd.grad((x * x).sum(), [x])
        return grad

    for _ in range(2):
        step(leaf())


def compiled_autograd(backend: str) -> None:
    compiled = torch.compile(backend=backend)
    with torch._dynamo.compiled_autograd._enable(compiled):
        for _ in range(2):
            leaf().sin().sum().backward()


def profiled(backend: str) -> None:
    """The program's own profiler begins, steps and ends inside of compiled code."""
    steps = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    cpu = [torch.profiler.ProfilerActivity.CPU]
    profiler = torch.profiler.profile(activities=cpu, schedule=steps)

    @torch.compile(backend=backend)
    def step(x: Any) -> Any:
        (x * 2).sum().backward()
        profiler.step()
        return x.sin()

    @torch.compile(backend=backend)
    def train() -> None:
        profiler.start()
        for _ in range(5):
            step(leaf())
        profiler.stop()

    train()


def counted(program: Callable[[str], None], backend: str) -> dict[str, Counter[str]]:
    """Counts of Dynamo in a program that finds nothing compiled."""
    counters = torch._dynamo.utils.counters
    torch._dynamo.reset()
    counters.clear()
    program(backend)
    return {name: Counter(counters[name]) for name in COUNTED}


@pytest.mark.parametrize(
    "program", [training, breaking, with_hooks, compiled_autograd, profiled]
)
@pytest.mark.parametrize("backend", sampled(["eager", "aot_eager"], 2))
def test_a_recording_leaves_the_counts_of_compiled_frames_unchanged(program, backend):
    counted(program, backend)  # some frames are looked at once in a process
    unwatched = counted(program, backend)
    with gv.pytorch.record():
        watched = counted(program, backend)

    assert unwatched["frames"]
    assert watched == unwatched


@pytest.mark.parametrize(
    ("program", "num_passes"), [(training, 4), (breaking, 2), (with_hooks, 4)]
)
def test_passes_of_compiled_steps_are_recorded(program, num_passes):
    torch._dynamo.reset()

    recording = recorded(lambda: program("eager"))

    assert len(of_kind(recording, e.TaskCompleted)) == num_passes
    assert faults(recording) == []


def test_code_compiled_for_one_recording_is_not_compiled_again_for_the_next():
    torch._dynamo.reset()
    model = torch.compile(Breaks(), backend="eager")

    def step() -> None:
        model(torch.ones(2, 4)).sum().backward()

    recorded(step)
    before = Counter(torch._dynamo.utils.counters["frames"])
    recorded(step)
    assert Counter(torch._dynamo.utils.counters["frames"]) == before


def test_of_compiled_autograd_passes_are_there_and_no_node_is_seen():
    torch._dynamo.reset()

    recording = recorded(lambda: compiled_autograd("eager"))

    doubts = [one.text for one in of_kind(recording, e.Unexplained)]
    assert len(doubts) == len(of_kind(recording, e.TaskCompleted)) == 2
    assert all("none of its nodes was seen to run" in text for text in doubts)
    assert not of_kind(recording, e.TaskPushed)
