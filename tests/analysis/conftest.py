"""Traces written event by event, at times that the test chooses."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from gradviz.trace.format.model import Trace
from gradviz.trace.probe import How, Push
from gradviz.trace.reading.reader import parse_trace
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.sink import MemorySink
from tests.trace.reports import begin_pass

#: When the time is 0: after the nodes were made.
START_NS = 1_000

MS = 1_000_000


class Metadata(NamedTuple):
    shape: tuple[int, ...]
    dtype: object = "float64"
    device: object = "cpu"


class Receiver(NamedTuple):
    node: "Written | None"
    input_nr: int = 0


class Written(NamedTuple):
    """A node, as far as a recorder looks at it."""

    id: int
    text: str
    sequence_nr: int
    topological_nr: int
    next_edges: tuple[Receiver, ...]
    input_metadata: tuple[Metadata | None, ...]
    runs_on: object
    module_path: str = ""

    def name(self) -> str:
        return self.text


class Story:
    """Writes a trace. Every method reports one thing, at a time counted from START_NS.

    No two events have the same time: what is reported next at the same time happens
    a nanosecond later. So a pass begins at 0 and ends what it does at once at 1.
    """

    def __init__(self) -> None:
        self.now = 0
        self._sink = MemorySink()
        self.recorder = Recorder(self._sink, clock=lambda: self.now, flush_every_s=None)

    def node(
        self,
        id: int,  # noqa: A002 - what the field is called
        *receivers: "Written | None",
        name: str = "MulBackward0",
        device: str = "cpu",
        shape: tuple[int, ...] | None = None,
        input_nr: int = 0,
    ) -> Written:
        inputs = (None if shape is None else Metadata(shape),)
        edges = tuple(Receiver(one, input_nr) for one in receivers)
        written = Written(id, name, id, len(receivers), edges, inputs, device)
        self.recorder.node_created(written)
        return written

    def begin(self, task: int, nodes: list[Written], *, at: int, parent: int = -1):
        self.now = START_NS + at
        begin_pass(
            self.recorder, task, parent=parent, reentrant_depth=0 if parent < 0 else 1
        )
        self.recorder.nodes_defined(nodes)
        num_edges = sum(len(node.next_edges) for node in nodes)
        self.recorder.dependencies_counted(task, len(nodes), num_edges)

    def push(
        self,
        task: int,
        node: Written,
        *,
        at: int,
        queue: int = 1,
        pushed_by: Written | None = None,
    ) -> None:
        self.now = START_NS + at
        by = -1 if pushed_by is None else pushed_by.id
        self.recorder.task_pushed(task, node.id, queue, 0, node.id, 1, 1, by, Push.NODE)

    def give(
        self, task: int, node: Written, producer: Written, *, at: int, remaining: int
    ) -> None:
        self.now = START_NS + at
        self.recorder.gradient_buffered(
            task, node.id, producer.id, 0, remaining, 8, How.FIRST
        )

    def pop(self, task: int, node: Written, *, at: int, queue: int = 1) -> None:
        self.now = START_NS + at
        self.recorder.task_popped(task, node.id, queue, 0)

    def ran(self, task: int, node: Written, *, at: int, until: int) -> None:
        self.start(task, node, at=at)
        self.complete(task, node, at=until)

    def take(
        self,
        task: int,
        node: Written,
        *,
        at: tuple[int, int, int],
        until: int | None = None,
        queue: int = 1,
        pushed_by: Written | None = None,
    ) -> None:
        """It is pushed, popped and started; and completed, if it says when."""
        pushed, popped, started = at
        self.push(task, node, at=pushed, queue=queue, pushed_by=pushed_by)
        self.pop(task, node, at=popped, queue=queue)
        self.start(task, node, at=started)
        if until is not None:
            self.complete(task, node, at=until)

    def start(self, task: int, node: Written, *, at: int) -> None:
        self.now = START_NS + at
        self.recorder.node_started(task, node.id)

    def complete(self, task: int, node: Written, *, at: int) -> None:
        self.now = START_NS + at
        self.recorder.node_completed(task, node.id)

    def fail(self, task: int, node: Written, error: str, *, at: int) -> None:
        self.now = START_NS + at
        self.recorder.node_failed(task, node.id, error)
        self.recorder.task_failed(task, node.id, error)

    def gradient(
        self,
        task: int,
        node: Written,
        producer: Written,
        size_bytes: int,
        *,
        at: int,
        how: How = How.FIRST,
    ) -> None:
        self.now = START_NS + at
        self.recorder.gradient_buffered(
            task, node.id, producer.id, 0, 0, size_bytes, how
        )

    def capture(self, task: int, node: Written, *, at: int) -> None:
        self.now = START_NS + at
        self.recorder.capture_taken(task, node.id, 0)

    def waited(self, waited_ns: int, *, until: int) -> None:
        self.now = START_NS + until
        self.recorder.queue_waited(1, waited_ns)

    def kernel(
        self, number: int, stream: str, *, at: int, ran: tuple[int, int], name="mul"
    ) -> None:
        self.now = START_NS + at
        self.recorder.kernel_launched(number, stream, name)
        begin, end = ran
        self.recorder.kernel_ran(number, START_NS + begin, START_NS + end)

    def record(self, event: int, stream: str, *, node: int = -1) -> None:
        self.now += 1
        self.recorder.event_recorded(0, node, stream, event)

    def wait(
        self, event: int, stream: str, *, node: int = -1, producer: int = -1
    ) -> None:
        self.now += 1
        self.recorder.stream_waited(0, node, stream, event, producer)

    def end(self, task: int, *, at: int) -> None:
        self.now = START_NS + at
        self.recorder.task_completed(task)

    def on_thread(self, name: str, tell: Callable[[], None]) -> None:
        """Let another thread, of this name, report what `tell` does."""
        thread = threading.Thread(target=tell, name=name)
        thread.start()
        thread.join()

    def trace(self) -> Trace:
        """Return the events so far as a trace; end the story."""
        return parse_trace(self.contents())

    def contents(self) -> bytes:
        """The file that tells it; ends the story."""
        self.recorder.close()
        return self._sink.contents()


class TimedStory(Story):
    """A story in which threads lose time, in milliseconds."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = 0
        self.now = 1 * MS
        self._sink = MemorySink()
        self.recorder = Recorder(
            self._sink,
            clock=lambda: self.now,
            thread_clock=lambda: self.now - self.lost,
            flush_every_s=None,
        )

    def runs(self, time: float) -> None:
        self.now += int(time * MS)

    def loses(self, time: float) -> None:
        self.runs(time)
        self.lost += int(time * MS)

    def started(self, task: int, node: int) -> None:
        self.runs(0.01)
        self.recorder.node_started(task, node)

    def nested(self, task: int, parent: int) -> None:
        self.begin(task, [], at=self.now - 1_000, parent=parent)
        self.recorder.reentrant_entered(task, 1)

    def left(self, task: int) -> None:
        self.recorder.task_completed(task)
        self.recorder.reentrant_left(task, 1)


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def timed() -> TimedStory:
    return TimedStory()


@pytest.fixture
def pair(story: Story) -> tuple[Story, Written, Written]:
    """Pass 7, from 0 to 100: a Mul from 20 to 80, then its leaf from 90 to 95."""
    leaf = story.node(1, name="AccumulateGrad", shape=(3,))
    root = story.node(2, leaf, shape=(3, 2))
    story.begin(7, [root, leaf], at=0)
    story.take(7, root, at=(10, 15, 20))
    story.push(7, leaf, at=70)
    story.complete(7, root, at=80)
    story.pop(7, leaf, at=82)
    story.ran(7, leaf, at=90, until=95)
    story.end(7, at=100)
    return story, root, leaf


@pytest.fixture
def device():
    """Lets one other thread tell what is given."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda *told: pool.submit(*told).result()
