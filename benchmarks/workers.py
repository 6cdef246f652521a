"""Two workers, each a process: calls and passes between them, beside PyTorch's.

Run as ``python -m benchmarks.workers LIBRARY PLACE`` it is worker 1 of one of them.
"""

import contextlib
import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final, NamedTuple

from benchmarks.timing import Contestant, timed
from gradviz.distributed.transport.rendezvous import Rendezvous

#: How many calls, or passes, a round has.
NUM_CALLS: Final = 200

#: Of float64: 64 MB.
NUM_LARGE: Final = 8_000_000

_WORLD: Final[Any] = SimpleNamespace()


def double(x: Any) -> Any:
    """Called on worker 1."""
    return x * 2


def weight() -> Any:
    """Called on worker 1: a parameter of 64 MB that it has."""
    if not hasattr(_WORLD, "weight"):
        _WORLD.weight = _WORLD.lib.zeros(
            NUM_LARGE, dtype=_WORLD.lib.float64, requires_grad=True
        )
    return _WORLD.weight


class Case(NamedTuple):
    """One thing to be timed on worker 0.

    Attributes:
        title: What.
        units: How many of it a round does.
        budget: How much of PyTorch's time it may take; None if nobody says.
        make: Given ``lib``, ``rpc`` and ``autograd``, a round of it.
    """

    title: str
    units: int
    budget: float | None
    make: Callable[[Any, Any, Any], Contestant]


def small_calls(lib: Any, rpc: Any, autograd: Any) -> Contestant:
    """A tensor of two numbers goes there and comes back."""
    del autograd
    x = lib.ones(2)

    def calls() -> None:
        for _ in range(NUM_CALLS):
            rpc.rpc_sync("worker1", double, args=(x,))

    return lambda: timed(calls)


def backwards(lib: Any, rpc: Any, autograd: Any) -> Contestant:
    """One pass after the other over one graph."""

    def contestant() -> float:
        x = lib.ones(2, requires_grad=True)
        with autograd.context() as context_id:
            loss = rpc.rpc_sync("worker1", double, args=(x,)).sum()

            def passes() -> None:
                for _ in range(NUM_CALLS):
                    autograd.backward(context_id, [loss], retain_graph=True)

            return timed(passes)

    return contestant


def steps(lib: Any, rpc: Any, autograd: Any) -> Contestant:
    """Contexts, each with a call and a pass."""
    x = lib.ones(2, requires_grad=True)

    def contexts() -> None:
        for _ in range(NUM_CALLS):
            with autograd.context() as context_id:
                loss = rpc.rpc_sync("worker1", double, args=(x,)).sum()
                autograd.backward(context_id, [loss])

    return lambda: timed(contexts)


def large_gradient(lib: Any, rpc: Any, autograd: Any) -> Contestant:
    """A gradient of 64 MB goes to the parameter's worker."""
    del lib

    def contestant() -> float:
        with autograd.context() as context_id:
            loss = (rpc.rpc_sync("worker1", weight) * 2).sum()
            return timed(lambda: autograd.backward(context_id, [loss]))

    return contestant


CASES: Final = {
    "calls": Case("a call of another process", NUM_CALLS, None, small_calls),
    "backward": Case("backward through two processes", NUM_CALLS, 0.8, backwards),
    "step": Case("context, call, backward, release", NUM_CALLS, None, steps),
    "large": Case("backward that sends 64 MB", 1, None, large_gradient),
}


@contextlib.contextmanager
def two_workers(torch: ModuleType | None) -> Iterator[Mapping[str, tuple[Any, ...]]]:
    """This process as worker 0 of each library, and worker 1 in one of its own."""
    libraries = ["gradviz", *(["torch"] if torch is not None else [])]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:
        worlds = {}
        for library in libraries:
            (place := Path(folder, library)).mkdir()
            rendezvous = Rendezvous.made_at(str(place), 2)
            ends.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "benchmarks.workers", library, place],
                    env={**os.environ, **rendezvous.variables(1)},
                )
            )
            found = _join(library, place, 0, rendezvous.variables(0))
            ends.callback(found[1].shutdown)
            name = "gradviz" if library == "gradviz" else "PyTorch"
            worlds[name] = found
        yield worlds


def costs(rpc: Any, lib: Any, rounds: int) -> tuple[float, float]:
    """Seconds of a small call, and those of them that this process computes."""
    run = small_calls(lib, rpc, None)
    run()
    found = []
    for _ in range(rounds):
        began = time.process_time()
        took = run()
        found.append((took / NUM_CALLS, (time.process_time() - began) / NUM_CALLS))
    return min(found)


def _join(
    library: str, place: Path, rank: int, variables: Mapping[str, str]
) -> tuple[Any, Any, Any]:
    """Be a worker; returns the library, its ``rpc`` and its ``autograd``."""
    lib = importlib.import_module(library)
    rpc = importlib.import_module(f"{library}.distributed.rpc")
    autograd = importlib.import_module(f"{library}.distributed.autograd")
    # Functions are known by their module, which must not be called __main__.
    own = importlib.import_module("benchmarks.workers")
    own._WORLD.lib = lib
    if library == "gradviz":
        rpc.register(own.double)
        rpc.register(own.weight)
        os.environ.update(variables)
        rpc.init(f"worker{rank}")
        for name in variables:
            del os.environ[name]
    else:
        lib.set_num_threads(1)
        options = rpc.TensorPipeRpcBackendOptions(
            init_method=f"file://{place / 'store'}"
        )
        rpc.init_rpc(
            f"worker{rank}", rank=rank, world_size=2, rpc_backend_options=options
        )
    return lib, rpc, autograd


def main() -> None:
    """Do what worker 0 asks until it leaves."""
    library, place = sys.argv[1:]
    _, rpc, _ = _join(library, Path(place), 1, dict(os.environ))
    if library == "gradviz":
        rpc.shutdown(timeout=None)
    else:
        rpc.shutdown()


if __name__ == "__main__":
    main()
