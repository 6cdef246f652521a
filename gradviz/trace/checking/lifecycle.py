"""The lifecycle of a backward pass: the legal order of events, as tables.

Everything about that lives here; this module does not know who recorded a trace, or
why an engine does what it does.

Theory of operation
~~~~~~~~~~~~~~~~~~~
Two kinds of things have a lifecycle. Each event changes the state of one thing of
either kind, or leaves it alone:

* A *task* (one call of ``backward``) begins, has its dependencies counted, then
  completes or fails, and finally its caller leaves the call. A failed task is not
  quiet at once: nodes that were running on other threads go on and hand over their
  gradients, and tasks left in queues are popped and skipped later. But once the
  caller has left, nothing starts.
* A *node in a task* receives gradients, is pushed to a queue when the last one has
  arrived, is popped from that queue, and is then started or skipped; a started node
  completes or fails. Each of these happens at most once per task. A completed task
  leaves no node behind; a failed one may leave any, in any state.

`rules` says for each kind of event in which states it may happen and which state
follows; an event with a task and a node must obey the rules of both.

Besides, a *thread* does one thing inside another: a node runs inside the loop of a
worker, a reentrant call inside a node, a nested node inside that; a module is called
inside another one. So openings and endings on a thread match like parentheses, except
for those that an interrupt leaves open.

Note [What an interrupt may leave]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
An interrupt that strikes the engine's own code fails the task. It may strike a report
too: either before the report is kept, which is then missing, or right after it, and
then the reported step is not done. So

* everything that a failed task began may stay open: its nodes, its reentrant calls;
* so may everything inside a failing node, a failed task, or a failing call of a
  module or an optimizer: a call whose task has completed, struck as it was left, or
  one struck by a second interrupt;
* the call of a module or an optimizer may stay open anywhere, because it belongs to no
  task whose failure would show the interrupt;
* a task may fail after it has completed or failed, because the interrupt may strike
  between that report and the moment it takes effect.

Nothing else is tolerated: no task is left without an outcome, and nothing ends that has
not begun.

Things on a device have states of their own: see `device_lifecycle`.

A trace with losses, or with some events left out on purpose, is checked as far as
possible: an event may then come too early, since its predecessors can be among the
losses, but never too late.
"""

import enum
import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from gradviz.trace.checking.device_lifecycle import DeviceLifecycle, doubtful_rows
from gradviz.trace.checking.textbook import by_the_book
from gradviz.trace.events import (
    AnyEvent,
    Event,
    ForwardBegun,
    ForwardEnded,
    GradientBuffered,
    NodeFailed,
    OptimizerBegun,
    OptimizerEnded,
    ReentrantLeft,
    TaskBegun,
    TaskCompleted,
    TaskPopped,
    TaskPushed,
    ThreadExited,
    ThreadStarted,
    kind_name,
)
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Table
from gradviz.trace.probe import Push, Role
from gradviz.trace.rules import RULES, NodeState, TaskState, Transition

#: Maximum number of violations of a trace told; all are counted.
MAX_VIOLATIONS: Final = 100

#: Maximum number of events that the machine checks, which takes it some seconds,
#: besides those of passes by the book.
MAX_SEEN: Final = 500_000

#: To look at so few takes less than to find those that need no look.
_FEW: Final = 2_000

_MAX_LISTED: Final = 8


class Violation(NamedTuple):
    """An event that may not be where it is.

    Attributes:
        event: The event.
        reason: Description of what is wrong with it, a sentence without a full stop.
    """

    event: AnyEvent
    reason: str

    def __str__(self) -> str:
        return f"event {self.event.seq}, {kind_name(type(self.event))}: {self.reason}"


class Judgment(NamedTuple):
    """Violations of the event order in a trace.

    Attributes:
        violations: The first `MAX_VIOLATIONS`, in the order of the trace.
        num_violations: Number of all violations.
        num_unseen: Number of events not checked, because too many belong to passes
            that break the rules.
    """

    violations: tuple[Violation, ...]
    num_violations: int
    num_unseen: int


def judge(trace: Trace) -> Judgment:
    """Look for events of `trace` that break a rule."""
    tables = _to_be_seen(trace)
    num_events = sum(table.num_rows for table in tables.values())
    checker = _Checker(
        is_complete=trace.losses.is_complete and trace.header.scope.has_whole_passes,
        most=MAX_VIOLATIONS,
    )
    for event in itertools.islice(trace.events_of(tables), MAX_SEEN):
        checker.check(event)
    return Judgment(
        tuple(checker.violations),
        checker.num_violations,
        max(num_events - MAX_SEEN, 0),
    )


