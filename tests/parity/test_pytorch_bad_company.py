"""PyTorch recorded beside profilers, interrupts and modes: all goes on as ever."""

import contextlib
import functools
import gc
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Self

import pytest

import gradviz as gv
from gradviz.analysis.findings.check import check_trace
from gradviz.pytorch.kineto_log import level_of
from gradviz.pytorch.watching import listeners, profiler
from gradviz.trace import events as e
from tests.parity.pytorch_recordings import (
    faults,
    gradviz_run,
    leaf,
    of_kind,
    python,
    recorded,
)

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def backward(num_nodes: int = 2) -> None:
    y = leaf()
    with torch.enable_grad():
        for _ in range(num_nodes):
            y = y.sin()
        y.sum().backward()


# --- profilers of the program's -------------------------------------------------------

PROFILED = """
import threading, torch, gradviz as gv
from gradviz.analysis.findings.check import check_trace
from torch.profiler import ProfilerActivity, profile, schedule
seen = []
def backward():
    y = torch.ones(4, requires_grad=True)
    for _ in range(20):
        y = y.sin()
    y.sum().backward()
def note(one):
    seen.append(sum(each.name == "SinBackward0" for each in one.events()))
def profiler(**options):
    cpu = [ProfilerActivity.CPU]
    return profile(activities=cpu, on_trace_ready=note, acc_events=True, **options)
"""


def test_a_profiler_with_a_schedule_sees_all_of_its_steps(tmp_path):
    """PyTorch crashes if another one is begun while its own is prepared."""
    result = python(
        tmp_path,
        PROFILED
        + """
steps = schedule(wait=1, warmup=2, active=1, repeat=2)
with gv.pytorch.record() as recording:
    with profiler(schedule=steps) as one:
        for _ in range(9):
            backward()
            one.step()
    backward()
with profiler(schedule=steps) as one:
    for _ in range(2):
        backward()
        one.step()
    with gv.pytorch.record() as other:  # which finds it prepared
        backward()
    for _ in range(7):
        backward()
        one.step()
print(seen, recording.counts.tasks, check_trace(other.trace).is_fine)
""",
    )

    expected = "[20, 40, 20, 40] 10 False\n"
    assert (result.exit_code, result.output) == (0, expected), result.errors


def test_a_profiler_begins_beside_passes_of_other_threads(tmp_path):
    result = python(
        tmp_path,
        PROFILED
        + """
ROUNDS = 5
with profiler():  # the first one takes long to begin
    backward()
barrier = threading.Barrier(3)
def work():
    for _ in range(ROUNDS):
        barrier.wait()
        for _ in range(10):
            backward()
        barrier.wait()
threads = [threading.Thread(target=work) for _ in range(2)]
with gv.pytorch.record() as recording:
    for thread in threads:
        thread.start()
    for _ in range(ROUNDS):
        barrier.wait()
        with profiler():
            backward()
        barrier.wait()
    for thread in threads:
        thread.join()
texts = {one.text for one in recording.events() if type(one).__name__ == "Unexplained"}
print(set(seen), [one for one in texts if "none of its nodes" not in one])
""",
    )

    assert (result.exit_code, result.output) == (0, "{20} []\n"), result.errors


def test_the_log_of_a_profiler_has_the_programs_lines_and_none_of_ours(capfd):
    def lines() -> list[str]:
        """Kineto's, without times and numbers of processes."""
        return [one.rpartition("] ")[2] for one in capfd.readouterr().err.splitlines()]

    def profiled() -> list[str]:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            backward()
        return lines()

    with gv.pytorch.record():
        backward()
        assert not lines()
        during = profiled()
        backward()
        assert not lines()
    if level_of(torch) is None:
        pytest.skip("this PyTorch does not export the level of its profiler's log")
    assert during == profiled() != []


def test_a_profiler_that_begins_inside_of_a_pass_takes_the_place_of_ours():
    one = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])

    def program() -> None:
        y = leaf().sin()

        def begin_and_end(grad: Any) -> None:
            with one:
                torch.ones(3).sin()

        y.register_hook(begin_and_end)
        (y * 2).sum().backward()
        backward()

    recording = recorded(program)
    assert any(event.name == "aten::sin" for event in one.events())
    (doubt,) = of_kind(recording, e.Unexplained)
    assert (
        doubt.text == "the program began a profiler, so none of its nodes could be seen"
    )
    first, second = (one.task for one in of_kind(recording, e.TaskCompleted))
    started = {one.task for one in of_kind(recording, e.NodeStarted)}
    assert (first in started, second in started) == (False, True)
    assert not check_trace(recording.trace).history.num_violations


# --- interrupts -----------------------------------------------------------------------

OURS = str(Path(gv.pytorch.__file__).parent)


