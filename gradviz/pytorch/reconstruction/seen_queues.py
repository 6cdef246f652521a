"""Threads and ready queues of PyTorch's engine, with their known tasks."""

import enum
from collections import Counter
from collections.abc import Iterable

import msgspec

from gradviz.pytorch.nodes.seen_node import GRAPH_ROOT, SeenNode
from gradviz.pytorch.reconstruction.inferred_rows import FlatRows, PassRows
from gradviz.pytorch.reconstruction.watched_pass import WatchedPass
from gradviz.ready_order import DEPTH_SHIFT, PyTorchSchedule
from gradviz.trace.reporting.ids import next_queue_id


class SeenThread:
    """A thread that runs nodes, and its reports so far.

    Attributes:
        number: The operating system's.
        name: Name of the thread.
        queue: Queue from which it takes tasks, None as long as that is unknown.
        running: Functions that it has begun and not ended, the innermost last.
        passes: Those that it has called and that have not returned, likewise.
        last_ns: The time of its last event.
        returned: The rows of which the last says that hooks after a function returned.
        returned_ns: Time of that event, -1 if there is none.
    """

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.queue: SeenQueue | None = None
        self.running: list[RunningNode] = []
        self.passes: list[ReplayedPass] = []
        self.last_ns = 0
        self.returned: FlatRows = []
        self.returned_ns = -1

    def tick(self, t_ns: int) -> int:
        """This time, or just after the thread's last event if that was later."""
        last_ns = self.last_ns
        self.last_ns = t_ns = t_ns if t_ns > last_ns else last_ns + 1
        return t_ns


class ReplayedPass:
    """A pass as it is gone through.

    Attributes:
        about: Known facts about it.
        queue: Its queue of the CPU.
        depth_part: Contribution of its depth to the priority of a task.
        outstanding: Its tasks that are queued or running.
        ran: Its nodes that ran.
        given: Of nodes with several inputs, the bytes at each that got a gradient.
        misplaced: Its nodes that another thread made than was supposed.
        failed: The node that failed, if one did.
        queues: The ids of queues of which its listener has heard.
        is_doubted: True if it has been said that its order is not certain.
        is_over: True if it returns with nothing between that and what is looked at.
        is_closed: True if it has returned.
    """

    def __init__(self, about: WatchedPass, queue: "SeenQueue") -> None:
        self.about = about
        self.queue = queue
        self.depth_part = about.depth << DEPTH_SHIFT
        self.outstanding = 0
        self.ran: set[SeenNode] = set()
        self.given: dict[SeenNode, dict[int, int]] = {}
        self.misplaced: list[SeenNode] = []
        self.failed: SeenNode | None = None
        self.queues: set[int] = set()
        self.is_doubted = self.is_over = self.is_closed = False
        self.rows: dict[SeenThread, PassRows] = {}

    def rows_of(self, thread: SeenThread) -> PassRows:
        """Return the rows for the events of a thread."""
        rows = self.rows.get(thread)
        if rows is None:
            rows = self.rows[thread] = PassRows()
        return rows

    def forget_tasks(self) -> None:
        """Withdraw what was inferred about its tasks: none of them was ever queued."""
        for task in self.queue.tasks():
            if task.of is self:
                self.queue.remove(task)
        for rows in self.rows.values():
            rows.pushed.clear()

    def runs_nothing(self, node: SeenNode) -> bool:
        """Return whether a node is popped for its gradient alone."""
        needed = self.about.needed
        return needed is not None and node not in needed


class ReadyNode(msgspec.Struct, eq=False, gc=False):
    """A task in a queue since a time; see `ready_order.Prioritized`."""

    node: SeenNode
    of: ReplayedPass
    queue: "SeenQueue"
    priority: int
    pushed_ns: int = 0


def is_called(node: SeenNode, name: str, seen_nr: int) -> bool:
    """Return whether this is the node that was seen, as far as can be told.

    A GraphRoot gets its number inside of PyTorch.
    """
    if node.raw_name != name:
        return False
    return node.seen_nr == seen_nr or name == GRAPH_ROOT


