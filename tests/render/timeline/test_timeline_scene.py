"""Positions in pictures of timelines, against events of random passes."""

import itertools

import msgspec
import pytest

from gradviz.analysis.timelines.queue_traffic import QueueLength
from gradviz.analysis.timelines.timeline_lanes import build_timeline
from gradviz.render import style
from gradviz.render.charts.bars import MIN_BAR
from gradviz.render.timeline.span_text import BAR_TEXT
from gradviz.render.timeline.timeline_lanes import BAR_HEIGHT
from gradviz.render.timeline.timeline_scene import (
    MARGIN,
    MAX_BARS,
    TimelineView,
    timeline_scene,
)
from gradviz.render.words.text import width
from gradviz.trace import events as e
from tests.analysis.conftest import Story
from tests.analysis.random_passes import random_trace
from tests.analysis.ranks import rank_trace


@pytest.fixture(scope="module", params=range(5), ids=lambda seed: f"seed {seed}")
def recorded(request):
    trace = random_trace(request.param, num_devices=request.param)
    return trace, build_timeline(trace, [trace.tasks[0]])


def scene_of(timeline, **view):
    return timeline_scene([timeline], TimelineView(**view))


@pytest.mark.parametrize("wide", [480, 960, 3_000])
def test_each_run_of_a_node_is_in_one_bar_of_its_thread_at_its_place(recorded, wide):
    trace, timeline = recorded

    (panel,) = scene_of(timeline, width=wide).panels

    where = {}
    for lane, placed in zip(timeline.lanes, panel.lanes, strict=True):
        for bar in placed.bars:
            for span in bar.spans:
                if span.kind == "node":
                    where.setdefault((span.task, span.node), []).append(
                        (lane.thread, bar)
                    )
    started, ended = {}, {}
    for event in trace.events():
        if isinstance(event, e.NodeStarted):
            started[event.task, event.node] = event
        if isinstance(event, e.NodeCompleted):
            ended[event.task, event.node] = event
    assert set(where) == set(started)
    room = wide - MARGIN - panel.scale.left
    for key, places in where.items():
        ((thread, bar),) = places
        assert thread == started[key].thread
        begin, end = (
            panel.scale.left
            + room * (one[key].t_ns - timeline.origin_ns) / timeline.duration_ns
            for one in (started, ended)
        )
        assert bar.x - MIN_BAR <= begin
        assert end <= bar.x + bar.width + MIN_BAR
        if len(bar.spans) == 1:
            assert bar.x == pytest.approx(begin, abs=MIN_BAR)


def test_nothing_overlaps_and_no_text_is_longer_than_its_bar(recorded):
    _, timeline = recorded

    scene = scene_of(timeline)

    (panel,) = scene.panels
    for lane, below in itertools.pairwise(panel.lanes):
        assert lane.bottom < below.y
    for lane in panel.lanes:
        by_row = {}
        for bar in lane.bars:
            by_row.setdefault(bar.y, []).append(bar)
            assert lane.y <= bar.y < bar.y + BAR_HEIGHT <= lane.bottom
            assert scene.left - 1e-6 <= bar.x
            assert bar.x + bar.width <= scene.width - MARGIN + 1e-6
            assert width(bar.label, BAR_TEXT) <= bar.width
        for row in by_row.values():
            for bar, after in itertools.pairwise(row):
                assert bar.x + bar.width <= after.x + 1e-6
        for strip in lane.strips:
            assert max(row.bottom for row in lane.rows) < strip.y < lane.bottom
            places = [x for x, _ in strip.points]
            assert places == sorted(places)


def test_inner_passes_are_below_the_node_that_called_them():
    story = Story()
    outer, inner = story.node(1, name="Outer"), story.node(2, name="Inner")
    story.begin(0, [outer], at=0)
    story.start(0, outer, at=10)
    story.begin(1, [inner], at=20, parent=0)
    story.ran(1, inner, at=30, until=40)
    story.end(1, at=50)
    story.complete(0, outer, at=60)
    story.end(0, at=70)

    (panel,) = scene_of(build_timeline(story.trace(), [0])).panels

    bars = {bar.label: bar for bar in panel.lanes[0].bars}
    assert bars["0 Inner"].y > bars["0 Outer"].y + BAR_HEIGHT
    assert bars["0 Outer"].x < bars["0 Inner"].x
    assert "setup" in bars


