"""Testing a program that runs on an engine, one schedule of its threads at a time.

`assert_same_backward`, of the room `golden`, compares a backward, PyTorch's too, with a
file that tells what it did. All else is for the threads of a program:

In: a scenario, and how many schedules to try. Out: the first schedule that fails. Read
bottom up: `policy` (who runs next), `fiber`, `fibers` (threads that take turns),
`scheduler` (the engine's seam on top of them), `exploration` (many schedules, and one
again); `event_list` (what the engine reports, kept in memory), `assertions` (which of
it must have happened). docs/testing.md has an example. ``python -m gradviz.testing``
runs a scenario by hand.

The scheduler needs greenlet, which comes with ``gradviz[dev]`` only: ``pip install
greenlet``.
"""

from gradviz.testing.assertions import Expected, assert_lifecycle, assert_sequence
from gradviz.testing.event_list import EventList
from gradviz.testing.exploration import (
    Scenario,
    ScheduleFailed,
    explore,
    mixed,
    run_once,
    simplify,
)
from gradviz.testing.fiber import Deadlock, Livelock, ScheduleError, ThreadDied
from gradviz.testing.golden.same_backward import assert_same_backward
from gradviz.testing.policy import (
    DepthFirst,
    PriorityChanges,
    RandomWalk,
    Scripted,
    parse_policy,
)
from gradviz.testing.scheduler import Scheduler, pause, sleep

__all__ = [
    "Deadlock",
    "DepthFirst",
    "EventList",
    "Expected",
    "Livelock",
    "PriorityChanges",
    "RandomWalk",
    "Scenario",
    "ScheduleError",
    "ScheduleFailed",
    "Scheduler",
    "Scripted",
    "ThreadDied",
    "assert_lifecycle",
    "assert_same_backward",
    "assert_sequence",
    "explore",
    "mixed",
    "parse_policy",
    "pause",
    "run_once",
    "simplify",
    "sleep",
]
