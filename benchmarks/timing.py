"""Timing contestants against each other, in turn, in one process."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

#: Does a piece of work and returns the seconds of the part that counts.
Contestant = Callable[[], float]


class Result(NamedTuple):
    """What one contestant took.

    Attributes:
        name: Whose.
        against: Whom the ratios refer to.
        best: The fastest round, in seconds: what the machine can do when left alone.
        ratio: The best round over that of the contestant it is compared with.
        low: Lower quartile of the ratio round by round, as rounds run in turn.
        high: Upper quartile.
    """

    name: str
    against: str
    best: float
    ratio: float
    low: float
    high: float


def compete(
    contestants: Mapping[str, Contestant], against: str, rounds: int
) -> list[Result]:
    """Run the contestants in turn, so that what disturbs one disturbs all.

    The collector works before each round, not in it, and leaves cold caches behind. So
    a contestant first runs once more without being timed: a step of a training is one
    of many.

    Args:
        contestants: By name.
        against: Whom the ratios refer to.
        rounds: How often each runs, after one run that does not count.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for contestant in contestants.values():
        contestant()
    for _ in range(rounds):
        for name, contestant in contestants.items():
            gc.collect()
            gc.disable()
            try:
                contestant()
                times[name].append(contestant())
            finally:
                gc.enable()
    base = times[against]
    results = []
    for name, own in times.items():
        ratios = [a / b for a, b in zip(own, base, strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4)
        ratio = min(own) / min(base)
        results.append(Result(name, against, min(own), ratio, low, high))
    return results


#: What seconds are counted by: `time.perf_counter`, or `time.process_time` on a machine
#: that is busy with other things, where a run is interrupted more often than not.
clock = time.perf_counter


def timed(work: Callable[[], object]) -> float:
    """Seconds that `work` takes."""
    began = clock()
    work()
    return clock() - began


def count_own_time() -> None:
    """From now on count what the process gets of the processors, not what passes."""
    global clock
    clock = time.process_time