def test_a_part_of_the_time_has_all_of_the_width(make_span, make_timeline):
    timeline = make_timeline(
        [make_span(n, 100 * n, 100 * n + 100) for n in range(4)], duration_ns=400
    )

    scene = scene_of(timeline, begin_ns=150, end_ns=250)

    (panel,) = scene.panels
    first, second = panel.lanes[0].bars
    assert [first.spans[0].index, second.spans[0].index] == [1, 2]
    assert (first.x, second.x + second.width) == (scene.left, scene.width - MARGIN)
    assert first.width == second.width
    x, text = panel.ticks[0]
    assert (x, text) == (pytest.approx(panel.scale.x(160)), "160 ns")
    assert panel.lanes[0].about == "2 nodes, 100 % busy"


def test_several_timelines_are_below_each_other_on_one_scale(make_span, make_timeline):
    short = make_timeline([make_span(0, 0, 100)], duration_ns=100)
    long = make_timeline([make_span(0, 0, 20_000)], duration_ns=20_000)

    scene = timeline_scene([short, long], TimelineView())

    first, second = scene.panels
    assert first.bottom < second.y
    assert first.heading == "Backward pass 4: 100 ns"
    narrow, wide = (panel.lanes[0].bars[0].width for panel in scene.panels)
    assert 200 * narrow == pytest.approx(wide)
    assert scene.title == "2 backward passes"


def test_the_lengths_of_queues_are_below_who_takes_from_them(make_span, make_timeline):
    timeline = make_timeline(
        [make_span(0, 0, 400)], [make_span(1, 0, 50)], duration_ns=400
    )
    queue = QueueLength(
        queue=3,
        name="device 0",
        thread=1,
        longest=4,
        lengths=((100, 2), (200, 4), (300, 0)),
    )
    timeline = msgspec.structs.replace(timeline, queues=(queue,))

    (panel,) = scene_of(timeline).panels
    main, worker = panel.lanes

    assert main.strips == ()
    (strip,) = worker.strips
    assert strip.name == "device 0: at most 4"
    heights = dict(strip.points)
    assert heights[panel.scale.x(100)] == 0.5
    assert heights[panel.scale.x(200)] == 1
    assert heights[panel.scale.x(300)] == 0
    assert scene_of(timeline, has_queues=False).panels[0].lanes[1].strips == ()


def test_a_queue_of_a_worker_has_a_short_name_in_its_lane(make_span, make_timeline):
    timeline = make_timeline(
        [make_span(0, 0, 400)], duration_ns=400, names=("worker 1 / call 2",)
    )
    queue = QueueLength(
        queue=3,
        name="worker 1 / caller 7",
        thread=0,
        longest=1,
        lengths=((100, 1), (200, 0)),
    )
    timeline = msgspec.structs.replace(timeline, queues=(queue,))

    (strip,) = scene_of(timeline).panels[0].lanes[0].strips
    assert strip.name == "caller 7: at most 1"


@pytest.mark.parametrize("owner", ["", "worker 1 / "])
def test_a_queue_does_not_repeat_the_thread_above_it(make_span, make_timeline, owner):
    timeline = make_timeline(
        [make_span(0, 0, 400)], duration_ns=400, names=(f"{owner}MainThread",)
    )
    queue = QueueLength(
        queue=3,
        name=f"{owner}CPU of MainThread (inferred)",
        thread=0,
        longest=1,
        lengths=((100, 1), (200, 0)),
    )
    timeline = msgspec.structs.replace(timeline, queues=(queue,))

    (strip,) = scene_of(timeline).panels[0].lanes[0].strips
    assert strip.name == "CPU (inferred): at most 1"