def check_events(
    events: Iterable[AnyEvent], *, is_complete: bool = True
) -> tuple[Violation, ...]:
    """The first of `events` that break a rule, in their order.

    Args:
        events: All events of a recording.
        is_complete: True if none is missing.
    """
    checker = _Checker(is_complete=is_complete)
    for event in events:
        checker.check(event)
    return tuple(checker.violations)


def _to_be_seen(trace: Trace) -> Mapping[str, Table]:
    """Return the events that the machine has to check: see `textbook`."""
    tables = {name: trace.columns[name] for name in _LOOKED_AT}
    if trace.num_events < _FEW:
        return tables
    settled = by_the_book(trace.columns)
    for name in (kind_name(kind) for kind, rule in RULES.items() if rule.node):
        table = tables[name]
        is_settled = np.isin(table.narrow("task"), settled)
        tables[name] = table.at(~is_settled | (table.narrow("node") < 0))
    return {**tables, **doubtful_rows(trace.columns)}


class _Nodes:
    """The states of the nodes of one task, and of its queues.

    Made with the first node: a trace may have very many tasks without one.
    """

    def __init__(self) -> None:
        self.states: dict[int, NodeState] = {}
        self.unfinished: set[int] = set()
        self.awaited: dict[int, int] = {}
        self.queues: dict[int, int] = {}
        self.wake_ups: Counter[int] = Counter()


class _Opening(NamedTuple):
    """Something that a thread is inside of; `of` is a node, a call, or the role."""

    kind: type[Event]
    task: int
    of: int


#: Events that begin a call that belongs to no task.
_CALLS: Final = (ForwardBegun, OptimizerBegun)

#: Events that tell where the caller of a task is.
_CALLERS: Final = (TaskBegun, ReentrantLeft, ThreadExited)

#: The kinds that the machine looks at.
_LOOKED_AT: Final = sorted(kind_name(kind) for kind, rule in RULES.items() if any(rule))


