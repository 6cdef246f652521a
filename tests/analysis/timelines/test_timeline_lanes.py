import msgspec
import pytest

from gradviz.analysis.tables.passes import MAX_PASSES
from gradviz.analysis.timelines.timeline_lanes import (
    build_timeline,
    busy_ns,
    document_of,
)
from gradviz.analysis.training.steps import select_step
from gradviz.trace.reading.reader import parse_trace
from tests.analysis.conftest import START_NS
from tests.cli.bad_files import many_passes


def spans_of(lane):
    return [
        (one.name, one.row, one.start_ns, one.end_ns)
        for one in lane.spans
        if one.kind not in {"setup", "finish"}
    ]


def nodes_of(lane):
    return [one for one in lane.spans if one.kind == "node"]


def test_times_count_from_the_begin_of_the_pass(pair):
    story, _, _ = pair

    timeline = build_timeline(story.trace(), [7])

    assert (timeline.origin_ns, timeline.duration_ns) == (1_000, 100)
    assert spans_of(timeline.lanes[0]) == [
        ("MulBackward0", 0, 20, 80),
        ("AccumulateGrad", 0, 90, 95),
    ]
    assert timeline.passes[0].begin_ns == 0
    assert timeline.passes[0].end_ns == 100


def test_every_thread_that_ran_a_node_has_a_lane_with_its_name(story):
    first, second = story.node(1), story.node(2, device="sim:0")
    story.begin(0, [first, second], at=0)
    story.ran(0, first, at=2, until=3)
    story.on_thread("gv_autograd_0", lambda: story.ran(0, second, at=4, until=10))
    story.end(0, at=11)

    lanes = build_timeline(story.trace(), [0]).lanes

    assert [lane.name for lane in lanes] == ["MainThread", "gv_autograd_0"]
    assert [lane.busy_ns for lane in lanes] == [1, 6]
    assert nodes_of(lanes[1])[0].device == "sim:0"


def test_an_inner_pass_lies_one_row_below_the_node_that_called_it(story):
    outer, inner = story.node(1, name="Outer"), story.node(2, name="Inner")
    story.begin(0, [outer], at=0)
    story.start(0, outer, at=10)
    story.begin(1, [inner], at=20, parent=0)
    story.ran(1, inner, at=30, until=40)
    story.end(1, at=50)
    story.complete(0, outer, at=60)
    story.end(0, at=70)

    timeline = build_timeline(story.trace(), [0])

    (lane,) = timeline.lanes
    assert timeline.tasks == (0, 1)
    assert lane.num_rows == 2
    assert spans_of(lane) == [("Outer", 0, 10, 60), ("Inner", 1, 30, 40)]
    assert lane.busy_ns == 50
    assert [span.index for span in nodes_of(lane)] == [0, 0]


def test_a_sleep_is_cut_to_the_timeline(story):
    root = story.node(1)
    story.waited(500, until=590)
    story.begin(0, [root], at=600)
    story.waited(50, until=620)
    story.ran(0, root, at=621, until=640)
    story.end(0, at=650)

    (lane,) = build_timeline(story.trace(), [0]).lanes

    assert [
        (one.kind, one.start_ns, one.end_ns)
        for one in lane.spans
        if one.kind in {"wait", "node"}
    ] == [
        ("wait", 0, 20),
        ("node", 21, 40),
    ]


def test_a_thread_that_only_slept_has_no_lane(story):
    root = story.node(1)
    story.begin(0, [root], at=0)
    story.ran(0, root, at=2, until=5)
    story.on_thread("idle", lambda: story.waited(3, until=6))
    story.end(0, at=7)

    lanes = build_timeline(story.trace(), [0]).lanes

    assert [lane.name for lane in lanes] == ["MainThread"]


def test_a_node_that_failed_ends_where_it_raised(story):
    root = story.node(1)
    story.begin(0, [root], at=0)
    story.start(0, root, at=10)
    story.fail(0, root, "ValueError: no", at=25)

    (span,) = nodes_of(build_timeline(story.trace(), [0]).lanes[0])

    assert (span.status, span.end_ns) == ("failed", 25)


