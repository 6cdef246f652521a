"""End of a pass: its error or success, its helpers, and who has been notified."""

from collections.abc import Callable
from typing import Final

from gradviz.engine.graph.node import Node
from gradviz.engine.graph.sync import Lock, Mailbox, Sync
from gradviz.trace.probe import Probe

#: Time that a failed pass waits for its nodes running on other threads.
QUIESCE_NS: Final = 5_000_000_000


class Outcome:
    """State of the end of one pass.

    Note [How a pass ends]
    ~~~~~~~~~~~~~~~~~~~~~~
    A pass ends once: either the first `set_error` makes it fail, or `complete` says
    that it has succeeded. Each checks under the mutex whether the other came first, so
    never do both hold, and neither is ever taken back. No node starts once the pass has
    failed: `begin_help` decides that under the mutex, too. Then the one thread that
    wins `claim_end` notifies the owner, which leaves when it finds `is_done`.

    The mutex is that of the pass: a wake-up is counted among its tasks, pushed, and
    noted in `is_told` in one step. It is taken in private passes as well.

    It does not refer to the GraphTask that owns it: a raised error keeps frames alive,
    and all they refer to.

    Args:
        sync: The seam.
        task_id: Id of the pass.
        mutex: Mutex of the pass.
        probe: The listener of the pass, None for none.

    Attributes:
        mutex: As given.
        error: The first error. Guarded by `mutex`, readable without it once `is_done`.
        has_error: A `Flag`, set with `error` and never reset.
        is_complete: True if it ended without an error. Guarded by `mutex`.
        is_torn: A `Flag`: an error struck the engine's own code on a device thread
            that worked for the pass, so its tasks can no longer be counted.
        is_ended: See `claim_end`. Guarded by `mutex`.
        is_told: True if a wake-up has notified the owner. Guarded by `mutex`.
        is_done: True if the owner may leave; see Note [Ownership of a GraphTask].
            Belongs to the consumer of the owner's queue.
        final_callbacks: Called after the last node. Appending is atomic.
        helpers: The states of threads other than `home`, once for each node that they
            run (a nested loop may run another one). Guarded by `mutex`.
        quiet: Receives an item when a failed pass has no helpers left.
        deadline_ns: See `time_left`; belongs to the consumer of the owner's queue.
    """

    __slots__ = (
        "deadline_ns",
        "error",
        "final_callbacks",
        "has_error",
        "helpers",
        "is_complete",
        "is_done",
        "is_ended",
        "is_told",
        "is_torn",
        "mutex",
        "probe",
        "quiet",
        "task_id",
    )

    def __init__(
        self, sync: Sync, task_id: int, mutex: Lock, probe: Probe | None
    ) -> None:
        self.task_id = task_id
        self.mutex = mutex
        self.probe = probe
        self.error: BaseException | None = None
        self.has_error = sync.flag()
        self.is_complete = False
        self.is_torn = sync.flag()
        self.is_ended = False
        self.is_told = False
        self.is_done = False
        self.final_callbacks: list[Callable[[], object]] = []
        self.helpers: list[object] = []
        self.quiet: Mailbox[None] = sync.mailbox()
        self.deadline_ns: int | None = None

    def set_error(self, error: BaseException, node: Node | None) -> bool:
        """Make `error` the outcome of the pass, unless it has an outcome already.

        Any thread, without `mutex`.

        Returns:
            True if it was the first, and came before the pass was complete.
        """
        text = describe(error) if self.probe else ""  # user code: not under the mutex
        with self.mutex:
            is_first = not (self.has_error.value or self.is_complete)
            if is_first:
                self.error = error
                # Before it takes effect: an interrupt of the report is then handled
                # here.
                if self.probe:
                    self.probe.task_failed(
                        self.task_id, -1 if node is None else node.id, text
                    )
                self.has_error.value = True
        return is_first

    def claim_end(self) -> bool:
        """Claim the right to notify the owner that the pass has ended.

        Returns:
            True the first time, so that the owner is notified once: it leaves then, and
            a second wake-up would remain in its queue.
        """
        with self.mutex:
            is_first = not self.is_ended
            self.is_ended = True
        return is_first

    def complete(self) -> None:
        """Mark the pass as successful, unless it has failed (P1)."""
        with self.mutex:
            if self.has_error.value:
                return
            # Before it takes effect: an error in the report then fails the pass.
            if self.probe:
                self.probe.task_completed(self.task_id)
            self.is_complete = True

    def time_left(self, now_ns: int) -> float:
        """Return the seconds that a failed pass may still wait for its helpers.

        The first call starts the clock. The consumer of the owner's queue only.
        """
        if self.deadline_ns is None:
            self.deadline_ns = now_ns + QUIESCE_NS
        return max(0.0, (self.deadline_ns - now_ns) / 1e9)

    def begin_help(self, state: object) -> bool:
        """Register a thread other than `home` that is about to run a node.

        Args:
            state: That thread's state.

        Returns:
            False if the pass has failed: then the node must not start. Decided under
            the mutex, so that no node starts after `home` has found no helpers in a
            pass that has failed.
        """
        with self.mutex:
            if self.has_error.value:
                return False
            self.helpers.append(state)
        return True

    def end_help(self, state: object) -> None:
        """Mark the node that `begin_help` announced as done."""
        with self.mutex:
            if state in self.helpers:
                self.helpers.remove(state)
            is_quiet = not self.helpers and self.has_error.value
        if is_quiet:
            self.quiet.put(None)

    def forget_helper(self, state: object) -> None:
        """Remove a thread that runs no node of this pass any more, however it ended."""
        with self.mutex:
            self.helpers = [one for one in self.helpers if one is not state]
            is_quiet = not self.helpers and self.has_error.value
        if is_quiet:
            self.quiet.put(None)


def describe(error: BaseException) -> str:
    """Describe an error in one line, as traces keep it."""
    text = str(error).split("\n", 1)[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
