"""Lines about the steps of a program that runs."""

import sys
from types import SimpleNamespace

import pytest

from gradviz.capture.iterations import Iterations
from gradviz.cli.run.live_steps import LiveSteps, memory_in_words

MS = 1_000_000


class Optimizer:
    """One that an iteration can be told by: it is weakly referred to."""


class Program:
    """Steps that take as long, and make as many nodes, as the test says."""

    def __init__(self, every_s):
        self.now = self.nodes = self.passes = 0
        self.lines: list[str] = []
        self.optimizer = Optimizer()
        self.steps = LiveSteps(
            lambda: self.nodes,
            every_s,
            clock=lambda: self.now,
            write=self.lines.append,
            memory=lambda: "1 MiB in memory",
            iterations=Iterations(lambda: self.passes),
        )

    def step(self, took_ms, nodes):
        self.now += took_ms * MS
        self.nodes += nodes
        self.passes += 1
        self.steps(self.optimizer)


def test_each_step_has_a_line_with_its_time_its_nodes_and_memory():
    program = Program(0.1)
    program.step(100, 12)
    program.step(340, 1)

    assert program.lines == [
        "step 0: 100 ms, 12 new nodes, 1 MiB in memory",
        "step 1: 340 ms, 1 new node, 1 MiB in memory",
    ]


def test_short_steps_share_a_line_that_tells_the_longest():
    program = Program(1.0)
    program.step(10, 5)
    for took in (100, 300, 200, 500):
        program.step(took, 5)

    assert program.lines[1:] == [
        "steps 1 to 4: 275 ms each, the longest 500 ms, 20 new nodes, 1 MiB in memory"
    ]


def test_steps_left_at_the_end_are_reported_once():
    program = Program(60.0)
    for _ in range(3):
        program.step(10, 5)
    program.steps.tell()
    program.steps.tell()

    assert [one.partition(":")[0] for one in program.lines] == [
        "step 0",
        "steps 1 to 2",
    ]


def test_an_optimizer_that_steps_without_a_pass_ends_none():
    program = Program(0.0)
    program.step(10, 5)
    program.steps(program.optimizer)

    assert len(program.lines) == 1


def test_memory_is_that_of_the_gpu_where_pytorch_uses_one(monkeypatch):
    cuda = SimpleNamespace(
        is_initialized=lambda: True, memory_allocated=lambda: 3 << 20
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert memory_in_words() == "3 MiB allocated on the GPU"

    cuda.is_initialized = lambda: False
    assert "GPU" not in memory_in_words()


@pytest.mark.skipif(sys.platform != "linux", reason="it is read from /proc")
def test_memory_is_that_of_the_process_elsewhere(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)

    assert memory_in_words().endswith("iB in memory")