def test_a_node_that_never_ended_lasts_to_the_end(story):
    first, second = story.node(1), story.node(2)
    story.begin(0, [first, second], at=0)
    story.start(0, first, at=10)
    story.on_thread("other", lambda: story.ran(0, second, at=20, until=90))

    lanes = build_timeline(story.trace(), [0]).lanes

    (span,) = nodes_of(lanes[0])
    assert (span.status, span.end_ns) == ("unfinished", 90)


def test_every_stream_that_ran_a_kernel_has_a_lane_below_the_threads(story):
    root = story.node(1, device="sim:0")
    story.begin(0, [root], at=0)
    story.start(0, root, at=10)
    story.kernel(1, "sim:0/10", at=11, ran=(20, 30))
    story.kernel(2, "sim:0/2", at=13, ran=(25, 40), name="add")
    story.kernel(3, "sim:0/2", at=15, ran=(40, 45), name="sum")
    story.complete(0, root, at=50)
    story.end(0, at=60)

    thread, second, tenth = build_timeline(story.trace(), [0]).lanes
    assert (thread.thread, thread.num_kernels) == (0, 0)
    assert [lane.name for lane in (second, tenth)] == ["sim:0/2", "sim:0/10"]
    assert [lane.thread for lane in (second, tenth)] == [-1, -1]
    assert spans_of(second) == [("add", 0, 25, 40), ("sum", 0, 40, 45)]
    assert (second.num_runs, second.num_kernels, second.busy_ns) == (0, 2, 20)
    (span,) = tenth.spans
    assert (span.kind, span.node, span.task, span.index) == ("kernel", 1, 0, 0)
    assert (span.device, span.waited_ns) == ("sim:0", 9)


def test_a_kernel_that_outlasts_the_pass_makes_the_timeline_longer(story):
    root = story.node(1)
    story.begin(0, [root], at=0)
    story.start(0, root, at=10)
    story.kernel(1, "sim:0/0", at=11, ran=(20, 90))
    story.complete(0, root, at=50)
    story.end(0, at=60)

    timeline = build_timeline(story.trace(), [0])
    assert timeline.duration_ns == 90


def test_a_kernel_of_the_forward_is_cut_to_the_timeline_and_is_nobodys(story):
    root = story.node(1)
    story.kernel(1, "sim:0/0", at=1, ran=(5, 120), name="forward")
    story.kernel(2, "sim:0/1", at=3, ran=(5, 8), name="earlier")
    story.begin(0, [root], at=100)
    story.ran(0, root, at=110, until=130)
    story.end(0, at=140)

    _, stream = build_timeline(story.trace(), [0]).lanes
    (span,) = stream.spans
    assert (span.name, span.start_ns, span.end_ns) == ("forward", 0, 20)
    assert (span.task, span.node, span.index) == (-1, -1, -1)


def test_a_kernel_that_no_node_launched_makes_the_timeline_longer_if_in_the_pass(story):
    root = story.node(1)
    story.begin(0, [root], at=0)
    story.ran(0, root, at=10, until=20)
    story.kernel(1, "sim:0/0", at=30, ran=(70, 90), name="of a callback")
    story.end(0, at=60)
    story.kernel(2, "sim:0/0", at=65, ran=(95, 99), name="later")

    timeline = build_timeline(story.trace(), [0])
    assert timeline.duration_ns == 90
    assert spans_of(timeline.lanes[1]) == [("of a callback", 0, 70, 90)]


def test_waits_of_streams_are_told_at_times_of_the_timeline(story):
    root = story.node(1)
    story.begin(0, [root], at=100)
    story.start(0, root, at=110)
    story.kernel(1, "sim:0/0", at=111, ran=(120, 130))
    story.record(5, "sim:0/0")
    story.wait(5, "sim:0/1")
    story.kernel(2, "sim:0/1", at=115, ran=(135, 140))
    story.complete(0, root, at=150)
    story.end(0, at=160)

    (wait,) = build_timeline(story.trace(), [0]).waits
    assert (wait.awaited_stream, wait.ready_ns) == ("sim:0/0", 30)
    assert (wait.stream, wait.begin_ns) == ("sim:0/1", 35)


