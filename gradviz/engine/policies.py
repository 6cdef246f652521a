"""Other orders than PyTorch's, to compare it with and to look for what depends on it.

A policy makes the schedule of each queue, and hears of each pass before it begins.
Wake-ups and shutdowns come first under every policy: they are no work, and a thread
that waits for one must not wait behind work.
"""

import collections
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from gradviz.engine.graph_task import NodeTask
from gradviz.engine.node import Node
from gradviz.engine.protocols import name_of
from gradviz.ready_order import (
    WAKE_UP_PRIORITY,
    Prioritised,
    PyTorchSchedule,
    Schedule,
)


class OrderPolicy(Protocol):
    """What decides the order of execution in an engine."""

    def schedule(self) -> Schedule:
        """A new schedule, for one queue."""

    def begin(self, graph_task: int, nodes: Iterable[tuple[Node, int]]) -> None:
        """A pass is about to begin.

        Called by the thread that calls for it, before the first push.

        Args:
            graph_task: Its id.
            nodes: Those that will be pushed, each with the id of its queue.
        """


class PyTorchOrder:
    """PyTorch's own order, exactly; see Note [Priority in a ready queue]."""

    def schedule(self) -> Schedule:
        """A binary heap with PyTorch's moves."""
        return PyTorchSchedule()

    def begin(self, graph_task: int, nodes: Iterable[tuple[Node, int]]) -> None:
        """Nothing to prepare."""
        del graph_task, nodes


class Fifo:
    """First in, first out: the order in which nodes become ready."""

    def schedule(self) -> Schedule:
        """A plain queue."""
        return _FifoSchedule()

    def begin(self, graph_task: int, nodes: Iterable[tuple[Node, int]]) -> None:
        """Nothing to prepare."""
        del graph_task, nodes


class Random:
    """Any ready node, drawn at random: whatever is legal may happen.

    Args:
        seed: The same seed draws the same order, on a graph for one device.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def schedule(self) -> Schedule:
        """A bag, with a random stream of its own."""
        return _RandomSchedule(random.Random(self._random.getrandbits(64)))

    def begin(self, graph_task: int, nodes: Iterable[tuple[Node, int]]) -> None:
        """Nothing to prepare."""
        del graph_task, nodes


class Step(NamedTuple):
    """One node of a recorded pass, recognisable in another run of the same program.

    Attributes:
        rank: Its place among the pass's nodes in order of their creation.
        name: Its name, to notice that the graph is another one.
    """

    rank: int
    name: str


class Recorded:
    """The order of recorded passes: the first pass repeats the first, and so on.

    A node that is ready too early waits until those that ran before it on its queue
    have run. Where the graph is not the recorded one that could wait for ever; such a
    pass runs in PyTorch's order instead, and `deviations` says why.

    Args:
        passes: For each pass, all its nodes in the order in which they ran. The
            passes must have completed.

    Attributes:
        deviations: What could not be repeated, in words.
    """

    def __init__(self, passes: Iterable[Sequence[Step]]) -> None:
        self._passes = iter(passes)
        #: Node id -> its turn. Written before the first node of a pass is pushed, and
        #: read after that.
        self._turns: dict[int, _Turn] = {}
        self.deviations: list[str] = []

    def schedule(self) -> Schedule:
        """A queue that holds nodes back until it is their turn."""
        return _RecordedSchedule(self._turns)

    def begin(self, graph_task: int, nodes: Iterable[tuple[Node, int]]) -> None:
        """Match the nodes of a pass with those of the recorded one."""
        created = sorted(nodes, key=lambda entry: entry[0].id)
        for node, _ in created:
            self._turns.pop(node.id, None)
        steps = next(self._passes, None)
        if steps is None:
            problem = "no further pass was recorded"
        else:
            problem = _difference([node for node, _ in created], steps)
        if problem or steps is None:
            self.deviations.append(
                f"task {graph_task}: {problem}; it ran in PyTorch's order"
            )
            return
        lines: dict[int, _QueueOrder] = {}
        for step in steps:
            node, queue = created[step.rank]
            line = lines.setdefault(queue, _QueueOrder())
            self._turns[node.id] = _Turn(line, line.length)
            line.length += 1


class _QueueOrder:
    """The nodes of one pass on one queue; touched by the queue's consumer only."""

    __slots__ = ("length", "next", "waiting")

    def __init__(self) -> None:
        self.length = 0
        self.next = 0
        self.waiting: dict[int, NodeTask] = {}