class SeenQueue:
    """A ready queue.

    Attributes:
        id: Unique in the process.
        device: As PyTorch calls it, empty for a caller's.
        schedule: Its tasks.
        is_certain: True if these are all that lie there, and nothing else.
    """

    def __init__(self, device: str = "") -> None:
        self.is_certain = True
        self.id = next_queue_id()
        self.device = device
        self.schedule = PyTorchSchedule()

    def first(self) -> ReadyNode | None:
        """Return the next node to be popped."""
        if not len(self.schedule):
            return None
        task = self.schedule.peek()
        assert isinstance(task, ReadyNode)
        return task

    def take_if_first(self, name: str, seen_nr: int) -> ReadyNode | None:
        """Pop the node that was seen to start, if it is its turn."""
        schedule = self.schedule
        if not schedule.heap:
            return None
        task: ReadyNode = schedule.heap[0]  # type: ignore[assignment]
        node, replay = task.node, task.of
        # As `is_called` and `runs_nothing` say it: this is asked of every node.
        if node.raw_name != name or (node.seen_nr != seen_nr and name != GRAPH_ROOT):
            return None
        needed = replay.about.needed
        if replay.is_closed or (needed is not None and node not in needed):
            return None
        schedule.pop()
        return task

    def is_tied(self, task: ReadyNode) -> bool:
        """Return whether another of the waiting tasks may have been popped instead.

        Note [Hooks that fail]
        ~~~~~~~~~~~~~~~~~~~~~~
        Of a hook that raised nobody knows whether it came after the last node, which
        has then handed on nothing, or before the next one, which was popped then. What
        the pass leaves in the queue takes part in the order of equal tasks. Leaves are
        equal and have one name, and so may nodes be that several threads made; of these
        it cannot be told which one ran.
        """
        return any(
            one.priority == task.priority
            and one.node.raw_name == task.node.raw_name
            and not one.of.is_closed
            for one in self.tasks()
        )

    def take(self, task: ReadyNode) -> None:
        """Take out a task, also one that is not the first."""
        if task is self.first():
            self.schedule.pop()
        else:
            self.remove(task)

    def tasks(self) -> Iterable[ReadyNode]:
        """Return all waiting nodes, in no order."""
        return [one for one in self.schedule if isinstance(one, ReadyNode)]

    def remove(self, task: ReadyNode) -> None:
        """Take out a task that is not the first."""
        rest = [one for one in self.schedule if one is not task]
        self.schedule = PyTorchSchedule()
        for one in rest:
            self.schedule.push(one)


class RunState(enum.IntEnum):
    """Progress of the evaluation of a node."""

    HOOKS_BEFORE = 0
    RUNS = 1
    HOOKS_AFTER = 2


class RunningNode(msgspec.Struct, eq=False, gc=False):
    """A function that a thread has begun.

    Attributes:
        thread: Thread that has begun it.
        task: Its task, None if nobody knows which.
        queue: Queue from which it came.
        end_ns: Time of its end.
        num_passes: Number of passes its thread had called that had not returned.
        state: Progress: the function itself runs, or hooks before or after it.
        has_hooks: True if hooks before it were reported, and it began with these.
    """

    thread: SeenThread
    task: ReadyNode | None
    queue: SeenQueue
    end_ns: int
    num_passes: int
    state: RunState = RunState.RUNS
    has_hooks: bool = False

    def is_of(self, replay: ReplayedPass, node: int) -> bool:
        """Return whether it is the node with this id, of this pass."""
        task = self.task
        return task is not None and task.of is replay and task.node.id == node


class PassesInNodes:
    """Numbers of passes yet to begin inside of each node, hooks included."""

    def __init__(self, passes: Iterable[WatchedPass] = ()) -> None:
        places = [_place_of(one) for one in passes if one.inside >= 0]
        # Without one, which is most often so, no `Counter` is made: it takes 3 µs.
        self._to_come: dict[tuple[int, int], int] = Counter(places) if places else {}

    @property
    def are_any_to_come(self) -> bool:
        """True if there is one left, inside of whatever node."""
        return bool(self._to_come)

    def has_begun(self, one: WatchedPass) -> None:
        """Count a pass out."""
        if one.inside >= 0:
            place = _place_of(one)
            self._to_come[place] -= 1
            if not self._to_come[place]:
                del self._to_come[place]

    def are_to_come(self, task: ReadyNode) -> bool:
        """Return whether there is one left inside of this node."""
        to_come = self._to_come
        return bool(to_come) and (task.of.about.task, task.node.id) in to_come


def _place_of(one: WatchedPass) -> tuple[int, int]:
    return -1 if one.parent is None else one.parent.task, one.inside


class SeenEngine:
    """The threads and queues of PyTorch's engine, as far as they are known.

    Attributes:
        inner: The passes that are yet to begin inside of nodes.
        threads: By the operating system's number.
        open: Passes that have begun and not returned.
    """

    def __init__(self) -> None:
        self.threads: dict[int, SeenThread] = {}
        self.inner = PassesInNodes()
        self.open: list[ReplayedPass] = []
        self._devices: dict[str, SeenQueue] = {}

    def thread(self, number: int, name: str = "") -> SeenThread:
        """The thread of this number."""
        thread = self.threads.get(number)
        if thread is None:
            name = name or f"PyTorch's thread {number}"
            thread = self.threads[number] = SeenThread(number, name)
        return thread

    def device(self, device: str) -> SeenQueue:
        """The queue of a device."""
        queue = self._devices.get(device)
        if queue is None:
            queue = self._devices[device] = SeenQueue(device)
        return queue

    def is_around_others(self, replay: ReplayedPass) -> bool:
        """Return whether a pass that began inside of this one is still running."""
        return any(one.about.parent is replay.about for one in self.open)

    def queue_with(self, name: str, seen_nr: int) -> SeenQueue:
        """The queue that would give this out: of a thread that nobody knows."""
        queues = [*self._devices.values()]
        queues += [replay.queue for replay in reversed(self.open)]
        for queue in queues:
            first = queue.first()
            if first is not None and is_called(first.node, name, seen_nr):
                return queue
        return queues[-1] if queues else SeenQueue()
