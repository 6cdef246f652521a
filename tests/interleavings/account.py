"""Account of one pass, and a check that it adds up."""

from collections import Counter
from collections.abc import Iterator, Sequence

from gradviz.engine.graph.node import Node
from gradviz.engine.tasks.graph_task import GraphTask
from gradviz.engine.tasks.outcome import QUIESCE_NS
from gradviz.errors import EngineError
from tests.interleavings.workload import reachable


class Account:
    """The account of one pass, kept by its nodes and its caller.

    Args:
        graph_task: The engine's own record.
        thread: Where it began.

    Attributes:
        thread: As given.
        root: With which node it began; None until the call has ended.
        gradient: What the root was given.
        ended: Nodes whose work is done.
        violations: Rules that were broken while it went on.
    """

    def __init__(self, graph_task: GraphTask, thread: int) -> None:
        self.thread = thread
        self.root: Node | None = None
        self.gradient = 0.0
        self.ended: set[Node] = set()
        self.violations: list[str] = []
        self._graph_task = graph_task
        self._started: Counter[Node] = Counter()
        self._running: list[Node] = []
        self._begun_ns = 0
        self._error: type[BaseException] | None = None

    def start(self, node: Node, producers: Sequence[Node], now_ns: int) -> None:
        """A node begins to work.

        Args:
            node: Which.
            producers: Who may send it gradients, in this pass or another one.
            now_ns: The time.
        """
        task = self._graph_task
        if self.root is not None:
            self._complain(f"{node} of {task} started after the call had ended")
        if self._started[node]:
            self._complain(f"{node} of {task} ran twice")
        if not self._started:
            self._begun_ns = now_ns
        self._started[node] += 1
        self._running.append(node)
        root = next(iter(self._started))
        for producer in producers:
            is_in_pass = producer is root or producer in task.dependencies
            if (
                is_in_pass
                and task.should_execute(producer)
                and producer not in self.ended
            ):
                self._complain(f"{node} of {task} started before {producer} had ended")

    def end(self, node: Node, *, is_done: bool) -> None:
        """A node has worked, or raised."""
        self._running.remove(node)
        if is_done:
            self.ended.add(node)

    def close(
        self,
        root: Node,
        gradient: float,
        error: type[BaseException] | None,
        now_ns: int,
    ) -> None:
        """The call has returned, or raised an error of this kind."""
        self.root, self.gradient, self._error = root, gradient, error
        if self._running and now_ns - self._begun_ns < QUIESCE_NS:
            self._complain(f"{self._running} of {self._graph_task} still run")

    def check(self) -> Iterator[str]:
        """Yield errors of the account once everything has come to rest."""
        yield from self.violations
        if self._error in (KeyboardInterrupt, EngineError):
            return  # the pass was given up, and counts no more
        task = self._graph_task
        if task.outstanding_tasks or len(task.outcome.helpers):
            yield f"{task} never counted to 0"
        if self._error is not None or self.root is None:
            return
        for node in reachable(self.root):
            info = task.exec_info.get(node)
            should_run = not task.exec_info or (info is not None and info.is_needed)
            if (node in self.ended) is not should_run:
                yield f"{node} of {task} {'did not run' if should_run else 'ran'}"

    def _complain(self, violation: str) -> None:
        self.violations.append(violation)
