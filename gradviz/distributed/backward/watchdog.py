"""Reports on a pass that does not end."""

import warnings
from collections.abc import Mapping
from typing import Final

from gradviz.distributed.backward.context import DistAutogradContext
from gradviz.distributed.backward.distributed_task import DistGraphTask
from gradviz.distributed.backward.others import Others
from gradviz.distributed.messaging.ids import worker_of
from gradviz.distributed.messaging.waits import Waits, in_flight
from gradviz.engine.graph.sync import Sync

#: After how many seconds a pass that has not ended says what it waits for.
WATCH_SECONDS: Final = 30.0


class DistWatchdog:
    """Waits for the passes that begin on one worker.

    Args:
        sync: The seam.
        others: The other workers.
    """

    def __init__(self, sync: Sync, others: Others) -> None:
        self._sync = sync
        self._others = others

    def is_over(
        self,
        context: DistAutogradContext,
        graph_task: DistGraphTask,
        timeout: float | None,
    ) -> bool:
        """Wait for a pass, and report its waits from time to time.

        Returns:
            True if it has ended within `timeout` seconds; None is forever.

        Raises:
            RuntimeError: Gradients, or an answer to them, were under way from one look
                to the next.
        """
        until_ns = None if timeout is None else self._sync.now_ns() + int(timeout * 1e9)
        said, before = "", dict[int, str]()
        while True:
            left = WATCH_SECONDS
            if until_ns is not None:
                left = min(left, (until_ns - self._sync.now_ns()) / 1e9)
            if graph_task.result.settled(max(left, 0.0)):
                return True
            if until_ns is not None and self._sync.now_ns() >= until_ns:
                return False
            own, others = self._look(context, graph_task)
            now = in_flight({worker_of(graph_task.pass_id): own, **others})
            if lost := [
                words for what, words in now.items() if before.get(what) == words
            ]:
                raise RuntimeError(f"lost on their way: {', '.join(lost)}")
            waits, before = _in_words(own, others), now
            if waits and waits != said:
                warnings.warn(f"a distributed backward goes on{waits}", stacklevel=5)
            said = waits

    def waits(self, context: DistAutogradContext, graph_task: DistGraphTask) -> str:
        """Describe what a pass started here waits for, on all workers."""
        return _in_words(*self._look(context, graph_task))

    def _look(
        self, context: DistAutogradContext, graph_task: DistGraphTask
    ) -> tuple[Waits, Mapping[int, Waits]]:
        """Return what it waits for here, and elsewhere."""
        own = context.waits(graph_task)
        pass_id = graph_task.pass_id
        return own, self._others.waits_elsewhere(context.context_id, pass_id)


def _in_words(own: Waits, others: Mapping[int, Waits]) -> str:
    words = f"; no gradients came for {own.in_words()}" if own.unfed else ""
    for node, waits in others.items():
        if sends := waits.in_words():
            words += f"; node {node} waits for those of {sends}"
    return words