class _Checker:
    """The states of everything, moved on by one event after the other."""

    def __init__(self, *, is_complete: bool, most: int | None = None) -> None:
        self.violations: list[Violation] = []
        self.num_violations = 0
        self._most = most
        self._is_complete = is_complete
        self._states: dict[int, TaskState] = {}
        self._nodes: defaultdict[int, _Nodes] = defaultdict(_Nodes)
        self._inside: defaultdict[int, list[_Opening]] = defaultdict(list)
        self._called: dict[int, int] = {}  # thread -> the task it waits for
        self._devices = DeviceLifecycle()

    def check(self, event: AnyEvent) -> None:
        """Judge `event`, and let it happen."""
        rule = RULES[type(event)]
        if rule.things:
            for reason in self._devices.check(event):
                self._report(event, reason)
            return
        if isinstance(event, TaskPushed | TaskPopped) and event.node < 0:
            self._check_wake_up(event)
            return
        if rule.task is not None:
            self._check_task(event, rule.task)
        if rule.node is not None and event.node >= 0:
            self._check_node(event, rule.node)
        if self._is_complete:
            self._check_nesting(event)
        if isinstance(event, _CALLERS):
            self._check_calls(event)

    def _check_task(self, event: AnyEvent, step: Transition) -> None:
        state = self._state(event.task)
        if not self._allows(step, state):
            self._report(event, f"its task is {state.name.lower()}")
        if isinstance(event, TaskCompleted) and self._is_complete:
            nodes = self._nodes.get(event.task)
            if nodes is not None and nodes.unfinished:
                self._report(event, f"it leaves behind {_listed(nodes.unfinished)}")
        if isinstance(step.then, TaskState):
            self._states[event.task] = step.then

    def _check_node(self, event: AnyEvent, step: Transition) -> None:
        nodes, node = self._nodes[event.task], event.node
        state = nodes.states.get(node, NodeState.WAITING)
        if not self._allows(step, state):
            self._report(event, f"its node is {state.name.lower()}")
        if isinstance(step.then, NodeState):
            nodes.states[node] = step.then
        if step.then is NodeState.ENDED:
            nodes.unfinished.discard(node)
        else:
            nodes.unfinished.add(node)
        if self._is_complete:
            self._check_hand_over(event, nodes)

    def _check_hand_over(self, event: AnyEvent, nodes: _Nodes) -> None:
        """A node is pushed with its last gradient, and leaves the queue it entered."""
        match event:
            case GradientBuffered():
                nodes.awaited[event.node] = event.remaining
            case TaskPushed():
                nodes.queues[event.node] = event.queue
                awaited = nodes.awaited.get(event.node)
                if event.what is Push.NODE and awaited is None:
                    self._report(event, "its node has got no gradient")
                elif event.what is Push.NODE and awaited:
                    self._report(event, f"its node awaits {awaited} more gradients")
            case TaskPopped():
                entered = nodes.queues.get(event.node, event.queue)
                if entered != event.queue:
                    self._report(event, f"its node was pushed to queue {entered}")
            case _:
                pass

    def _check_wake_up(self, event: TaskPushed | TaskPopped) -> None:
        wake_ups = self._nodes[event.task].wake_ups
        if isinstance(event, TaskPushed):
            wake_ups[event.queue] += 1
            return
        wake_ups[event.queue] -= 1
        if wake_ups[event.queue] < 0 and self._is_complete:
            self._report(event, f"no wake-up was pushed to queue {event.queue}")

    def _check_nesting(self, event: AnyEvent) -> None:
        kind = type(event)
        inside = self._inside[event.thread]
        rule = RULES[kind]
        if rule.opens:
            inside.append(_Opening(kind, event.task, _of(event)))
        elif rule.ends is not None:
            opening = _Opening(rule.ends, event.task, _of(event))
            if inside and inside[-1] == opening:
                inside.pop()
            elif opening in inside:
                self._end(event, opening, inside)
            elif kind is not ThreadExited:  # which may be older than the recording
                self._report(event, "its thread never began that")

    def _end(self, event: AnyEvent, opening: _Opening, inside: list[_Opening]) -> None:
        """End `opening` with the openings inside of it, if that is legal."""
        place = len(inside) - 1 - inside[::-1].index(opening)
        open_inside = inside[place + 1 :]
        del inside[place:]
        if _raised(event) or self._is_failed(opening.task):
            return  # See Note [What an interrupt may leave].
        open_inside = [one for one in open_inside if one.kind not in _CALLS]
        wrong = list(
            itertools.takewhile(lambda one: not self._is_failed(one.task), open_inside)
        )
        if wrong:
            last = wrong[-1]
            self._report(
                event,
                f"its thread is still inside of what {kind_name(last.kind)} "
                f"began for node {last.of} of task {last.task}",
            )

    def _check_calls(self, event: AnyEvent) -> None:
        match event:
            case TaskBegun(reentrant_depth=0):
                self._called[event.thread] = event.task
            case ReentrantLeft():
                self._leave(event, event.task)
            case ThreadExited(role=Role.CALLER) if event.thread in self._called:
                self._leave(event, self._called.pop(event.thread))
            case _:
                pass

    def _leave(self, event: AnyEvent, number: int) -> None:
        """The caller of a task goes on: from now on nothing of it starts."""
        state = self._state(number)
        has_outcome = state in (TaskState.COMPLETED, TaskState.FAILED)
        if self._is_complete and not has_outcome:
            self._report(
                event, f"task {number} is left while it is {state.name.lower()}"
            )
        self._states[number] = TaskState.LEFT

    def _state(self, number: int) -> TaskState:
        return self._states.get(number, TaskState.UNKNOWN)

    def _allows(self, step: Transition, state: enum.IntEnum) -> bool:
        if state in step.states:
            return True
        return not self._is_complete and state < min(step.states)

    def _is_failed(self, number: int) -> bool:
        return self._state(number) in (TaskState.FAILED, TaskState.LEFT)

    def _report(self, event: AnyEvent, reason: str) -> None:
        self.num_violations += 1
        if self._most is None or len(self.violations) < self._most:
            self.violations.append(Violation(event, reason))


def _of(event: Event) -> int:
    """Return a number unique among the openings of one kind and task."""
    match event:
        case ThreadStarted() | ThreadExited():
            return event.role
        case ForwardBegun() | ForwardEnded() | OptimizerBegun() | OptimizerEnded():
            return event.call
        case _:
            return event.node


def _raised(event: Event) -> bool:
    match event:
        case NodeFailed():
            return True
        case ForwardEnded() | OptimizerEnded():
            return event.failed
        case _:
            return False


def _listed(nodes: set[int]) -> str:
    more = len(nodes) - _MAX_LISTED
    first = heapq.nsmallest(_MAX_LISTED, nodes)
    return f"nodes {first}" + (f" and {more} more" if more > 0 else "")
