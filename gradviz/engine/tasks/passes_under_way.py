"""The passes under way in an engine, which may refuse new ones."""

from gradviz.engine.graph.sync import Empty, Mailbox, Sync
from gradviz.engine.tasks.graph_task import GraphTask
from gradviz.errors import EngineError


class Passes:
    """The passes that have started and not returned.

    An engine may end its device threads only when no pass needs them: a thread that
    takes a shutdown during a pass leaves nobody to run the pass's next node.

    Note [Begin and stop without a lock]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    If a process forks while some thread holds a lock, the lock stays locked in the
    child forever, and every pass comes by here. So there is no lock. `begin` first
    makes its entry and then checks whether the engine was stopped; `stop` first marks
    it stopped and then looks for entries. Whatever the order, at least one sees the
    other: either the pass is refused, or it is waited for. The same holds for `forget`
    and `tell_idle` against `stop`.
    """

    def __init__(self, sync: Sync) -> None:
        self._sync = sync
        #: Task id -> pass. The dict adds and deletes each entry in one step.
        self._under_way: dict[int, GraphTask] = {}
        #: The process that the entries belong to: a forked child inherits its parent's.
        self._process_id = sync.process_id()
        self._is_stopped = sync.flag()
        self._idle: Mailbox[None] = sync.mailbox()
        #: ``forget(task_id, None)`` deletes an entry, if there is one. It is a C
        #: function called directly: an interrupt strikes before it or after it, never
        #: inside, and there is no Python function on whose first line it could strike.
        self.forget = self._under_way.pop

    def begin(self, graph_task: GraphTask) -> None:
        """Let a pass start; the caller must see to it that it is forgotten.

        Raises:
            EngineError: The engine was stopped. A pass nested in one under way may
                start all the same, or the outer one could not end.
        """
        self._forget_parent_process()
        self._under_way[graph_task.id] = graph_task
        if self._is_stopped.value and graph_task.parent is None:
            raise EngineError("the engine was stopped; make a new Engine")

    def tell_idle(self) -> None:
        """Wake up `stop`, if it waits and the last pass has been forgotten."""
        if self._is_stopped.value and not self._under_way:
            self._idle.put(None)

    def stop(self, deadline_ns: int) -> bool:
        """Refuse new passes, and wait until `deadline_ns` for those under way.

        Returns:
            True if all have ended.
        """
        self._is_stopped.value = True
        while self.under_way():
            left = max(0.0, (deadline_ns - self._sync.now_ns()) / 1e9)
            try:
                self._idle.get(timeout=left)
            except Empty:
                return not self.under_way()
        return True

    @property
    def are_over(self) -> bool:
        """Return whether the engine was stopped and no pass needs its threads."""
        return self._is_stopped.value and not self.under_way()

    def under_way(self) -> tuple[GraphTask, ...]:
        """Return the passes under way, oldest first; takes no lock."""
        self._forget_parent_process()
        # Copying a dict's values is one step, whatever other threads do.
        return tuple(self._under_way.values())

    def _forget_parent_process(self) -> None:
        """Drop the passes of threads that a fork did not copy."""
        process_id = self._sync.process_id()
        if process_id != self._process_id:
            self._process_id = process_id
            self._under_way.clear()
