"""Which passes are under way in an engine, and whether it takes new ones."""

from gradviz.engine.graph_task import GraphTask
from gradviz.engine.sync import Empty, Mailbox, Sync
from gradviz.errors import EngineError


class Passes:
    """The passes that have begun and not returned.

    An engine may end its device threads only when no pass needs them: a shutdown that
    a thread takes while a pass is under way leaves that pass without anyone to run
    its next node. So whether a pass may begin, and whether one is under way, is
    decided under one lock.
    """

    def __init__(self, sync: Sync) -> None:
        self._sync = sync
        self._lock = sync.lock()
        #: Task id -> pass. Entries are made under `_lock` and deleted without it.
        self._under_way: dict[int, GraphTask] = {}
        self._is_stopped = sync.flag()
        self._idle: Mailbox[None] = sync.mailbox()
        #: ``forget(task_id, None)`` deletes an entry, if there is one. A C function
        #: called directly: an interrupt strikes before it or after it, never inside,
        #: and there is no Python function on whose first line it could strike.
        self.forget = self._under_way.pop

    def begin(self, graph_task: GraphTask) -> None:
        """Let a pass begin; the caller sees to it that it is forgotten.

        Raises:
            EngineError: The engine was stopped. A pass inside another one that is
                still under way may begin all the same, or that one could not end.
        """
        with self._lock:
            if self._is_stopped.value and graph_task.parent is None:
                raise EngineError("the engine was stopped; make a new Engine")
            self._under_way[graph_task.id] = graph_task

    def tell_idle(self) -> None:
        """Wake up `stop`, if it waits and the last pass has been forgotten.

        Without the lock: whoever forgets does that first and looks at `_is_stopped`
        then; `stop` does it the other way round, so at least one sees the other.
        """
        if self._is_stopped.value and not self._under_way:
            self._idle.put(None)

    def stop(self, deadline_ns: int) -> bool:
        """Refuse new passes, and wait for those under way until `deadline_ns`.

        Returns:
            Whether none is under way any more.
        """
        with self._lock:
            self._is_stopped.value = True
        while self.under_way():
            left = max(0.0, (deadline_ns - self._sync.now_ns()) / 1e9)
            try:
                self._idle.get(timeout=left)
            except Empty:
                return not self.under_way()
        return True

    def under_way(self) -> tuple[GraphTask, ...]:
        """Those that have begun and not returned, oldest first; takes no lock."""
        # Copying a dict's values is one step, whatever other threads do.
        return tuple(self._under_way.values())
