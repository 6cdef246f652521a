"""Threads and ready queues of PyTorch's engine, with what is known to lie there."""

from collections.abc import Iterable

import msgspec

from gradviz.ids import next_queue_id
from gradviz.pytorch.seen_node import GRAPH_ROOT, SeenNode
from gradviz.pytorch.sheet import Sheet
from gradviz.pytorch.watched_pass import WatchedPass
from gradviz.ready_order import DEPTH_SHIFT, PyTorchSchedule


class SeenThread:
    """A thread that runs nodes, and what it has told so far.

    Attributes:
        number: The operating system's.
        name: What it is called.
        queue: From which it takes tasks, None as long as that is unknown.
        running: What it has begun and not ended, the innermost last.
        passes: Those that it has called and that have not returned, likewise.
        last_ns: The time of its last event.
    """

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.queue: SeenQueue | None = None
        self.running: list[RunningNode] = []
        self.passes: list[ReplayedPass] = []
        self.last_ns = 0

    def tick(self, t_ns: int) -> int:
        """This time, or just after the thread's last event if that was later."""
        last_ns = self.last_ns
        self.last_ns = t_ns = t_ns if t_ns > last_ns else last_ns + 1
        return t_ns


class ReplayedPass:
    """A pass as it is gone through.

    Attributes:
        about: What is known of it.
        queue: Its queue of the CPU.
        depth_part: What its depth adds to the priority of a task.
        outstanding: Its tasks that are queued or running.
        ran: Its nodes that ran.
        failed: The node that failed, if one did.
        queues: The ids of queues of which its listener has heard.
        is_over: Whether it returns with nothing between that and what is looked at.
        is_closed: Whether it has returned.
    """

    def __init__(self, about: WatchedPass, queue: "SeenQueue") -> None:
        self.about = about
        self.queue = queue
        self.depth_part = about.depth << DEPTH_SHIFT
        self.outstanding = 0
        self.ran: set[SeenNode] = set()
        self.failed: SeenNode | None = None
        self.queues: set[int] = set()
        self.is_over = self.is_closed = False
        self.sheets: dict[SeenThread, Sheet] = {}

    def sheet(self, thread: SeenThread) -> Sheet:
        """Where it is written down what happens on a thread."""
        sheet = self.sheets.get(thread)
        if sheet is None:
            sheet = self.sheets[thread] = Sheet()
        return sheet

    def runs_nothing(self, node: SeenNode) -> bool:
        """Whether a node is taken from its queue for its gradient alone."""
        needed = self.about.needed
        return needed is not None and node not in needed


class ReadyNode(msgspec.Struct, eq=False, gc=False):
    """A task in a queue; see `ready_order.Prioritised`."""

    node: SeenNode
    of: ReplayedPass
    queue: "SeenQueue"
    priority: int


def is_called(node: SeenNode, name: str, seen_nr: int) -> bool:
    """Whether this is the node that was seen, as far as that can be told.

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
    """

    def __init__(self, device: str = "") -> None:
        self.id = next_queue_id()
        self.device = device
        self.schedule = PyTorchSchedule()

    def first(self) -> ReadyNode | None:
        """What would be taken out next."""
        if not len(self.schedule):
            return None
        task = self.schedule.peek()
        assert isinstance(task, ReadyNode)
        return task

    def take_if_first(self, name: str, seen_nr: int) -> ReadyNode | None:
        """Take out what was seen to begin, if its turn it is."""
        schedule = self.schedule
        if not len(schedule):
            return None
        task: ReadyNode = schedule.peek()  # type: ignore[assignment]
        node, replay = task.node, task.of
        # As `is_called` and `runs_nothing` say it: this is asked of every node.
        if node.raw_name != name or (node.seen_nr != seen_nr and name != GRAPH_ROOT):
            return None
        needed = replay.about.needed
        if replay.is_closed or (needed is not None and node not in needed):
            return None
        schedule.pop()
        return task

    def tasks(self) -> Iterable[ReadyNode]:
        """All that lie there, in no order."""
        return [one for one in self.schedule if isinstance(one, ReadyNode)]

    def remove(self, task: ReadyNode) -> None:
        """Take out a task that is not the first."""
        rest = [one for one in self.schedule if one is not task]
        self.schedule = PyTorchSchedule()
        for one in rest:
            self.schedule.push(one)


class RunningNode(msgspec.Struct, eq=False, gc=False):
    """A function that a thread has begun.

    Attributes:
        thread: Which.
        task: What it is, None for nobody knows what.
        queue: From which it came.
        end_ns: When it ended.
        num_passes: How many passes its thread had called that had not returned.
    """

    thread: SeenThread
    task: ReadyNode | None
    queue: SeenQueue
    end_ns: int
    num_passes: int


class SeenEngine:
    """The threads and queues of PyTorch's engine, as far as they are known.

    Attributes:
        threads: By the operating system's number.
        open: Passes that have begun and not returned.
    """

    def __init__(self) -> None:
        self.threads: dict[int, SeenThread] = {}
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

    def queue_with(self, name: str, seen_nr: int) -> SeenQueue:
        """The queue that would give this out: of a thread that nobody knows."""
        queues = [*self._devices.values()]
        queues += [replay.queue for replay in reversed(self.open)]
        for queue in queues:
            first = queue.first()
            if first is not None and is_called(first.node, name, seen_nr):
                return queue
        return queues[-1] if queues else SeenQueue()
