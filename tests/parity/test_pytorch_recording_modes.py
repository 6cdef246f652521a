"""PyTorch's passes in recordings that keep less than everything."""

import threading
import warnings
from typing import Any

import pytest

import gradviz as gv
from gradviz.capture.recording_options import RecordingOptions
from gradviz.capture.session import Recording, record_program
from gradviz.program_hooks import after_step
from gradviz.trace import events as e
from gradviz.trace.reading.reader import load_trace
from tests.parity.pytorch_recordings import faults, leaf, of_kind

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        raise ValueError("no")


def fail() -> None:
    with pytest.raises(ValueError, match="no"):
        Failing.apply(leaf()).sum().backward()


# --- a ring ---------------------------------------------------------------------------


def test_an_error_that_leaves_a_backward_is_a_reason_to_dump(tmp_path):
    path = tmp_path / "x.gvt"
    with gv.pytorch.record(path, ring="1 MB", dump_on=["exception"]):
        leaf().sum().backward()
        assert not path.exists()
        fail()
        trace = load_trace(path)

    assert len(trace.tasks) == 2
    (failed,) = [one for one in trace.events() if isinstance(one, e.TaskFailed)]
    assert trace.nodes[failed.node].name == "FailingBackward"


def test_an_error_in_a_pass_whose_nodes_are_not_seen_is_a_reason_to_dump(tmp_path):
    path = tmp_path / "x.gvt"
    with gv.pytorch.record(path, ring="1 MB", dump_on=["exception"]):
        with torch.profiler.profile():
            fail()
        assert load_trace(path).columns["task_failed"].num_rows == 1


def test_a_dump_is_written_while_no_lock_of_the_watcher_is_held(tmp_path):
    """Warnings of a dump go to the program's own function."""
    folder = tmp_path / "folder"
    folder.mkdir()
    ended: list[bool] = []

    def show(*args: object, **kwargs: object) -> None:
        other = threading.Thread(target=lambda: leaf().sum().backward())
        other.start()
        other.join(30)
        ended.append(not other.is_alive())

    with gv.pytorch.record(folder / "x.gvt", ring="1 MB", dump_on=["exception"]):
        folder.rmdir()
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show
            fail()
    assert ended == [True]


# --- a schedule -----------------------------------------------------------------------


@pytest.fixture
def scheduled():
    """Record a program as ``gradviz run --schedule`` does."""
    recordings: list[Recording] = []

    def begin(path: Any, spec: dict[str, int]) -> Recording:
        text = ",".join(f"{name}={number}" for name, number in spec.items())
        recording = record_program(path, RecordingOptions(schedule=text))
        recordings.append(recording)
        return recording

    yield begin
    for one in recordings:
        one.close()
    after_step.clear()


def iterations_in(recording: Recording) -> list[int]:
    """The iterations whose passes are in a trace, by the shape of their gradients."""
    recording.close()
    trace = recording.trace
    assert faults(recording) == []
    roots = {
        node.id: node.inputs[0].shape[0] - 1
        for node in trace.nodes.values()
        if node.name == "SinBackward0"
    }
    started = of_kind(recording, e.NodeStarted)
    return [roots[one.node] for one in started if one.node in roots]


def loss(weight: Any, iteration: int) -> Any:
    return (weight * torch.ones(iteration + 1)).sin().sum()


def sgd(*weights: Any) -> Any:
    return torch.optim.SGD(list(weights), lr=0.1)


def one_optimizer(num: int) -> None:
    weight = leaf(1)
    optimizer = sgd(weight)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for i in range(num):
        optimizer.zero_grad()
        loss(weight, i).backward()
        optimizer.step()
        scheduler.step()


def a_state_first(num: int) -> None:
    weight = leaf(1)
    weight.grad = torch.zeros(1)
    optimizer = torch.optim.Adam([weight], lr=0.0)
    optimizer.step()
    for i in range(num):
        loss(weight, i).backward()
        optimizer.step()


def two_optimizers_of_one_loss(num: int) -> None:
    weights = leaf(1), leaf(1)
    optimizers = [sgd(one) for one in weights]
    for i in range(num):
        loss(weights[0] * weights[1], i).backward()
        for one in optimizers:
            one.step()


def closures(num: int) -> None:
    weight = leaf(1)
    optimizer = torch.optim.LBFGS([weight], max_iter=1)
    for i in range(num):

        def closure(i: int = i) -> Any:
            optimizer.zero_grad()
            value = loss(weight, i)
            value.backward()
            return value

        optimizer.step(closure)


def scaled(num: int) -> None:
    """Skip the first iterations, until the scale is small enough."""
    weight = leaf(1)
    optimizer = sgd(weight)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    for i in range(num):
        optimizer.zero_grad()
        scaler.scale(64 * loss(weight, i)).backward()
        scaler.step(optimizer)
        scaler.update()


@pytest.mark.parametrize(
    "spec",
    [
        {"wait": 3, "warmup": 2, "active": 2, "repeat": 1},
        {"warmup": 1, "active": 2, "repeat": 1},
        {"wait": 1, "active": 1, "repeat": 2},
        {"skip_first": 1, "warmup": 1, "active": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "program",
    [one_optimizer, a_state_first, two_optimizers_of_one_loss, closures, scaled],
)
def test_a_schedule_records_the_iterations_that_torch_profiler_does(
    program, spec, scheduled, tmp_path
):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no warmup
        says = torch.profiler.schedule(**{"wait": 0, "warmup": 0, **spec})
    wanted = [i for i in range(10) if "RECORD" in says(i).name]

    recording = scheduled(tmp_path / "x.gvt", spec)
    program(10)

    assert iterations_in(recording) == wanted


def test_of_optimizers_with_losses_of_their_own_the_last_ends_an_iteration(
    scheduled, tmp_path
):
    """Nobody knows that from the first step on; from the second iteration on."""
    recording = scheduled(tmp_path / "x.gvt", {"wait": 3, "active": 1, "repeat": 1})
    weights = leaf(1), leaf(1)
    optimizers = [sgd(one) for one in weights]
    for i in range(6):
        for weight, optimizer in zip(weights, optimizers, strict=True):
            loss(weight, i).backward()
            optimizer.step()

    assert iterations_in(recording) == [3, 3]


@pytest.mark.parametrize("is_first", [True, False])
def test_steps_that_the_program_counts_may_begin_or_end_iterations(is_first):
    with gv.pytorch.record(schedule=gv.schedule(wait=1, active=2)) as recording:
        for i in range(6):
            if is_first:
                recording.step()
            loss(leaf(1), i).backward()
            if not is_first:
                recording.step()

    assert iterations_in(recording) == [1, 2, 4, 5]
