"""A queue of ready tasks, with many producers and one consumer.

It knows nothing of graphs, of the meaning of a task, or of when the loop ends.
"""

from collections.abc import Callable
from typing import Any

from gradviz.engine.graph.sync import Empty, Mailbox, Sync
from gradviz.ready_order import PyTorchSchedule, Schedule
from gradviz.trace.reporting.ids import next_queue_id


class ReadyQueue:
    """A mailbox in front, a schedule behind; tasks are `Prioritized`.

    Note [One consumer]
    ~~~~~~~~~~~~~~~~~~~
    Exactly one thread consumes a queue at a time. That role passes on only through a
    mailbox (when the reentrancy pool takes over, and when it gives the role back), so
    there is always a happens-before edge between one consumer and the next. Hence the
    schedule needs no lock: producers drop tasks into the mailbox, and the consumer
    moves them into its schedule before it decides. Tasks that the consumer itself makes
    ready go straight to the schedule, without a lock or a wake-up: the common case of a
    pass on one device.

    Everything in the mailbox when `pop` decides takes part in the decision, so the
    order is that of PyTorch's queue behind its mutex.

    Attributes:
        id: Unique in this process; traces refer to the queue by it.
        device: Index of the device it serves, -1 for a caller's queue.
        push: Adds a task; any thread. The mailbox's own method, a C function: an
            interrupt strikes before it or after it, never inside.
        push_own: Adds a task; the consumer only.
        pop_own: Takes the task that should run now from those that the consumer has
            seen, or raises IndexError; the consumer only. Both are the schedule's own
            methods, so a task made ready and popped by the same thread costs no more
            than its place in the heap.
        seen: The tasks that the consumer has seen and not popped, in no order; any
            thread may read it.
        plain: The schedule if it is PyTorch's, None if it is another policy's. When
            compiled, its methods are called as C functions: a third of the time.
        has_no_mail: True if nothing has arrived from other threads since `collect`; any
            thread. The mailbox's own method, called before every pop.
    """

    __slots__ = (
        "_mailbox",
        "_make_schedule",
        "device",
        "has_no_mail",
        "id",
        "plain",
        "pop_own",
        "push",
        "push_own",
        "seen",
    )

    seen: Schedule | list[Any]
    push: Callable[[Any], None]
    push_own: Callable[[Any], None]
    pop_own: Callable[[], Any]
    has_no_mail: Callable[[], bool]

    def __init__(
        self, sync: Sync, schedule: Callable[[], Schedule], device: int
    ) -> None:
        self.id = next_queue_id()
        self.device = device
        self._mailbox: Mailbox[Any] = sync.mailbox()
        self.push = self._mailbox.put
        self.has_no_mail = self._mailbox.empty
        self._make_schedule = schedule
        self._begin_schedule()

    @property
    def name(self) -> str:
        """Name of the queue in traces and messages."""
        return f"device {self.device}" if self.device >= 0 else f"caller {self.id}"

    def pop(self, timeout: float | None = None) -> Any:  # noqa: ANN401 - a task
        """Take the task that should run now, sleeping until there is one.

        The consumer only.

        Args:
            timeout: Maximum seconds to sleep; None is forever.

        Raises:
            Empty: No task arrived in time.
        """
        while True:
            self.collect()
            try:
                return self.pop_own()
            except IndexError:
                self.push_own(self._mailbox.get(timeout=timeout))

    def collect(self) -> None:
        """Move tasks from other threads to the schedule; the consumer only."""
        mailbox = self._mailbox
        while not mailbox.empty():
            self.push_own(mailbox.get(block=False))

    def clear(self) -> list[Any]:
        """Remove every task, after the queue's order was torn; the consumer only."""
        tasks = self.snapshot()
        while not self._mailbox.empty():
            tasks.append(self._mailbox.get())
        self._begin_schedule()
        return tasks

    def is_empty(self) -> bool:
        """Return whether no task waits here; the consumer only."""
        return not len(self.seen) and self._mailbox.empty()

    def snapshot(self) -> list[Any]:
        """Return the waiting tasks that the consumer has seen; any thread."""
        return list(self.seen)

    @property
    def num_unseen(self) -> int:
        """Return the number of tasks not yet seen by the consumer; any thread."""
        return self._mailbox.qsize()

    def __len__(self) -> int:
        """Return the number of waiting tasks; exact on the consumer's thread only."""
        return len(self.seen) + self._mailbox.qsize()

    def _begin_schedule(self) -> None:
        schedule = self._make_schedule()
        self.plain = schedule if type(schedule) is PyTorchSchedule else None
        # The length of a list is known without a Python call.
        self.seen = schedule if self.plain is None else self.plain.heap
        self.push_own = schedule.push
        self.pop_own = schedule.pop


__all__ = ["Empty", "ReadyQueue"]