def test_a_wait_for_what_was_done_before_the_pass_is_left_out(story):
    root = story.node(1)
    story.kernel(1, "sim:0/0", at=1, ran=(2, 3))
    story.record(5, "sim:0/0")
    story.begin(0, [root], at=100)
    story.start(0, root, at=110)
    story.wait(5, "sim:0/1")
    story.kernel(2, "sim:0/1", at=115, ran=(135, 140))
    story.complete(0, root, at=150)
    story.end(0, at=160)

    assert build_timeline(story.trace(), [0]).waits == ()


def test_the_document_is_the_timeline_as_json(pair):
    story, _, _ = pair

    document = document_of(build_timeline(story.trace(), [7]))

    assert (document["schema"], document["version"]) == ("gradviz.timeline", 1)
    assert document["lanes"][0]["spans"][1]["name"] == "MulBackward0"
    assert msgspec.json.decode(msgspec.json.encode(document))["tasks"] == [7]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], 0),
        ([(0, 10), (20, 25)], 15),
        ([(0, 10), (2, 5), (8, 12)], 12),
        ([(5, 5)], 0),
    ],
)
def test_busy_time_counts_what_overlaps_once(spans, expected):
    assert busy_ns(spans) == expected


def told_step(story):
    """A step from 0 to 1000: a model with a part, a pass, an optimizer."""

    def report(name, *fields, at):
        story.now = START_NS + at
        getattr(story.recorder, name)(*fields)

    for depth, name in enumerate(["Net", "Net.a", "Net.a.b", "Net.a.b.c"]):
        report("forward_begun", depth, name, "Linear", at=10 * depth)
    for depth in (3, 2, 1, 0):
        report("forward_ended", depth, depth == 3, at=100 - 10 * depth)
    node = story.node(1)
    story.begin(0, [node], at=200)
    story.ran(0, node, at=210, until=290)
    story.end(0, at=300)
    report("optimizer_begun", 0, "SGD", at=400)
    report("optimizer_ended", 0, False, at=500)
    return story.trace()


def test_a_step_is_shown_whole_on_the_thread_that_makes_it(story):
    trace = told_step(story)
    step = select_step(trace, "0")

    timeline = build_timeline(trace, step.tasks, step)

    (lane,) = timeline.lanes
    assert [
        (one.kind, one.name, one.row, one.start_ns, one.end_ns)
        for one in lane.spans
        if one.kind not in {"setup", "finish"}
    ] == [
        ("forward", "Net", 0, 0, 100),
        ("forward", "Net.a", 1, 10, 90),
        ("forward", "Net.a.b", 2, 20, 80),
        ("backward", "backward", 0, 200, 300),
        ("node", "MulBackward0", 1, 210, 290),
        ("optimizer", "SGD", 0, 400, 500),
    ]
    assert (timeline.step, timeline.duration_ns) == (0, 500)
    assert (lane.num_runs, lane.busy_ns, timeline.omitted) == (1, 80, 0)


def test_a_pass_alone_has_no_calls_around_it(story):
    timeline = build_timeline(told_step(story), [0])

    (lane,) = timeline.lanes
    assert {one.kind for one in lane.spans} == {"setup", "node", "finish"}
    assert timeline.step is None


def test_a_call_that_raised_or_never_ended_says_so(story):
    story.now = START_NS
    story.recorder.forward_begun(0, "Net", "Net")
    story.recorder.forward_begun(1, "Net.a", "Linear")
    story.now = START_NS + 50
    story.recorder.forward_ended(1, True)
    node = story.node(1)
    story.begin(0, [node], at=100)
    story.end(0, at=200)
    trace = story.trace()
    step = select_step(trace, "last")

    (lane,) = build_timeline(trace, step.tasks, step).lanes

    assert [(one.name, one.status) for one in lane.spans if one.kind != "setup"] == [
        ("Net", "unfinished"),
        ("Net.a", "failed"),
        ("backward", "completed"),
    ]


def test_parts_of_passes_that_are_too_many_are_left_out_with_them():
    trace = parse_trace(many_passes(MAX_PASSES + 1))

    timeline = build_timeline(trace, trace.tasks)

    assert len(timeline.passes) == len(timeline.parts) == MAX_PASSES
