"""Waits of ranks in collectives for the last one."""

from gradviz.analysis.timelines.rank_waits import rank_waits
from gradviz.analysis.timelines.timeline_lanes import build_timeline
from gradviz.analysis.timelines.worker_lanes import with_worker_lanes
from tests.analysis.ranks import rank_trace, ranks


def three_ranks(**of_last):
    return ranks(
        rank_trace(0, spans=((60, 100),), world_size=3),
        rank_trace(1, spans=((90, 100),), world_size=3),
        rank_trace(2, spans=((70, 100),), world_size=3, **of_last),
    )


def test_each_rank_waits_for_the_last_one():
    trace = three_ranks()

    found = build_timeline(trace, trace.tasks).rank_waits

    assert [(one.rank, one.last_rank, one.waited_ns) for one in found] == [
        (0, 1, 30),
        (2, 1, 20),
    ]
    assert {(one.until_ns, one.name) for one in found} == {
        (90, "gloo:all_reduce, bucket 0")
    }


def test_a_wait_needs_both_passes():
    trace = three_ranks()
    without_last = [task for task in trace.tasks if task != sorted(trace.tasks)[1]]

    assert not list(rank_waits(trace, without_last))


def test_a_rank_that_ended_before_the_last_began_has_not_waited():
    trace = ranks(  # their clocks disagree
        rank_trace(0, spans=((60, 80),)), rank_trace(1, spans=((90, 100),))
    )

    assert not list(rank_waits(trace, trace.tasks))


def test_one_rank_alone_waits_for_nobody():
    trace = rank_trace(0)

    assert not list(rank_waits(trace, trace.tasks))


def test_waits_of_workers_are_between_their_lanes():
    trace = three_ranks()
    timeline = with_worker_lanes(build_timeline(trace, trace.tasks))

    lanes = {lane.thread: lane.name for lane in timeline.lanes}
    found = [(lanes[one.thread], lanes[one.last_thread]) for one in timeline.rank_waits]
    assert found == [("pid 10", "pid 11"), ("pid 12", "pid 11")]
