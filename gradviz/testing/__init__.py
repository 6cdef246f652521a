"""Testing what runs on an engine, and the engine itself, one schedule at a time.

Read bottom up: `policy` (who runs next), `fiber`, `fibers` (threads that take turns),
`scheduler` (the engine's seam on top of them), `exploration` (many schedules, and one
again); `workload`, `event_list`, `event_rules`, `account`, `world` (a watched engine,
and what must hold), `scenarios` (what it is put through). ``python -m
gradviz.testing`` runs it by hand.

Needs greenlet, which comes with ``gradviz[dev]``.
"""

from gradviz.testing.exploration import (
    ScheduleFailed,
    explore,
    mixed,
    run_once,
    simplify,
)
from gradviz.testing.fiber import Deadlock, Livelock, ScheduleError, ThreadDied
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
    "Livelock",
    "PriorityChanges",
    "RandomWalk",
    "ScheduleError",
    "ScheduleFailed",
    "Scheduler",
    "Scripted",
    "ThreadDied",
    "explore",
    "mixed",
    "parse_policy",
    "pause",
    "run_once",
    "simplify",
    "sleep",
]