def test_a_narrow_peak_of_a_queue_is_seen_and_does_not_last(make_span, make_timeline):
    timeline = make_timeline([make_span(0, 0, 10**6)], duration_ns=10**6)
    queue = QueueLength(
        queue=3,
        name="device 0",
        thread=0,
        longest=5,
        lengths=((500_000, 1), (500_001, 5), (500_002, 0)),
    )

    scene = scene_of(msgspec.structs.replace(timeline, queues=(queue,)))

    ((strip,),) = [lane.strips for lane in scene.panels[0].lanes]
    assert [part for _, part in strip.points] == [0, 1, 0, 0]


def test_the_legend_has_what_is_drawn_and_nothing_else(make_span, make_timeline):
    def words(*spans):
        return [
            placed.item.text
            for placed in scene_of(make_timeline([*spans], duration_ns=100)).legend
        ]

    assert words(make_span(0, 0, 9)) == ["pointwise", "none of these, or unknown"]
    assert words(
        make_span(0, 0, 9, status="failed"),
        make_span(-1, 10, 20, kind="wait"),
        make_span(-1, 20, 30, kind="finish"),
    ) == [
        "pointwise",
        "asleep on its empty queue",
        "setup and end of a pass",
        "failed",
        "none of these, or unknown",
    ]


@pytest.mark.parametrize("by", ["time", "wait", "order"])
def test_colors_go_from_little_to_much(make_span, make_timeline, by):
    spans = [
        make_span(n, 100 * n, 100 * n + 20 * 2**n, waited_ns=10 * 2**n)
        for n in range(3)
    ]

    scene = scene_of(make_timeline(spans, duration_ns=400), color_by=by)

    fills = [bar.fill for bar in scene.panels[0].lanes[0].bars]
    assert fills == [style.ramp(0), style.ramp(0.5), style.ramp(1)]
    assert [placed.item.fill for placed in scene.legend][:3] == fills


def test_missing_and_omitted_parts_are_reported():
    story = Story()
    root = story.node(1)
    story.begin(0, [root], at=0)
    story.ran(0, root, at=10, until=20)
    timeline = build_timeline(story.trace(), [0])
    lost = ("its end is cut off", "5 bytes are damaged", "b", "c")

    scene = scene_of(msgspec.structs.replace(timeline, lost=lost, omitted=1_000))

    incomplete, unfinished, left_out = scene.alarms
    assert incomplete.endswith("its end is cut off; 5 bytes are damaged; b; and 1 more")
    assert unfinished == "The trace does not have the end of pass 0"
    assert "left out are 1,000 nodes, kernels and sleeps" in left_out


def test_of_very_many_bars_neighbors_are_one_so_that_the_picture_stays_small(
    make_span, make_timeline
):
    lanes = [[make_span(n, 40 * n, 40 * n + 30) for n in range(250)] for _ in range(50)]
    timeline = make_timeline(*lanes, duration_ns=10_000)

    scene = scene_of(timeline)

    bars = [bar for lane in scene.panels[0].lanes for bar in lane.bars]
    assert len(bars) <= MAX_BARS
    assert sum(len(bar.spans) for bar in bars) == 12_500
    assert "12,450 narrow spans drawn as" in scene.words[-1]


def test_an_error_is_below_its_bar_and_ends_before_the_lane_does(
    make_span, make_timeline
):
    error = "ValueError: " + "no " * 100 + "\nsecond line"
    spans = [make_span(0, 0, 10), make_span(1, 90, 99, status="failed", error=error)]

    scene = scene_of(make_timeline(spans, duration_ns=100))

    (lane,) = scene.panels[0].lanes
    (note,) = lane.notes
    assert note.text.startswith("✕ 1 Mul failed: ValueError: no no")
    assert note.text.endswith("…")
    assert note.x + width(note.text, BAR_TEXT, bold=True) <= scene.width - MARGIN
    assert lane.rows[0].bottom < note.y < lane.bottom


def test_a_thread_of_collectives_counts_these_and_is_busy_with_them():
    (panel,) = scene_of(build_timeline(rank_trace(0), [1])).panels

    about = {lane.name: lane.about for lane in panel.lanes}
    assert about["gloo"].startswith("1 collective, ")
    assert not about["gloo"].endswith(" 0 % busy")
    assert all("node" in text for name, text in about.items() if name != "gloo")
