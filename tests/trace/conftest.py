"""A recorder whose every number is known, and a small engine that reports to it."""

import itertools
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import NamedTuple

import pytest

from gradviz.trace.format.frames import Frame, scan
from gradviz.trace.probe import How, Probe, Push, Role
from gradviz.trace.reading.reader import parse_trace
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.sink import MemorySink
from tests.trace.reports import begin_pass


class FakeMetadata(NamedTuple):
    shape: tuple[int, ...] = (2, 3)
    dtype: object = "float64"
    device: object = "cpu"


class FakeEdge(NamedTuple):
    node: "FakeNode | None"
    input_nr: int = 0


class FakeNode(NamedTuple):
    id: int
    text: str = "MulBackward0"
    sequence_nr: int = 0
    topological_nr: int = 0
    next_edges: tuple[FakeEdge, ...] = ()
    input_metadata: tuple[FakeMetadata | None, ...] = (FakeMetadata(),)
    runs_on: object = "cpu"
    module_path: str = ""

    def name(self) -> str:
        return self.text


class FakeEngine:
    """Reports the backward pass of a chain, as the engine does."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe

    def chain(self, length: int, first_id: int = 0) -> list[FakeNode]:
        """Nodes from the root to the leaf."""
        nodes: list[FakeNode] = []
        for number in range(length):
            edges = (FakeEdge(nodes[-1]),) if nodes else ()
            node = FakeNode(first_id + number, f"Node{number}", number, number, edges)
            self.probe.node_created(node)
            nodes.append(node)
        return nodes[::-1]

    def backward(self, task: int = 0, length: int = 3, first_id: int = 0) -> None:
        probe, nodes = self.probe, self.chain(length, first_id)
        begin_pass(probe, task, create_graph=True)
        probe.queue_defined(7, "caller 0", -1)
        probe.nodes_defined(nodes)
        probe.dependencies_counted(task, length, length - 1)
        probe.thread_started(-1, Role.CALLER)
        self._push(task, nodes[0], pushed_by=-1)
        for node, after in itertools.zip_longest(nodes, nodes[1:]):
            probe.task_popped(task, node.id, 7, 0)
            probe.node_started(task, node.id)
            probe.buffer_freed(task, node.id, 48)
            if after is not None:
                probe.gradient_buffered(task, after.id, node.id, 0, 0, 48, How.FIRST)
                self._push(task, after, pushed_by=node.id)
            probe.node_completed(task, node.id)
        probe.task_completed(task)
        probe.thread_exited(-1, Role.CALLER)

    def _push(self, task: int, node: FakeNode, pushed_by: int) -> None:
        self.probe.task_pushed(
            task,
            node.id,
            7,
            0,
            node.sequence_nr,
            1,
            1,
            pushed_by,
            Push.ROOT if pushed_by < 0 else Push.NODE,
        )


class Bench:
    """A recorder that writes into memory, only when it is told to.

    Its clock counts from 1,000: one nanosecond passes with each reading.
    """

    def __init__(self) -> None:
        self.sink = MemorySink()
        self.recorder = Recorder(
            self.sink, clock=itertools.count(1_000).__next__, flush_every_s=None
        )
        self.engine = FakeEngine(self.recorder)

    def data(self) -> bytes:
        """Everything written; closes the recorder."""
        self.recorder.close()
        return self.sink.contents()

    def trace(self):
        return parse_trace(self.data())

    def events(self):
        return list(self.trace().events())


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def make_bench() -> Callable[[], Bench]:
    return Bench


@pytest.fixture
def make_node() -> Callable[..., FakeNode]:
    return FakeNode


@pytest.fixture
def make_edge() -> Callable[..., FakeEdge]:
    return FakeEdge


@pytest.fixture
def make_metadata() -> Callable[..., FakeMetadata]:
    return FakeMetadata


@pytest.fixture
def frames_of() -> Callable[[bytes], list[Frame]]:
    """The frames of a file that has no gaps."""

    def frames(data: bytes) -> list[Frame]:
        pieces = list(scan(data))
        assert all(isinstance(piece, Frame) for piece in pieces)
        return pieces

    return frames


@pytest.fixture
def run_python() -> Callable[[str], "subprocess.CompletedProcess[str]"]:
    """Runs a program in an interpreter of its own."""

    def run(program: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run
