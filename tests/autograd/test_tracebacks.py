"""The frames in the traceback of a backward's error."""

import gc
import os
import subprocess
import sys
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradviz as gv
from gradviz.autograd import detect_anomaly
from gradviz.engine import default_engine

#: What is compiled says where it lies in the package.
PACKAGE = (str(Path(gv.__file__).parent), f"gradviz{os.sep}")


class MineError(Exception):
    pass


def raises(*_: object) -> None:
    raise MineError("mine")


class Raising(gv.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        raises()


def through_a_hook(x: gv.Tensor) -> gv.Tensor:
    y = x * 2
    y.register_hook(raises)
    return y.sum()


def through_a_pre_hook_of_a_node(x: gv.Tensor) -> gv.Tensor:
    y = (x * 2).sum()
    y.grad_fn.register_prehook(raises)
    return y


def through_a_hook_of_a_leaf(x: gv.Tensor) -> gv.Tensor:
    x.register_post_accumulate_grad_hook(raises)
    return x.sum()


def through_a_function(x: gv.Tensor) -> gv.Tensor:
    return Raising.apply(x).sum()


def through_a_callback(x: gv.Tensor) -> gv.Tensor:
    x.register_hook(lambda grad: default_engine().queue_callback(raises))
    return x.sum()


def through_unpacking(x: gv.Tensor) -> gv.Tensor:
    with gv.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, raises):
        return (x * x).sum()


def on_a_devices_thread(x: gv.Tensor) -> gv.Tensor:
    return Raising.apply(x.to("sim:0")).sum()


def through_a_backward_inside_the_backward(x: gv.Tensor) -> gv.Tensor:
    def nested(grad: gv.Tensor) -> None:
        with gv.enable_grad():
            through_a_function(gv.ones(2, requires_grad=True)).backward()

    y = x * 2
    y.register_hook(nested)
    return y.sum()


WAYS = [
    through_a_hook,
    through_a_pre_hook_of_a_node,
    through_a_hook_of_a_leaf,
    through_a_function,
    through_a_callback,
    through_unpacking,
    on_a_devices_thread,
    through_a_backward_inside_the_backward,
]

CALLS = {
    "backward": lambda loss, x: loss.backward(),
    "autograd.backward": lambda loss, x: gv.autograd.backward(loss),
    "autograd.grad": gv.autograd.grad,
}


def raised(call: Callable[[], object]) -> MineError:
    try:
        call()
    except MineError as error:
        return error
    raise AssertionError("nothing was raised")


def places(error: BaseException) -> list[str]:
    """Return the owner of each frame: ours, or the name of a test's function."""
    return [
        "ours" if frame.filename.startswith(PACKAGE) else frame.name
        for frame in traceback.extract_tb(error.__traceback__)
    ]


@pytest.fixture
def x() -> gv.Tensor:
    return gv.ones(2, requires_grad=True)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("way", WAYS)
def test_between_the_call_and_the_users_lines_is_one_frame(call, way, x):
    if call == "autograd.grad" and way is through_a_hook_of_a_leaf:
        pytest.skip("nothing is accumulated")
    loss = way(x)

    found = places(raised(lambda: CALLS[call](loss, x)))

    assert found[-1] == "raises"
    assert found.count("ours") == 1
    if way is through_a_backward_inside_the_backward:
        assert found[-4:] == ["ours", "nested", "backward", "raises"]


def test_the_line_of_the_call_is_shown(x):
    loss = through_a_hook(x)

    error = raised(loss.backward)

    (ours,) = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(PACKAGE)
    ]
    assert (ours.name, "backward(self" in (ours.line or "")) == ("backward", True)


def test_an_error_of_gradvizs_own_shows_the_line_that_raised_it(x):
    y = x.exp()
    loss = y.sum()
    y.detach().add_(1)

    with pytest.raises(RuntimeError, match="inplace operation") as caught:
        loss.backward()

    frames = traceback.extract_tb(caught.value.__traceback__)
    names = [frame.name.rpartition(".")[2] for frame in frames]
    assert names[1:] == ["backward", "check_unchanged"]


def test_an_error_keeps_its_identity_cause_context_and_notes(x):
    """The same object, with its cause, its context, its notes and their tracebacks."""
    cause, context = KeyError("cause"), ZeroDivisionError("context")
    error = MineError("mine")
    error.add_note("a note")
    seen: list[Any] = []

    def hook(grad: gv.Tensor) -> None:
        try:
            raise context
        except ZeroDivisionError:
            try:
                raise error from cause
            except MineError:
                seen.append(error.__traceback__)
                raise

    x.register_hook(hook)

    caught = raised(lambda: x.sum().backward())

    assert caught is error
    assert (caught.__cause__, caught.__context__) == (cause, context)
    assert caught.__notes__[0] == "a note"
    assert context.__traceback__ is not None
    assert [frame.name for frame in traceback.extract_tb(seen[0])] == ["hook"]


def test_there_is_no_cycle_through_the_traceback(x):
    class WatchedError(Exception):
        pass

    def hook(grad: gv.Tensor) -> None:
        raise WatchedError

    x.register_hook(hook)
    gc.disable()
    try:
        try:
            x.sum().backward()
        except WatchedError as error:
            reference = weakref.ref(error)
        assert reference() is None
    finally:
        gc.enable()


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected")
def test_in_anomaly_mode_all_frames_are_there(x):
    with detect_anomaly():
        found = places(raised(lambda: through_a_function(x).backward()))

    assert found.count("ours") > 4


@pytest.mark.parametrize(("value", "is_full"), [("1", True), ("0", False), ("", False)])
def test_the_environment_may_ask_for_all_frames(monkeypatch, value, is_full, x):
    monkeypatch.setenv("GRADVIZ_FULL_TRACEBACKS", value)

    found = places(raised(lambda: through_a_function(x).backward()))

    assert (found.count("ours") > 1) == is_full


def test_a_program_prints_its_own_lines(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import gradviz as gv\n"
        "x = gv.ones(2, requires_grad=True)\n"
        "x.register_hook(lambda grad: 1 / 0)\n"
        "x.sum().backward()\n"
    )

    done = subprocess.run(
        [sys.executable, program],
        env={k: v for k, v in os.environ.items() if k != "GRADVIZ_FULL_TRACEBACKS"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.stderr.count("  File ") == 3
    assert "ZeroDivisionError: division by zero" in done.stderr