class At:
    """Has something done at one of the points where Python looks for signals."""

    def __init__(self, number: int, do: Callable[[], None]) -> None:
        self.number = number
        self.is_done = False
        self._do = do

    def __enter__(self) -> Self:
        sys.setprofile(self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _hear(self, frame: FrameType, event: str, _: object) -> None:
        if not frame.f_code.co_filename.startswith(OURS):
            return
        if event in {"call", "c_return"}:
            self.number -= 1
            if self.number == 0:
                self.is_done = True
                sys.setprofile(None)
                self._do()


class TooLateError(Exception):
    """Exception of a handler that stops programs that take too long."""


def points_of_a_pass(
    do: Callable[[], None],
    expected: type[BaseException] | None = None,
    *,
    every: int = 1,
) -> int:
    """Run a pass once for each point, or every so many, with something done there.

    Returns:
        A number that is beyond all points.
    """
    number, is_done = 1 - every, True
    while is_done:
        number += every
        raised = None
        with At(number, do) as at:
            try:
                backward()
            except (KeyboardInterrupt, TooLateError) as error:
                raised = type(error)
        is_done = at.is_done
        assert raised is (expected if is_done else None)
    return number


#: Campaigns look at each point of a pass.
of_points = pytest.mark.parametrize(
    "every", [7, pytest.param(1, marks=pytest.mark.stress)]
)


@of_points
@pytest.mark.parametrize("error", [KeyboardInterrupt, TooLateError])
def test_an_interrupt_at_any_point_is_the_programs_and_leaves_nothing_behind(
    error, every
):
    def interrupt() -> None:
        raise error

    with gv.pytorch.record() as recording:
        num_points = points_of_a_pass(interrupt, expected=error, every=every)
        watcher = listeners._watcher
        assert watcher is not None
        assert watcher._profile.is_idle
        assert not watcher._open
        backward()
    (*_, last) = (one.task for one in of_kind(recording, e.TaskBegun))
    started = [one for one in of_kind(recording, e.NodeStarted) if one.task == last]
    assert num_points > 50
    assert len(started) == 4
    assert not [one for one in of_kind(recording, e.Unexplained) if one.task == last]
    assert not check_trace(recording.trace).history.num_violations


@pytest.mark.parametrize("error", [KeyboardInterrupt, TooLateError])
def test_an_interrupt_while_models_are_looked_at_is_the_programs(error):
    def interrupt() -> None:
        raise error

    def step_of_a_new_model() -> None:
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
        optimizer = torch.optim.SGD(net[0].parameters(), lr=0.1)
        net[1](torch.ones(1, 2)).sum().backward()
        net[0](torch.ones(1, 2)).sum().backward()
        optimizer.step()

    with gv.pytorch.record() as recording:
        step_of_a_new_model()
        for number in range(1, 200, 3):
            with At(number, interrupt) as at, pytest.raises(error):
                step_of_a_new_model()
            assert at.is_done
        step_of_a_new_model()
    assert all(len(one.parameters) == 4 for one in recording.trace.models.values())


def test_objects_of_a_program_that_go_run_no_python_code_of_ours():
    """Python would drop the exception of a signal handler that came there."""
    calls: list[str] = []

    def hear(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            calls.append(frame.f_code.co_qualname)

    with gv.pytorch.record():
        net = torch.nn.Linear(2, 1)
        y = net(torch.ones(1, 2)).sum()
        y.register_hook(lambda grad: None)
        net.weight.register_hook(lambda grad: None)
        y.backward()
        sys.setprofile(hear)
        del net, y
        gc.collect()
        sys.setprofile(None)
    assert not calls


def test_methods_of_models_that_fail_are_no_interrupts():
    class Odd(torch.nn.Linear):
        def named_modules(self, *args: Any, **options: Any) -> Any:
            raise TooLateError

        named_parameters = modules = functools.partialmethod(named_modules)

    with gv.pytorch.record() as recording:
        net = Odd(2, 1)
        net(torch.ones(1, 2)).sum().backward()
    assert recording.counts.tasks == 1


@of_points
def test_a_pass_in_a_signal_handler_may_come_at_any_point(every):
    before = signal.signal(signal.SIGUSR2, lambda *_: backward(1))
    try:
        with gv.pytorch.record() as recording:
            points_of_a_pass(lambda: signal.raise_signal(signal.SIGUSR2), every=every)
    finally:
        signal.signal(signal.SIGUSR2, before)

    ended = of_kind(recording, e.TaskCompleted)
    assert len(ended) == len(of_kind(recording, e.TaskBegun)) > 100 // every
    texts = {one.text for one in of_kind(recording, e.Unexplained)}
    assert all("none of its nodes could be seen" in text for text in texts), texts
    assert not check_trace(recording.trace).history.num_violations


# --- what the trace says of gradviz itself --------------------------------------------


def test_a_pass_begins_after_gradviz_has_started_the_profiler(monkeypatch):
    times: list[int] = []
    begin = profiler.Profile.begin

    def timed(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        times.append(time.perf_counter_ns())

    monkeypatch.setattr(profiler.Profile, "begin", timed)
    recording = recorded(backward)
    (begun,) = of_kind(recording, e.TaskBegun)
    assert times[-1] <= begun.t_ns


# --- what else a program may notice ---------------------------------------------------


def test_no_line_of_gradvizs_is_in_a_traceback():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise ValueError("no")

    def names() -> list[str]:
        with pytest.raises(ValueError, match="no") as caught:
            Fails.apply(leaf()).sum().backward()
        return [
            frame.name for frame in traceback.extract_tb(caught.value.__traceback__)
        ]

    unwatched = names()
    with gv.pytorch.record():
        assert names() == unwatched


def test_no_line_of_gradvizs_is_in_a_stack_of_anomaly_mode():
    def stacks() -> list[list[str]]:
        x = leaf()
        with torch.autograd.set_detect_anomaly(True, check_nan=False):
            y = (x**3).sum()
            (grad,) = torch.autograd.grad(y, x, create_graph=True)
        return [one.grad_fn.metadata["traceback_"] for one in (y, grad)]

    seen, functions = [], []
    for block in (contextlib.nullcontext, gv.pytorch.record):
        with block():
            seen.append(stacks())
        functions.append(torch.fx.traceback.format_stack)
    assert seen[0] == seen[1]
    assert functions[0] is functions[1]


def test_stderr_of_a_program_is_the_same_with_and_without_a_recording(tmp_path):
    program = """
        import torch
        from torch.profiler import ProfilerActivity, profile

        class Broken(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, grad):
                return grad * float("nan")

        def step():
            x = torch.ones(3, requires_grad=True)
            return Broken.apply(x.sin()).sum()

        step().backward()
        with profile(activities=[ProfilerActivity.CPU]):
            step().backward()
        with torch.autograd.detect_anomaly():
            step().backward()
        """
    outcomes = [
        (done.exit_code, re.sub(r"[\d-]+ [\d:]+ \d+:\d+", "NOW", done.errors))
        for done in (python(tmp_path, program), gradviz_run(tmp_path, program))
    ]
    assert outcomes[0] == outcomes[1]
    assert "Traceback of forward call" in outcomes[0][1]


def test_a_mode_hears_nothing_of_it():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    calls: list[str] = []

    class Functions(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            calls.append(str(func))
            return func(*args, **(kwargs or {}))

    class Dispatches(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            calls.append(str(func))
            return func(*args, **(kwargs or {}))

    def program() -> list[str]:
        x = leaf()
        calls.clear()
        with Functions(), Dispatches():
            (x * x).sum().backward()
            torch.autograd.backward([x, x * 2], [torch.ones(3)] * 2)
            torch.autograd.grad(x, x, torch.ones(3))
        return list(calls)

    with gv.pytorch.record() as recording:
        watched = program()
    assert watched == program()
    assert faults(recording) == []


def test_nodes_of_tensors_without_memory_run_on_the_thread_that_calls():
    def program() -> None:
        linear = torch.nn.Linear(3, 3, device="meta")
        linear(torch.empty(2, 3, device="meta")).sum().backward()

    recording = recorded(program)
    assert faults(recording) == []
    assert len({one.queue for one in of_kind(recording, e.TaskPushed)}) == 1


def test_a_leaf_of_a_class_of_its_own_may_be_a_root():
    class Own(torch.Tensor):
        pass

    x = torch.ones(3).as_subclass(Own).requires_grad_()
    recording = recorded(lambda: torch.autograd.backward(x, torch.ones(3)))
    assert [node.name for node in recording.trace.nodes.values()] == ["AccumulateGrad"]
    assert faults(recording) == []


def test_of_a_pass_whose_graph_cannot_be_read_this_is_said():
    sparse = torch.eye(2).to_sparse()
    x = torch.eye(2).to_sparse().requires_grad_()
    recording = recorded(lambda: torch.autograd.backward(x, sparse))
    (doubt,) = of_kind(recording, e.Unexplained)
    assert doubt.text == "its graph could not be read, so no node is known"


def test_changes_in_place_of_views_are_explained():
    """The node of such a change calls another, which the engine does not."""

    def program() -> None:
        x = leaf(4, 4)
        y = x * 1
        y[0] = 0
        y[:, 1].mul_(2)
        y.view(2, 8)[1].add_(1)
        y.t().sin_()
        y.sum().backward()

    recording = recorded(program)
    names = {node.name for node in recording.trace.nodes.values()}
    assert "CopySlices" in names
    assert faults(recording) == []
