"""Causes of queue waits, against a look at one task after another."""

import numpy as np
import pytest

from gradviz.analysis.moments.precedence import PRECEDENCES, Rank, precedence
from gradviz.analysis.moments.queue_delays import MAX_AHEAD, queue_delays
from gradviz.analysis.tables.executions import execution_columns
from gradviz.analysis.tables.queue_waits import queue_waits
from gradviz.analysis.tables.spans import NEVER, times
from tests.analysis.random_passes import random_trace


def busy_ns(runs, thread, pusher, begin, end):
    """Return how much of the time is covered by runs that ended in it."""
    covered, reached = 0, begin
    rows = zip(runs.thread, runs.start_ns, runs.end_ns, strict=True)
    for run, (on, start, stop) in enumerate(rows):
        if on == thread and run != pusher and begin < stop <= end:
            covered += max(stop - max(start, reached), 0)
            reached = max(reached, stop)
    return covered


def slept_ns(trace, thread, begin, end):
    slept = trace.columns["queue_waited"].rows("thread", "t_ns", "waited_ns")
    return max(
        (
            woken - begin
            for on, woken, waited in slept
            if on == thread and begin < woken <= end and woken - waited <= begin
        ),
        default=0,
    )


def rank(row):
    return Rank(row["what"], row["reentrant_depth"], row["sequence_nr"])


@pytest.mark.parametrize("num_devices", [0, 1, 3])
@pytest.mark.parametrize("fails", [False, True])
def test_each_wait_has_the_delays_that_a_look_at_all_events_finds(num_devices, fails):
    trace = random_trace(num_devices, num_devices, size=60, fails=fails)
    waits, runs, t_ns = queue_waits(trace), execution_columns(trace), times(trace)
    rows = [
        dict(zip(waits.pushes, row, strict=True))
        for row in waits.pushes.rows(*waits.pushes)
    ]
    ran = {}
    for run, key in enumerate(zip(runs.task.tolist(), runs.node.tolist(), strict=True)):
        ran.setdefault(key, run)

    found = queue_delays(trace, runs, waits, np.arange(len(rows)))

    overtakings = list(zip(*(one.tolist() for one in found.overtakings), strict=True))
    for wait, row in enumerate(rows):
        begin, end = int(waits.pushed[wait]), int(waits.popped[wait])
        run = ran.get((row["task"], row["node"]))
        busy = slept = 0
        ahead = []
        if end != NEVER:
            ahead = sorted(
                (int(waits.popped[other]), other)
                for other, its in enumerate(rows)
                if its["queue"] == row["queue"] and begin < waits.popped[other] < end
            )
            if run is not None:
                pusher = ran.get((row["task"], row["pushed_by"]))
                lay = t_ns[begin], t_ns[end]
                busy = busy_ns(runs, runs.thread[run], pusher, *lay)
                slept = slept_ns(trace, runs.thread[run], *lay)
        assert (found.busy_ns[wait], found.slept_ns[wait]) == (busy, slept)
        assert found.num_ahead[wait] == len(ahead)
        assert [one[1:] for one in overtakings if one[0] == wait] == [
            (other, PRECEDENCES.index(why) if why else -1)
            for _, other in ahead[:MAX_AHEAD]
            for why in [precedence(rank(rows[other]), rank(row))]
        ]
    assert found.busy_ns.any()
    assert found.num_ahead.any()


def test_a_node_already_running_when_a_task_arrives_counts_from_the_arrival(story):
    """Node 2 runs from 10 to 40, node 3 inside of it; node 1 comes at 20."""
    one, two, three = (story.node(number) for number in (1, 2, 3))
    story.begin(0, [one, two, three], at=0)
    story.start(0, two, at=10)
    story.start(0, three, at=15)
    story.push(0, one, at=20)
    story.complete(0, three, at=30)
    story.complete(0, two, at=40)
    story.pop(0, one, at=50)
    story.start(0, one, at=55)
    trace = story.trace()

    found = queue_delays(
        trace, execution_columns(trace), queue_waits(trace), np.array([0])
    )

    assert found.busy_ns.tolist() == [20]
    assert found.num_ahead.tolist() == [0]


def test_of_no_tasks_there_are_no_delays(story):
    trace = story.trace()

    found = queue_delays(
        trace, execution_columns(trace), queue_waits(trace), np.arange(0)
    )

    assert [len(one) for one in (*found[:3], *found.overtakings)] == [0] * 6
