"""Recordings as decorators."""

import asyncio

import numpy as np
import pytest

import gradviz as gv
from gradviz.capture.session import record
from gradviz.engine import Edge, Engine, Node
from gradviz.errors import UserError
from gradviz.trace import probe
from gradviz.trace.reading.reader import load_trace


class Pass(Node):
    def apply(self, grad):
        return (grad,) * len(self.next_edges)


def backward():
    Engine().execute([Edge(Pass())], [np.ones(2)])


def test_each_call_has_a_recording_of_its_own_and_what_is_outside_has_none():
    @record()
    def twice(number: int) -> int:
        """Run two passes."""
        backward()
        backward()
        return number + 1

    assert (twice.__name__, twice.__doc__) == ("twice", "Run two passes.")
    assert twice.recording is None
    backward()
    assert twice(4) == 5
    first = twice.recording
    backward()
    assert twice(number=1) == 2
    assert [len(one.trace.tasks) for one in (first, twice.recording)] == [2, 2]
    assert probe.current is None


@pytest.mark.parametrize("ring", [None, "1 MB"])
def test_the_file_is_there_after_a_call_and_not_before(tmp_path, ring):
    path = tmp_path / "x.gvt"
    decorated = record(path, ring=ring)(backward)

    assert not path.exists()
    assert decorated() is None
    assert len(load_trace(path).tasks) == 1


def test_a_file_that_is_there_is_replaced_with_force_only(tmp_path):
    careful = record(tmp_path / "x.gvt")(backward)
    careful()
    with pytest.raises(UserError, match="exists and is not overwritten"):
        careful()

    forced = record(tmp_path / "y.gvt", force=True)(backward)
    forced()
    forced()
    assert len(load_trace(tmp_path / "y.gvt").tasks) == 1


def test_an_error_goes_on_and_the_call_is_recorded():
    @record()
    def fails():
        backward()
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fails()
    assert len(fails.recording.trace.tasks) == 1


def test_methods_may_be_decorated():
    class Trainer:
        @record()
        def step(self):
            backward()
            return self

    trainer = Trainer()
    assert trainer.step() is trainer
    assert len(Trainer.step.recording.trace.tasks) == 1


def test_a_coroutine_is_recorded_to_its_end():
    @record()
    async def later():
        await asyncio.sleep(0)
        backward()
        return 3

    assert asyncio.run(later()) == 3
    assert len(later.recording.trace.tasks) == 1


def generator():
    yield backward()


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (generator, "got the generator generator, whose work is done after the call"),
        (Pass, "got the class Pass"),
        (5, "got int"),
    ],
)
def test_objects_that_are_no_functions_are_refused_and_leave_no_file(
    tmp_path, what, told
):
    with pytest.raises(TypeError, match=told):
        record(tmp_path / "x.gvt")(what)

    assert [*tmp_path.iterdir()] == []
    assert probe.current is None


def test_parentheses_that_are_missing_are_told(tmp_path):
    with pytest.raises(TypeError, match=r"write @gv.record\(\), with parentheses"):
        gv.record(backward)


def test_a_recording_that_has_ended_decorates_nothing():
    with record() as recording:
        pass
    with pytest.raises(RuntimeError, match="has ended"):
        recording(backward)


def test_that_of_pytorch_is_a_decorator_too():
    torch = pytest.importorskip("torch")

    @gv.pytorch.record()
    def step():
        torch.ones(2, requires_grad=True).sum().backward()

    step()
    assert len(step.recording.trace.tasks) == 1