class _Turn(NamedTuple):
    line: _QueueOrder
    place: int


def _difference(created: Sequence[Node], steps: Sequence[Step]) -> str:
    """Why `steps` are not the nodes of this graph; empty if they are."""
    if len(created) != len(steps):
        return f"it has {len(created)} nodes, the recorded one {len(steps)}"
    for step in steps:
        if not 0 <= step.rank < len(created):
            return f"the recorded order names a node {step.rank} that it does not have"
        node = created[step.rank]
        if name_of(node) != step.name:
            return f"{node!r} was {step.name} when recorded"
    if len({step.rank for step in steps}) != len(steps):
        return "the recorded order names a node twice"
    return ""


class _FifoSchedule:
    __slots__ = ("_tasks", "_urgent")

    def __init__(self) -> None:
        self._urgent: collections.deque[Prioritised] = collections.deque()
        self._tasks: collections.deque[Prioritised] = collections.deque()

    def push(self, task: Prioritised) -> None:
        is_urgent = task.priority >= WAKE_UP_PRIORITY
        (self._urgent if is_urgent else self._tasks).append(task)

    def pop(self) -> Prioritised:
        return (self._urgent or self._tasks).popleft()

    def __len__(self) -> int:
        return len(self._urgent) + len(self._tasks)

    def __iter__(self) -> Iterator[Prioritised]:
        return iter((*self._urgent, *self._tasks))


class _RandomSchedule:
    __slots__ = ("_random", "_tasks", "_urgent")

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._urgent: list[Prioritised] = []
        self._tasks: list[Prioritised] = []

    def push(self, task: Prioritised) -> None:
        is_urgent = task.priority >= WAKE_UP_PRIORITY
        (self._urgent if is_urgent else self._tasks).append(task)

    def pop(self) -> Prioritised:
        if self._urgent:
            return self._urgent.pop(0)
        tasks = self._tasks
        if not tasks:
            raise IndexError("pop from an empty schedule")
        chosen = self._random.randrange(len(tasks))
        tasks[chosen], tasks[-1] = tasks[-1], tasks[chosen]
        return tasks.pop()

    def __len__(self) -> int:
        return len(self._urgent) + len(self._tasks)

    def __iter__(self) -> Iterator[Prioritised]:
        return iter((*self._urgent, *self._tasks))


class _RecordedSchedule:
    """Holds nodes that have a turn until it comes; the rest go first, by priority."""

    __slots__ = ("_free", "_lines", "_turns")

    def __init__(self, turns: Mapping[int, _Turn]) -> None:
        self._turns = turns
        self._free = PyTorchSchedule()
        self._lines: list[_QueueOrder] = []

    def push(self, task: Prioritised) -> None:
        assert isinstance(task, NodeTask)
        turn = None if task.node is None else self._turns.get(task.node.id)
        if turn is None:
            self._free.push(task)
            return
        turn.line.waiting[turn.place] = task
        if turn.line not in self._lines:
            self._lines.append(turn.line)

    def pop(self) -> Prioritised:
        if len(self._free):
            return self._free.pop()
        for line in self._lines:
            place = _next_place(line)
            if place is not None:
                task = line.waiting.pop(place)
                line.next = place + 1
                if not line.waiting:
                    self._lines.remove(line)
                return task
        raise IndexError("it is nobody's turn")

    def __len__(self) -> int:
        return len(self._free) + sum(len(line.waiting) for line in self._lines)

    def __iter__(self) -> Iterator[Prioritised]:
        held = [task for line in self._lines for task in line.waiting.values()]
        return iter((*self._free, *held))


def _next_place(line: _QueueOrder) -> int | None:
    """Who may run: whose turn it is, or anyone of a pass that has failed."""
    if line.next in line.waiting:
        return line.next
    for place, task in line.waiting.items():
        if task.graph_task is not None and task.graph_task.has_error.value:
            return place
    return None


def policy_named(name: str) -> OrderPolicy:
    """The policy of a name: ``pytorch``, ``fifo`` or ``random:SEED``.

    Raises:
        ValueError: There is no such policy.
    """
    kind, _, argument = name.partition(":")
    match kind, argument:
        case "pytorch", "":
            return PyTorchOrder()
        case "fifo", "":
            return Fifo()
        case "random", seed if seed.isdecimal():
            return Random(int(seed))
        case _:
            raise ValueError(
                f"unknown schedule {name!r}: expected 'pytorch', 'fifo' or "
                f"'random:SEED', such as 'random:7'"
            )
