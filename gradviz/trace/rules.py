"""The rules of the lifecycle: of each kind of event when it may happen, in one table.

What the states mean is told in `lifecycle`, which applies the rules to an event after
the other; `textbook` does so to columns.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from gradviz.trace.events import (
    KINDS,
    ArrayAccessed,
    BufferFreed,
    CallbackRun,
    CaptureTaken,
    ClockCompared,
    CollectiveBegan,
    CollectiveEnded,
    DependenciesCounted,
    DeviceSynchronized,
    Event,
    EventRecorded,
    EventSynchronized,
    ForwardBegun,
    ForwardEnded,
    GradientAccumulated,
    GradientBucketed,
    GradientBuffered,
    GradientCut,
    GradientMeasured,
    GraphKept,
    HandedOver,
    HandoversHeard,
    HookCalled,
    HookReturned,
    HostAccessed,
    KernelLaunched,
    KernelRan,
    LeafStreamSynced,
    Mark,
    MemoryAllocated,
    MemoryFreed,
    MemoryShared,
    MessageReceived,
    MessageSent,
    NodeCompleted,
    NodeCreated,
    NodeFailed,
    NodeSkipped,
    NodeStarted,
    NotFinite,
    OptimizerBegun,
    OptimizerEnded,
    ParameterHeld,
    PoolThreadSpawned,
    ProgramThreadBegun,
    ProgramThreadEntered,
    ProgramThreadLeft,
    QueueWaited,
    ReentrantEntered,
    ReentrantLeft,
    RequiresGradSet,
    SavedElsewhere,
    StackTaken,
    StepBegun,
    StreamNamed,
    StreamSynchronized,
    StreamWaited,
    TakenOver,
    TaskBegun,
    TaskCompleted,
    TaskFailed,
    TaskPopped,
    TaskPushed,
    TensorChanged,
    TensorSaved,
    ThreadExited,
    ThreadStarted,
    Unexplained,
    WorkerBegan,
    WorkerEnded,
)


class TaskState(enum.IntEnum):
    """Progress of a task."""

    UNKNOWN = 0
    BEGUN = 1
    COUNTED = 2
    COMPLETED = 3
    FAILED = 4
    LEFT = 5


class NodeState(enum.IntEnum):
    """Progress of a node in one task."""

    WAITING = 0
    QUEUED = 1
    POPPED = 2
    RUNNING = 3
    ENDED = 4


class LifeStage(enum.IntEnum):
    """Role of an event in the life of a thing on a device."""

    BEGINNING = 0
    USE = 1
    END = 2


class Transition(NamedTuple):
    """Condition and effect of an event on a task or a node.

    Attributes:
        states: The states in which it may happen.
        then: The state that follows, None if it stays.
    """

    states: frozenset[enum.IntEnum]
    then: enum.IntEnum | None = None


class Rule(NamedTuple):
    """Conditions that a kind of event sets.

    Attributes:
        task: Transition of its task, None for none.
        node: Transition of its node in that task, None for none.
        things: The fields that name a thing on a device, and its stage.
        opens: True if its thread is inside of something from then on.
        ends: The kind that opened what its thread now leaves.
    """

    task: Transition | None = None
    node: Transition | None = None
    things: Mapping[str, LifeStage] = MappingProxyType({})
    opens: bool = False
    ends: type[Event] | None = None


def _in(*states: enum.IntEnum, then: enum.IntEnum | None = None) -> Transition:
    return Transition(frozenset(states), then)


_T: Final = TaskState
_N: Final = NodeState

#: A running node outlives the failure of its task, and even, if it hangs for long, its
#: caller's patience.
_UNDER_WAY: Final = _in(_T.COUNTED, _T.FAILED, _T.LEFT)

#: Something that a node does.
_DURING: Final = Rule(_UNDER_WAY, _in(_N.RUNNING))

#: May happen whenever it does.
_ANY_TIME: Final = Rule()

_BEGINS: Final = LifeStage.BEGINNING
_USED: Final = LifeStage.USE
_ENDS: Final = LifeStage.END

#: The rule of each kind of event.
RULES: Final[Mapping[type[Event], Rule]] = {
    NodeCreated: _ANY_TIME,
    TensorSaved: _ANY_TIME,
    StackTaken: _ANY_TIME,
    SavedElsewhere: _ANY_TIME,
    TaskBegun: Rule(_in(_T.UNKNOWN, then=_T.BEGUN)),
    DependenciesCounted: Rule(_in(_T.BEGUN, then=_T.COUNTED)),
    TaskCompleted: Rule(_in(_T.COUNTED, then=_T.COMPLETED)),
    # After an outcome: see Note [What an interrupt may leave].
    TaskFailed: Rule(
        _in(_T.BEGUN, _T.COUNTED, _T.COMPLETED, _T.FAILED, then=_T.FAILED)
    ),
    CallbackRun: Rule(_in(_T.COUNTED)),
    CaptureTaken: _DURING,
    TaskPushed: Rule(_UNDER_WAY, _in(_N.WAITING, then=_N.QUEUED)),
    TaskPopped: Rule(_UNDER_WAY, _in(_N.QUEUED, then=_N.POPPED)),
    QueueWaited: _ANY_TIME,
    NodeStarted: Rule(
        _in(_T.COUNTED, _T.FAILED), _in(_N.POPPED, then=_N.RUNNING), opens=True
    ),
    NodeCompleted: Rule(_UNDER_WAY, _in(_N.RUNNING, then=_N.ENDED), ends=NodeStarted),
    NodeFailed: Rule(_UNDER_WAY, _in(_N.RUNNING, then=_N.ENDED), ends=NodeStarted),
    NodeSkipped: Rule(_UNDER_WAY, _in(_N.POPPED, then=_N.ENDED)),
    HookCalled: _DURING,
    HookReturned: _DURING,
    Unexplained: _ANY_TIME,
    # In the forward no pass goes on. In a pass that is watched from outside, the check
    # of a node runs after the time at which the node is seen to end.
    NotFinite: _ANY_TIME,
    GradientBuffered: Rule(_UNDER_WAY, _in(_N.WAITING)),
    GradientAccumulated: _DURING,
    BufferFreed: _DURING,
    MemoryAllocated: Rule(things={"memory": _BEGINS}),
    MemoryShared: Rule(things={"memory": _USED}),
    MemoryFreed: Rule(things={"memory": _ENDS}),
    StreamNamed: _ANY_TIME,
    EventRecorded: Rule(things={"event": _BEGINS}),
    StreamWaited: Rule(things={"event": _USED}),
    LeafStreamSynced: Rule(things={"event": _USED}),
    EventSynchronized: Rule(things={"event": _USED}),
    StreamSynchronized: _ANY_TIME,
    DeviceSynchronized: _ANY_TIME,
    KernelLaunched: Rule(things={"kernel": _BEGINS}),
    ArrayAccessed: Rule(things={"kernel": _USED, "memory": _USED}),
    KernelRan: Rule(things={"kernel": _ENDS}),
    HostAccessed: Rule(things={"memory": _USED}),
    ThreadStarted: Rule(opens=True),
    ThreadExited: Rule(ends=ThreadStarted),
    ReentrantEntered: Rule(opens=True),
    ReentrantLeft: Rule(ends=ReentrantEntered),
    PoolThreadSpawned: _ANY_TIME,
    HandoversHeard: _ANY_TIME,
    ProgramThreadBegun: _ANY_TIME,
    ProgramThreadEntered: _ANY_TIME,
    ProgramThreadLeft: _ANY_TIME,
    HandedOver: _ANY_TIME,
    TakenOver: _ANY_TIME,
    Mark: _ANY_TIME,
    StepBegun: _ANY_TIME,
    ForwardBegun: Rule(opens=True),
    ForwardEnded: Rule(ends=ForwardBegun),
    OptimizerBegun: Rule(opens=True),
    OptimizerEnded: Rule(ends=OptimizerBegun),
    RequiresGradSet: _ANY_TIME,
    TensorChanged: _ANY_TIME,
    GradientMeasured: _ANY_TIME,
    GradientCut: _ANY_TIME,
    GraphKept: _ANY_TIME,
    ParameterHeld: _ANY_TIME,
    # A worker may end on another thread, and messages come whenever they do; what two
    # ends of a message owe each other, the history of one worker cannot tell.
    WorkerBegan: _ANY_TIME,
    WorkerEnded: _ANY_TIME,
    ClockCompared: _ANY_TIME,
    MessageSent: _ANY_TIME,
    MessageReceived: _ANY_TIME,
    CollectiveBegan: Rule(things={"collective": _BEGINS}),
    CollectiveEnded: Rule(things={"collective": _ENDS}),
    GradientBucketed: _ANY_TIME,
}

for _kind in KINDS.values():
    if _kind not in RULES:
        raise TypeError(
            f"no rule says when {_kind.__name__} may happen: give it a row in RULES of "
            f"gradviz.trace.rules, Rule() if that is any time"
        )
