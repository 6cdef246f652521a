"""What it costs that PyTorch's own backward is recorded, beside other ways to look."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import gradviz
from benchmarks.models import cnn, transformer
from benchmarks.timing import Contestant, timed
from gradviz.trace.events import TaskCompleted, ThreadStarted

NUM_NODES = 2000


def watchers(torch: Any) -> dict[str, Contestant]:
    """The backward of a chain of sin: alone, and with somebody who looks."""
    x = torch.arange(4.0, requires_grad=True)
    seed = torch.ones(4)

    def backward() -> Callable[[], None]:
        y = x
        for _ in range(NUM_NODES):
            y = y.sin()
        return lambda: y.backward(seed)

    def recorded() -> float:
        run = backward()
        with gradviz.pytorch.record():
            return timed(run)

    def inside() -> float:
        run = backward()
        with gradviz.pytorch.record() as recording:
            run()
        (called,) = (one for one in recording.events() if type(one) is ThreadStarted)
        (ended,) = (one for one in recording.events() if type(one) is TaskCompleted)
        return (ended.t_ns - called.t_ns) / 1e9

    def profiled() -> float:
        run = backward()

        def with_profiler() -> None:
            with torch.profiler.profile(activities=[cpu]):
                run()

        return timed(with_profiler)

    def hooked() -> float:
        y, heard = x, []
        for _ in range(NUM_NODES):
            y = y.sin()
            y.grad_fn.register_hook(lambda *_: heard.append(1))
        return timed(lambda: y.backward(seed))

    cpu = torch.profiler.ProfilerActivity.CPU
    return {
        "PyTorch": lambda: timed(backward()),
        "recorded by gradviz": recorded,
        "recorded, inside of the pass": inside,
        "torch.profiler": profiled,
        "a hook on each node": hooked,
    }


def watched_steps(torch: Any) -> dict[str, dict[str, Contestant]]:
    """Forwards and whole steps: alone, recorded, and under PyTorch's profiler.

    Returns:
        Contestants by what they do, and by who looks.
    """
    x = torch.arange(4.0, requires_grad=True)

    def chain() -> None:
        y = x
        for _ in range(NUM_NODES):
            y = y.sin()

    layers = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(100)))
    inputs = torch.ones(4, 8)
    work: dict[str, Contestant] = {
        "forward of PyTorch's chain": lambda: timed(chain),
        "forward of 100 PyTorch layers of 8 x 8": lambda: timed(lambda: layers(inputs)),
        "step of PyTorch's small CNN": cnn(torch),
        "step of PyTorch's transformer, width 256": transformer(
            torch, batch=16, width=256
        ),
    }
    cpu = torch.profiler.ProfilerActivity.CPU
    watching: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "PyTorch": nullcontext,
        "recorded by gradviz": gradviz.pytorch.record,
        "recorded without lines": lambda: gradviz.pytorch.record(stacks="none"),
        "torch.profiler": lambda: torch.profiler.profile(activities=[cpu]),
    }
    return {
        title: {who: _watched(one, watch) for who, watch in watching.items()}
        for title, one in work.items()
    }


def _watched(
    work: Contestant, watch: Callable[[], AbstractContextManager[Any]]
) -> Contestant:
    """Time work that somebody watches, but not how he begins and ends."""

    def once() -> float:
        with watch():
            work()
            return work()

    return once
