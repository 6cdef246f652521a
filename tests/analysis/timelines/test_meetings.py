"""Meetings: the last rank of a collective begins, and others need not wait any more."""

from gradviz.analysis.timelines.meetings import meetings
from gradviz.analysis.timelines.timeline_lanes import build_timeline
from gradviz.analysis.timelines.worker_lanes import with_worker_lanes
from tests.analysis.ranks import rank_trace, ranks


def three_ranks(**of_last):
    return ranks(
        rank_trace(0, spans=((60, 100),), world_size=3),
        rank_trace(1, spans=((90, 100),), world_size=3),
        rank_trace(2, spans=((70, 100),), world_size=3, **of_last),
    )


def test_each_rank_that_waited_meets_the_last_one():
    trace = three_ranks()

    found = build_timeline(trace, trace.tasks).meetings

    assert [(one.rank, one.to_rank, one.waited_ns) for one in found] == [
        (1, 0, 30),
        (1, 2, 20),
    ]
    assert {(one.at_ns, one.name) for one in found} == {
        (90, "gloo:all_reduce, bucket 0")
    }


def test_a_meeting_needs_both_passes():
    trace = three_ranks()
    without_last = [task for task in trace.tasks if task != sorted(trace.tasks)[1]]

    assert not list(meetings(trace, without_last))


def test_a_rank_that_ended_before_the_last_began_met_nobody():
    trace = ranks(  # their clocks disagree
        rank_trace(0, spans=((60, 80),)), rank_trace(1, spans=((90, 100),))
    )

    assert not list(meetings(trace, trace.tasks))


def test_one_rank_alone_meets_nobody():
    trace = rank_trace(0)

    assert not list(meetings(trace, trace.tasks))


def test_meetings_of_workers_lead_from_lane_to_lane():
    trace = three_ranks()
    timeline = with_worker_lanes(build_timeline(trace, trace.tasks))

    lanes = {lane.thread: lane.name for lane in timeline.lanes}
    found = [(lanes[one.thread], lanes[one.to_thread]) for one in timeline.meetings]
    assert found == [("pid 11", "pid 10"), ("pid 11", "pid 12")]
