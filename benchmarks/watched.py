"""What it costs that PyTorch's own backward is recorded, beside other ways to look."""

from collections.abc import Callable
from typing import Any

import gradviz
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
