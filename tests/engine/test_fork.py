"""Forking a process whose engine has, or has not, started threads (L9, G14, F13)."""

import os
import select
import signal
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from gradviz.backends import simulated
from gradviz.engine import Engine
from gradviz.engine.engine import MAX_DEPTH
from tests.engine.nodes import (
    PATIENCE_SECONDS,
    SIM_0,
    Call,
    Sink,
    run_nested,
)

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="the system cannot fork"
)


@pytest.fixture(autouse=True)
def _untouched_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """No simulated array was ever made: other tests may have made some."""
    monkeypatch.setattr(simulated._backend, "_is_initialized", False)


def in_child(function: Callable[[], str]) -> str:
    """What `function` returns in a forked child, or how it fails there."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python warns of a fork while there are threads: that is what is tested here.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            text = function()
        except BaseException as error:  # noqa: BLE001 - the parent looks at it
            text = f"{type(error).__name__}: {error}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], PATIENCE_SECONDS)
    text = os.read(reading, 10_000).decode() if ready else "hangs"
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return text


def backward(engine: Engine, **settings: Any) -> str:
    sink = Sink(**settings)
    engine.execute([(sink, 0)], [3])
    return f"{sink.received}"


def test_after_backwards_on_the_cpu_only_a_child_works(engine: Engine):
    """L9, G14."""
    backward(engine)

    assert in_child(lambda: backward(engine)) == "[(3,)]"


def test_a_child_of_a_fresh_engine_may_even_start_device_threads(engine: Engine):
    """L9."""
    assert in_child(lambda: backward(engine, device=SIM_0)) == "[(3,)]"


def test_after_device_threads_a_child_is_told_what_to_do(engine: Engine):
    """L9, F13."""
    backward(engine, device=SIM_0)

    outcome = in_child(lambda: backward(engine))

    assert outcome.startswith(
        "RuntimeError: Unable to handle autograd's threading in combination with "
        "fork-based multiprocessing"
    )
    assert "spawn" in outcome


def test_after_pool_threads_a_child_is_told_as_well(engine: Engine):
    """L9, G14."""
    run_nested(engine, MAX_DEPTH + 1, lambda grad: ())

    assert "Unable to handle autograd's threading" in in_child(lambda: backward(engine))


def test_a_fork_inside_a_node_on_a_device_thread_is_told_in_the_child(engine: Engine):
    """F13."""
    outcomes: list[str] = []

    def apply(grad: Any) -> Any:
        outcomes.append(in_child(lambda: backward(engine)))
        return ()

    engine.execute([(Call(apply, device=SIM_0), 0)], [1])

    assert "Unable to handle autograd's threading" in outcomes[0]


def test_a_fork_inside_a_node_on_the_caller_leaves_a_child_that_works(engine: Engine):
    """F13: no thread of the engine existed."""
    outcomes: list[str] = []

    def apply(grad: Any) -> Any:
        outcomes.append(in_child(lambda: backward(engine)))
        return ()

    engine.execute([(Call(apply), 0)], [1])

    assert outcomes == ["[(3,)]"]


def test_a_new_engine_works_in_any_child(engine: Engine):
    """F13: what a fork breaks is one engine, not the process."""
    backward(engine, device=SIM_0)

    assert in_child(lambda: backward(Engine(), device=SIM_0)) == "[(3,)]"


def test_the_parent_goes_on_as_before(engine: Engine):
    """F13."""
    backward(engine, device=SIM_0)
    in_child(lambda: backward(engine))

    assert backward(engine, device=SIM_0) == "[(3,)]"
