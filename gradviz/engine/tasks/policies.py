"""Orders other than PyTorch's, for comparison and to find order dependence.

A policy makes the schedule of each queue and is called before each pass.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from gradviz.engine.graph.node import Node
from gradviz.engine.graph.protocols import name_of
from gradviz.engine.tasks.graph_task import NodeTask
from gradviz.named_orders import schedules_named
from gradviz.ready_order import Prioritized, PyTorchSchedule, Schedule


class OrderPolicy(Protocol):
    """Order of execution in an engine."""

    def schedule(self) -> Schedule:
        """Return a new schedule, for one queue."""

    def begin(self, graph_task: int, nodes: Iterable[tuple[Node, int]]) -> None:
        """Prepare for a pass that is about to start.

        The calling thread of the pass calls it, before the first push.

        Args:
            graph_task: Id of the pass.
            nodes: The nodes that will be pushed, each with the id of its queue.
        """


class PyTorchOrder:
    """PyTorch's own order, exactly; see Note [Priority in a ready queue]."""

    def schedule(self) -> Schedule:
        """Return a binary heap with PyTorch's moves."""
        return PyTorchSchedule()

    def begin(self, graph_task: int, nodes: Iterable[tuple[Node, int]]) -> None:
        """Prepare nothing."""
        del graph_task, nodes


class NamedOrder:
    """An order that needs no knowledge of the pass; see `schedules_named`.

    Attributes:
        schedule: Makes a schedule for one queue.
    """

    def __init__(self, name: str) -> None:
        self.schedule = schedules_named(name)

    def begin(self, graph_task: int, nodes: Iterable[tuple[Node, int]]) -> None:
        """Prepare nothing."""
        del graph_task, nodes


class Step(NamedTuple):
    """One node of a recorded pass, recognizable in another run of the program.

    Attributes:
        rank: Its index among the pass's nodes in order of their creation.
        name: Its name, to detect a different graph.
    """

    rank: int
    name: str


class Recorded:
    """The order of recorded passes: the first pass repeats the first, and so on.

    A node that becomes ready too early waits until its predecessors on its queue have
    run. If the graph is not the recorded one, it could wait forever; such a pass runs
    in PyTorch's order instead, and `deviations` says why.

    Args:
        passes: For each pass, all its nodes in the order in which they ran. The
            passes must have completed.

    Attributes:
        deviations: Messages on passes that could not be repeated.
    """

    def __init__(self, passes: Iterable[Sequence[Step]]) -> None:
        self._passes = iter(passes)
        #: Node id -> its turn. Written before the first node of a pass is pushed, and
        #: read after that.
        self._turns: dict[int, _Turn] = {}
        self.deviations: list[str] = []

    def schedule(self) -> Schedule:
        """Return a queue that holds nodes back until it is their turn."""
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
    """Say why `steps` are not the nodes of this graph; empty if they are."""
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


class _RecordedSchedule:
    """Holds nodes until their turn comes; nodes without one go first, by priority."""

    __slots__ = ("_free", "_lines", "_turns")

    def __init__(self, turns: Mapping[int, _Turn]) -> None:
        self._turns = turns
        self._free = PyTorchSchedule()
        self._lines: list[_QueueOrder] = []

    def push(self, task: Prioritized) -> None:
        assert isinstance(task, NodeTask)
        turn = None if task.node is None else self._turns.get(task.node.id)
        if turn is None:
            self._free.push(task)
            return
        turn.line.waiting[turn.place] = task
        if turn.line not in self._lines:
            self._lines.append(turn.line)

    def pop(self) -> Prioritized:
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

    def __iter__(self) -> Iterator[Prioritized]:
        held = [task for line in self._lines for task in line.waiting.values()]
        return iter((*self._free, *held))


def _next_place(line: _QueueOrder) -> int | None:
    """Return the index of a node that may run: the next, or any after a failure."""
    if line.next in line.waiting:
        return line.next
    for place, task in line.waiting.items():
        if task.graph_task is not None and task.graph_task.outcome.has_error.value:
            return place
    return None


def policy_named(name: str) -> OrderPolicy:
    """Return the policy of a name: ``pytorch``, ``fifo`` or ``random:SEED``.

    Raises:
        ValueError: There is no such policy.
    """
    return PyTorchOrder() if name == "pytorch" else NamedOrder(name)
