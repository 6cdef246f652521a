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
        #: Guarded by `_lock`; see `under_way` for reading it without.
        self._under_way: dict[int, GraphTask] = {}
        self._is_stopped = False
        self._idle: Mailbox[None] = sync.mailbox()

    def begin(self, graph_task: GraphTask) -> None:
        """Let a pass begin.

        Raises:
            EngineError: The engine was stopped. A pass inside another one that is
                still under way may begin all the same, or that one could not end.
        """
        with self._lock:
            if self._is_stopped and graph_task.parent is None:
                raise EngineError("the engine was stopped; make a new Engine")
            self._under_way[graph_task.id] = graph_task

    def end(self, graph_task: GraphTask) -> None:
        """A pass has returned or raised; a pass that never began is no error."""
        with self._lock:
            self._under_way.pop(graph_task.id, None)
            is_idle = self._is_stopped and not self._under_way
        if is_idle:
            self._idle.put(None)

    def stop(self, deadline_ns: int) -> bool:
        """Refuse new passes, and wait for those under way until `deadline_ns`.

        Returns:
            Whether none is under way any more.
        """
        with self._lock:
            self._is_stopped = True
            if not self._under_way:
                return True
        try:
            self._idle.get(timeout=max(0.0, (deadline_ns - self._sync.now_ns()) / 1e9))
        except Empty:
            return False
        return True

    def under_way(self) -> tuple[GraphTask, ...]:
        """Those that have begun and not returned, oldest first; takes no lock.

        For looking at an engine that may hang: copying a dict's values is one step.
        """
        return tuple(self._under_way.values())
