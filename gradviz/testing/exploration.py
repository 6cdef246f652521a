"""Running a scenario under many schedules, and saying which one fails.

A *scenario* is a function of a `Scheduler` that runs threads and raises if something is
wrong. It must depend on nothing but the schedule: then a failure is repeated from its
name and the text of a policy.
"""

import contextlib
import gc
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from gradviz.testing.fiber import ScheduleError
from gradviz.testing.policy import (
    Decision,
    DepthFirst,
    Policy,
    PriorityChanges,
    RandomWalk,
    Scripted,
)
from gradviz.testing.scheduler import Scheduler

Scenario: TypeAlias = Callable[[Scheduler], None]

#: After how many runs the cycles that they left are collected.
_COLLECT_EVERY: Final = 256


class Run(NamedTuple):
    """One run of a scenario.

    Attributes:
        policy: Policy under which it ran.
        decisions: Decisions of the policy.
        num_switches: Switch points passed.
        failure: Exception that the scenario raised, None if all is well.
    """

    policy: Policy
    decisions: list[Decision]
    num_switches: int
    failure: Exception | None


class ScheduleFailed(ScheduleError):  # noqa: N818 - a test fails, it does not err
    """A scenario fails under some schedule; the message says how to repeat it.

    Attributes:
        run: The first run that failed.
        num_runs: Number of runs, this one included.
    """

    def __init__(self, scenario: Scenario, run: Run, num_runs: int) -> None:
        self.run = run
        self.num_runs = num_runs
        failure = run.failure
        super().__init__(
            f"schedule {num_runs} fails: {type(failure).__name__}: {failure}\n"
            f"repeat: {how_to_repeat(scenario, run.policy)}"
        )


def run_once(scenario: Scenario, policy: Policy) -> Run:
    """Run a scenario under one schedule."""
    failure: Exception | None = None
    with Scheduler(policy) as scheduler:
        try:
            scenario(scheduler)
        except Exception as error:  # noqa: BLE001 - it is the outcome
            failure = error
    fibers = scheduler.fibers
    return Run(policy, fibers.decisions, fibers.num_switches, failure)


def explore(scenario: Scenario, policies: Iterable[Policy]) -> int:
    """Run a scenario under each policy, until one fails.

    Args:
        scenario: Scenario to run.
        policies: Finite; see `mixed`.

    Returns:
        The number of runs.

    Raises:
        ScheduleFailed: One failed.
    """
    num_runs = 0
    with _no_collection():
        for policy in policies:
            run = run_once(scenario, policy)
            num_runs += 1
            if run.failure is not None:
                raise ScheduleFailed(scenario, run, num_runs) from run.failure
            if isinstance(policies, DepthFirst):
                policies.decisions = run.decisions
            if num_runs % _COLLECT_EVERY == 0:
                gc.collect(0)
    return num_runs


def mixed(scenario: Scenario, num_runs: int, first_seed: int = 0) -> Iterator[Policy]:
    """Random walks and priority changes of depth 1 to 4, in turn.

    Each of the two finds some bugs many times faster than the other.
    """
    length = len(run_once(scenario, Scripted({})).decisions)
    for seed in range(first_seed, first_seed + num_runs):
        if seed % 2:
            yield PriorityChanges(1 + seed // 2 % 4, length, seed)
        else:
            yield RandomWalk(seed)


def simplify(scenario: Scenario, run: Run, max_runs: int = 5000) -> Run:
    """A run that fails in the same way with as few preemptions as possible.

    Looks for one among those with none, then one, then two; `run` itself if there is
    none within `max_runs`.
    """
    budget = itertools.islice(itertools.count(), max_runs)
    for bound in range(3):
        search = DepthFirst(bound)
        for _, policy in zip(budget, search, strict=False):
            attempt = run_once(scenario, policy)
            search.decisions = attempt.decisions
            if type(attempt.failure) is type(run.failure):
                return attempt
    return run


def how_to_repeat(scenario: Scenario, policy: Policy) -> str:
    """The line that runs a scenario again under one schedule.

    For a shell, or of Python if it is a function that no other program can import.
    """
    module = getattr(scenario, "__module__", "__main__")
    name = getattr(scenario, "__qualname__", repr(scenario))
    if module == "__main__" or "<" in name:
        return f'run_once({name.rpartition(".")[2]}, parse_policy("{policy.spec}"))'
    return f"python -m gradviz.testing {module}:{name} {policy.spec}"


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Collect cycles between runs only: a finalizer inside one would disturb it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
