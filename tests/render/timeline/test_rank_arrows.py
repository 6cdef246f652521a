"""Arrows of merged ranks: from the last one of a collective to those that waited."""

import pytest

from gradviz.analysis.timelines.timeline_lanes import build_timeline
from gradviz.analysis.timelines.worker_lanes import with_worker_lanes
from gradviz.render.timeline.timeline_scene import TimelineView, timeline_scene
from tests.analysis.ranks import rank_trace, ranks


@pytest.fixture(params=["workers", "threads"])
def timeline(request):
    trace = ranks(
        rank_trace(0, spans=((60, 100), (70, 110))),
        rank_trace(1, spans=((90, 100), (95, 110))),
    )
    found = build_timeline(trace, trace.tasks)
    return with_worker_lanes(found) if request.param == "workers" else found


def drawn(timeline, **options):
    scene = timeline_scene([timeline], TimelineView(**options))
    (panel,) = scene.panels
    return scene, panel, [one for one in panel.arrows if one.kind == "join"]


def test_an_arrow_leads_from_the_last_rank_to_the_bar_of_the_one_that_waited(timeline):
    scene, panel, arrows = drawn(timeline)

    bars = [
        (bar, span)
        for lane in panel.lanes
        for bar in lane.bars
        for span in bar.spans
        if span.kind == "collective"
    ]
    assert [one.x for one in arrows] == [panel.scale.x(90), panel.scale.x(95)]
    for arrow, bucket in zip(arrows, "01", strict=True):
        first, last = sorted(
            (bar for bar, span in bars if span.name.endswith(bucket)),
            key=lambda bar: bar.x,
        )
        assert arrow.x == arrow.to_x == pytest.approx(last.x, abs=1)
        assert first.x < arrow.to_x < first.x + first.width
        assert last.y > arrow.to_y >= first.y
    assert "the last rank begins" in [placed.item.text for placed in scene.legend]


def test_it_says_who_was_last_and_how_long_the_other_waited(timeline):
    _, _, (first, _) = drawn(timeline)

    assert first.tooltip == (
        "rank 1 is the last to begin gloo:all_reduce, bucket 0, at 90 ns\n"
        "rank 0 has waited for 30 ns"
    )


def test_a_collective_outside_the_shown_time_has_no_arrow(timeline):
    _, _, arrows = drawn(timeline, begin_ns=92)

    assert [one.tooltip.split(",")[1] for one in arrows] == [" bucket 1"]
