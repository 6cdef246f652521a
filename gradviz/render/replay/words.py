"""Words of a replay for an event, a task, a thread, a node: clean, no colors."""

from collections.abc import Iterator
from typing import Final

from gradviz.analysis.moments.choice import Choice
from gradviz.analysis.moments.event_replay import Replay
from gradviz.analysis.moments.moment import (
    BusyStream,
    Countdown,
    OpenPass,
    QueuedTask,
    WorkingThread,
)
from gradviz.analysis.tables.executions import NodeNumbers, definition
from gradviz.render.words.event_words import EventWords
from gradviz.render.words.moment_text import (
    choice_text,
    countdown_text,
    idle_text,
    sequence_nr_text,
)
from gradviz.render.words.text import (
    MAX_TITLE,
    clean,
    count,
    duration,
    operation,
    shorten,
)

#: Facts that cannot be told without some kinds of events.
_NEEDED: Final = {
    "queues": ("task_pushed", "task_popped"),
    "workers": ("node_started", "node_completed"),
    "waiting nodes": ("gradient_buffered",),
}

#: Of nodes inside of each other so many are told.
MAX_NESTED: Final = 8

#: Maximum number of sentences about what a trace lacks.
_MAX_TOLD: Final = 4


class ReplayWords:
    """Words for the contents of a replay.

    Args:
        replay: Replay that the events are of.
    """

    def __init__(self, replay: Replay) -> None:
        self._trace = replay.trace
        numbers = NodeNumbers(replay.trace)
        self._events = EventWords(replay.trace, replay.origin_ns, numbers)
        self.sentence = self._events.sentence
        self.pass_of = self._events.task

    def time(self, t_ns: int) -> str:
        """Return a time since the start of the first pass."""
        return f"{self._events.time(t_ns)} ms"

    def node(self, node: int, task: int) -> str:
        """Number in a pass, name and id of a node; of none, that it is a wake-up."""
        return self._events.in_pass(task).node(node) if node >= 0 else "a wake-up"

    def short(self, node: int, task: int) -> str:
        """Number in a pass and operation of a node, for where there is little room."""
        if node < 0:
            return self.node(node, task)
        name = clean_name(operation(definition(self._trace, node).name))
        number = self._events.in_pass(task).number(node)
        return f"{number}{name}" if number else f"{name} ({node})"

    def thread(self, thread: int) -> str:
        """The number and the name of a thread."""
        known = self._trace.threads.get(thread)
        return f"{thread} {clean_name(known.name)}" if known else str(thread)

    def queue(self, queue: int) -> str:
        """The number and the name of a queue."""
        known = self._trace.queues.get(queue)
        return f"{queue} {clean_name(known.name)}" if known else str(queue)

    def why(self, choice: Choice) -> str:
        """Return why a task was the next to be popped."""
        other = choice.other
        named = "" if other is None else self.node(other.node, other.task)
        return choice_text(choice, named)

    def worker(self, worker: WorkingThread, t_ns: int) -> str:
        """Return the activities of a thread, the innermost last."""
        doing = [
            f"runs {self.node(one.node, one.task)} of pass {self.pass_of(one.task)}, "
            f"for {duration(t_ns - one.started_ns)}"
            for one in worker.running[-MAX_NESTED:]
        ]
        if more := len(worker.running) - len(doing):
            doing.insert(0, f"runs {count(more, 'other node')}")
        if worker.asleep_on is not None:
            doing.append(idle_text(self.queue(worker.asleep_on)))
        return ", inside of which it ".join(doing) if doing else f"is {idle_text(None)}"

    def task(self, task: QueuedTask) -> str:
        """Return a task of a queue, and its sort key."""
        if task.node < 0:
            return self.node(task.node, task.task)
        depth = f", depth {task.reentrant_depth}" if task.reentrant_depth else ""
        return f"{self.node(task.node, task.task)} seq {sequence_nr_text(task)}{depth}"

    def countdown(self, one: Countdown) -> str:
        """Return the gradients that a node waits for, and has."""
        givers = ", ".join(
            self.node(producer, one.task) if producer >= 0 else "the caller"
            for producer in dict.fromkeys(each.producer for each in one.gradients)
        )
        return f"{self.node(one.node, one.task)} {countdown_text(one, givers)}"

    def stream(self, one: BusyStream) -> str:
        """Return the pending work of a stream."""
        awaited = dict.fromkeys(wait.awaited for wait in one.waits)
        waits = [f"waits for {clean_name(other)}" for other in awaited]
        return ", ".join((f"{count(one.num_kernels, 'kernel')} to do", *waits))

    def open_pass(self, one: OpenPass) -> str:
        """Return the progress of a pass."""
        of = f" of {one.num_nodes:,}" if one.num_nodes >= 0 else ""
        inside = f" inside {self.pass_of(one.parent)}" if one.parent >= 0 else ""
        ended = "" if one.status == "unfinished" else f", {one.status}"
        return (
            f"pass {self.pass_of(one.task)}{inside}: "
            f"{one.num_started:,}{of} nodes started{ended}"
        )

    def missing(self) -> Iterator[str]:
        """Yield the losses of the trace, and their consequences."""
        losses, scope = self._trace.losses, self._trace.header.scope
        if not losses.is_complete:
            told = losses.in_words()
            more = f", and {len(told) - _MAX_TOLD} more" * (len(told) > _MAX_TOLD)
            yield (
                f"The trace is incomplete: {clean('; '.join(told[:_MAX_TOLD]))}{more}. "
                f"What is shown may lack what was lost."
            )
        for what, kinds in _NEEDED.items():
            if not {*scope.left_out}.isdisjoint(kinds):
                yield f"Without events {' and '.join(kinds)} no {what} can be told."
        if scope.only:
            names = shorten(clean(", ".join(scope.only)), MAX_TITLE)
            yield f"Only events of the nodes {names} were recorded."


def clean_name(name: str) -> str:
    """A name without anything that acts, and not too long."""
    return shorten(clean(name), MAX_TITLE)
