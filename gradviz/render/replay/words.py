"""What a replay says of an event, a task, a thread, a node: clean words, no colours."""

from collections.abc import Iterator
from typing import Final

from gradviz.analysis.choice import Choice
from gradviz.analysis.executions import definition
from gradviz.analysis.moment import (
    BusyStream,
    Countdown,
    OpenPass,
    QueuedTask,
    WorkingThread,
)
from gradviz.analysis.node_stages import NodeAt
from gradviz.analysis.replay import Replay
from gradviz.render.event_words import EventWords
from gradviz.render.text import (
    MAX_TITLE,
    clean,
    count,
    duration,
    operation,
    shorten,
    size,
)
from gradviz.trace.losses import losses_in_words
from gradviz.trace.probe import Push

#: What cannot be told without some kinds of events.
_NEEDED: Final = {
    "queues": ("task_pushed", "task_popped"),
    "workers": ("node_started", "node_completed"),
    "waiting nodes": ("gradient_buffered",),
}

#: Of nodes inside of each other so many are told.
MAX_NESTED: Final = 8

#: So many sentences about what a trace lacks are told.
_MAX_TOLD: Final = 4


class ReplayWords:
    """Puts what a replay shows into words.

    Args:
        replay: Whose events.
    """

    def __init__(self, replay: Replay) -> None:
        self._trace = replay.trace
        self._events = EventWords(replay.trace, replay.origin_ns)
        self.sentence = self._events.sentence

    def time(self, t_ns: int) -> str:
        """When, after the begin of the first pass."""
        return f"{self._events.time(t_ns)} ms"

    def node(self, node: int) -> str:
        """The name and the id of a node; of none, that it is a wake-up."""
        return self._events.node(node) if node >= 0 else "a wake-up"

    def short(self, node: int) -> str:
        """The operation of a node and its id, for where there is little room."""
        if node < 0:
            return self.node(node)
        return f"{clean_name(operation(definition(self._trace, node).name))} ({node})"

    def thread(self, thread: int) -> str:
        """The number and the name of a thread."""
        known = self._trace.threads.get(thread)
        return f"{thread} {clean_name(known.name)}" if known else str(thread)

    def queue(self, queue: int) -> str:
        """The number and the name of a queue."""
        known = self._trace.queues.get(queue)
        return f"{queue} {clean_name(known.name)}" if known else str(queue)

    def why(self, choice: Choice) -> str:
        """Why a task was the next to be popped."""
        one, other = choice.popped, choice.other
        if other is None:
            return "Nothing else lay in the queue."
        best = self.node(other.node)
        if choice.num_others > 1:
            best = f"the best of {choice.num_others:,} others, {best}"
        match choice.why:
            case "wake-up":
                return f"A wake-up goes before every node: before {best}."
            case "deeper":
                return (
                    f"Its pass is nested deeper, at depth {one.reentrant_depth}, than "
                    f"that of {best}: {other.reentrant_depth}."
                )
            case "made later" if one.sequence_nr < 0:
                comma = "," * (choice.num_others > 1)
                return (
                    f"An AccumulateGrad has the largest sequence_nr there is; that of "
                    f"{best}{comma} is {other.sequence_nr}."
                )
            case "made later":
                return (
                    f"The forward made it later, sequence_nr {one.sequence_nr}, than "
                    f"{best}: {other.sequence_nr}."
                )
            case "equal" if one.what == Push.WAKE_UP:
                return f"Of wake-ups none goes first: before {best}."
            case "equal":
                return (
                    f"Of equals, sequence_nr {sequence_nr(one)}, the heap had it on "
                    f"top: before {best}."
                )
            case _:
                return (
                    f"In PyTorch's order it would have been {best}: another thread "
                    f"pushed that too late to be seen, or the schedule is another one."
                )

    def worker(self, worker: WorkingThread, t_ns: int) -> str:
        """What a thread does, the innermost last."""
        doing = [
            f"runs {self.node(one.node)} of pass {one.task}, for "
            f"{duration(t_ns - one.started_ns)}"
            for one in worker.running[-MAX_NESTED:]
        ]
        if more := len(worker.running) - len(doing):
            doing.insert(0, f"runs {count(more, 'other node')}")
        if worker.asleep_on is not None:
            doing.append(f"sleeps on queue {self.queue(worker.asleep_on)}")
        return ", inside of which it ".join(doing) if doing else "is idle"

    def task(self, task: QueuedTask) -> str:
        """A task of a queue, and what it is compared by."""
        if task.node < 0:
            return self.node(task.node)
        depth = f", depth {task.reentrant_depth}" if task.reentrant_depth else ""
        return f"{self.node(task.node)} seq {sequence_nr(task)}{depth}"

    def countdown(self, one: Countdown) -> str:
        """What a node waits for, and what it has."""
        has = size(sum(gradient.size_bytes for gradient in one.gradients))
        by = ", ".join(
            self.node(producer) if producer >= 0 else "the caller"
            for producer in dict.fromkeys(each.producer for each in one.gradients)
        )
        total = one.remaining + len(one.gradients)
        waits = (
            f"waits for {one.remaining:,} of {count(total, 'gradient')}"
            if one.remaining
            else f"has all of {count(total, 'gradient')}"
            if total > 1
            else "has its gradient"
        )
        return f"{self.node(one.node)} {waits}; {has} from {by}"

    def stream(self, one: BusyStream) -> str:
        """What a stream has before it."""
        awaited = dict.fromkeys(wait.awaited for wait in one.waits)
        waits = [f"waits for {clean_name(other)}" for other in awaited]
        return ", ".join((f"{count(one.num_kernels, 'kernel')} to do", *waits))

    def open_pass(self, one: OpenPass) -> str:
        """How far a pass has come."""
        of = f" of {one.num_nodes:,}" if one.num_nodes >= 0 else ""
        inside = f" inside {one.parent}" if one.parent >= 0 else ""
        ended = "" if one.status == "unfinished" else f", {one.status}"
        return f"pass {one.task}{inside}: {one.num_started:,}{of} nodes started{ended}"

    def stage(self, one: NodeAt) -> str:
        """What has become of a node."""
        match one.stage:
            case "waiting" if not one.remaining:
                return "has all it waits for"
            case "waiting":
                return f"waits for {one.remaining:,} more"
            case "not reached":
                return "not reached yet"
            case "queued":
                return "in its queue"
            case _:
                return one.stage

    def missing(self) -> Iterator[str]:
        """What the trace does not have, and what that makes unsure."""
        losses, scope = self._trace.losses, self._trace.header.scope
        if not losses.is_complete:
            told = losses_in_words(losses)
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


def sequence_nr(task: QueuedTask) -> str:
    """Of which the larger runs first."""
    return "max" if task.sequence_nr < 0 else str(task.sequence_nr)


def clean_name(name: str) -> str:
    """A name without anything that acts, and not too long."""
    return shorten(clean(name), MAX_TITLE)
