"""Collectives in a timeline, on the threads that ran them."""

import gradviz as gv
from gradviz.analysis.timelines.timeline_lanes import build_timeline
from tests.analysis.ranks import rank_trace, ranks


def spans_of(trace, *tasks, **options):
    timeline = build_timeline(trace, tasks, **options)
    return [
        (lane, span)
        for lane in timeline.lanes
        for span in lane.spans
        if span.kind == "collective"
    ]


def test_a_collective_has_a_lane_of_the_thread_that_ran_it():
    ((lane, span),) = spans_of(rank_trace(0), 1)

    assert lane.name == "gloo"
    assert lane.num_runs == 0
    assert (span.start_ns, span.end_ns) == (60, 100)
    assert span.name == "gloo:all_reduce, bucket 0"
    assert (span.task, span.node, span.status) == (1, 1, "completed")


def test_a_collective_and_a_hook_have_the_number_of_their_node():
    with gv.record() as recording:
        x = gv.ones(3, requires_grad=True)
        y = (x * 2).exp()
        y.register_hook(lambda grad: None)
        y.sum().backward()

    for trace, kind in ((rank_trace(0), "collective"), (recording.trace, "hook")):
        tasks = list(trace.tasks)[:1]
        spans = [
            one for lane in build_timeline(trace, tasks).lanes for one in lane.spans
        ]
        numbers = {one.node: one.index for one in spans if one.kind == "node"}
        found = [one for one in spans if one.kind == kind]
        assert found
        assert [one.index for one in found] == [numbers[one.node] for one in found]


def test_collectives_of_other_ranks_passes_are_not_shown():
    trace = ranks(rank_trace(0), rank_trace(1))
    tasks = trace.columns["task_begun"]["task"].tolist()

    assert [len(spans_of(trace, *some)) for some in (tasks[:1], tasks)] == [1, 2]


def test_one_without_end_lasts_and_is_unfinished():
    ((_, span),) = spans_of(rank_trace(0, spans=((60,),), end=200), 1)

    assert (span.end_ns, span.status) == (200, "unfinished")


def test_of_too_many_the_rest_is_counted():
    trace = rank_trace(0, spans=((60, 70), (80, 90), (100, 110)))
    timeline = build_timeline(trace, (1,), limit=2)

    assert len(spans_of(trace, 1, limit=2)) == 2
    assert timeline.omitted == 1
