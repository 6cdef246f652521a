import re
import xml.etree.ElementTree as ET

import msgspec
import pytest

from gradviz.analysis.tables.messages import SentMessage
from gradviz.analysis.timelines.idle_spans import StreamWait
from gradviz.analysis.timelines.queue_traffic import PushAcross
from gradviz.render.timeline.timeline_arrows import MAX_ARROWS
from gradviz.render.timeline.timeline_scene import TimelineView, timeline_scene
from gradviz.render.timeline.timeline_svg import render_timeline

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def draw(make_span, make_timeline):
    """A picture of two streams that are busy one after the other, with waits."""

    def draw(*changes, names=("sim:0/0", "sim:0/1"), name="multiply"):
        timeline = make_timeline(
            [make_span(0, 0, 40, kind="kernel", name=name)],
            [make_span(1, 60, 100, kind="kernel", name=name)],
            [make_span(1, 50, 55, name=name)],
            duration_ns=100,
            names=(*names, "Main"),
        )
        first, second = names
        wait = StreamWait(
            stream=second,
            kernel=2,
            node=101,
            begin_ns=60,
            awaited_stream=first,
            awaited_kernel=1,
            producer=7,
            ready_ns=40,
        )
        waits = tuple(msgspec.structs.replace(wait, **one) for one in changes)
        picture = render_timeline(msgspec.structs.replace(timeline, waits=waits))
        return ET.fromstring(picture)

    return draw


def arrows(picture):
    """The lines' ends, as four numbers each."""
    paths = [
        one
        for one in picture.iter(f"{SVG}path")
        if one.get("class") == "await" and "L" in one.get("d")
    ]
    return [list(map(float, re.findall(r"[\d.]+", one.get("d")))) for one in paths]


def bars(picture):
    """Left, right, upper and lower edges."""
    found = []
    for one in picture.iter(f"{SVG}rect"):
        if one.get("class") == "bar":
            x, y, wide, high = (
                float(one.get(name)) for name in ("x", "y", "width", "height")
            )
            found.append((x, x + wide, y, y + high))
    return found


def everything(picture):
    return " ".join(picture.itertext())


def test_an_arrow_goes_down_from_the_end_of_one_bar_to_the_begin_of_another(draw):
    picture = draw({})

    (arrow,) = arrows(picture)
    (_, right, _, lower), (left, _, upper, _), _ = bars(picture)
    assert arrow == pytest.approx([right, lower, left, upper], abs=0.2)


def test_an_arrow_goes_up_as_well(draw):
    picture = draw(
        {
            "stream": "sim:0/0",
            "awaited_stream": "sim:0/1",
            "ready_ns": 0,
            "begin_ns": 40,
        }
    )

    (arrow,) = arrows(picture)
    (_, right, _, lower), (_, _, upper, _), _ = bars(picture)
    assert arrow[1:] == pytest.approx([upper, right, lower], abs=0.2)


def test_an_arrow_says_who_waits_and_for_what(draw):
    told = everything(draw({}))

    assert "sim:0/1 waits for sim:0/0" in told
    assert "for the gradient of the node with id 7\n" in told
    assert "asked for by #1 multiply (id 101)\n" in told
    assert "wait of a stream for another" in told


def test_a_wait_that_the_program_asked_for_names_no_node(draw):
    told = everything(draw({"node": -1, "producer": -1}))

    assert "sim:0/1 waits for sim:0/0\nready at 40 ns" in told


def test_without_waits_nothing_is_said_of_arrows(draw):
    picture = draw()

    assert arrows(picture) == []
    assert "wait of a stream" not in everything(picture)


def test_of_too_many_arrows_those_that_lie_on_each_other_are_one_that_says_so(draw):
    most = draw(*[{}] * MAX_ARROWS)
    too_many = draw(*[{}] * (MAX_ARROWS + 1))

    assert len(arrows(most)) == MAX_ARROWS
    assert len(arrows(too_many)) == 1
    assert "and 300 more like it" in everything(too_many)
    assert "301 arrows drawn as 1" in everything(too_many)


@pytest.fixture
def pushed(make_span, make_timeline):
    """The scene of two threads, the first of which pushes nodes to the second."""

    def scene(*changes, **view):
        timeline = make_timeline(
            [make_span(0, 0, 500), make_span(5, 100, 400, row=1)],
            [make_span(1, 600, 700)],
            duration_ns=1_000,
            names=("Main", "gv_autograd_0"),
        )
        push = PushAcross(
            task=4,
            node=101,
            pushed_by=105,
            from_thread=0,
            pushed_ns=300,
            to_thread=1,
            start_ns=600,
        )
        pushes = tuple(msgspec.structs.replace(push, **one) for one in changes)
        timeline = msgspec.structs.replace(
            timeline, pushes=pushes, threads={0: "Main", 1: "gv_autograd_0"}
        )
        return timeline_scene([timeline], TimelineView(**view))

    return scene


def test_a_push_goes_from_the_node_that_pushed_to_the_begin_of_the_one_pushed(pushed):
    scene = pushed({})

    (panel,) = scene.panels
    (arrow,) = panel.arrows
    first, second = panel.lanes
    assert (arrow.x, arrow.to_x) == (panel.scale.x(300), panel.scale.x(600))
    assert (arrow.y, arrow.to_y) == (first.rows[1].bottom, second.rows[0].top)
    assert arrow.tooltip.splitlines() == [
        "#1 MulBackward0 (id 101) goes to gv_autograd_0",
        "pushed by #5 MulBackward0 (id 105) on Main at 300 ns",
        "started 300 ns later",
    ]


def test_a_root_was_pushed_by_no_node(pushed):
    (arrow,) = pushed({"pushed_by": -1}).panels[0].arrows

    assert "pushed as a root on Main" in arrow.tooltip


def test_a_push_or_run_outside_the_shown_time_has_no_arrow(pushed):
    assert pushed({}, begin_ns=301).panels[0].arrows == ()
    assert pushed({}, end_ns=599).panels[0].arrows == ()
    assert len(pushed({}, begin_ns=300, end_ns=600).panels[0].arrows) == 1


def test_an_arrow_to_a_thread_that_is_not_shown_is_not_drawn(pushed):
    assert pushed({"to_thread": 7}).panels[0].arrows == ()


def test_of_very_many_arrows_neighbors_are_one(pushed):
    some = [{"pushed_ns": n, "start_ns": n} for n in range(1_000)]

    scene = pushed(*some)

    (panel,) = scene.panels
    assert 0 < len(panel.arrows) <= MAX_ARROWS
    assert sum(arrow.num for arrow in panel.arrows) == 1_000


def test_hostile_names_change_nothing_but_text(hostile, draw):
    def structure(picture):
        return [(one.tag, sorted(one.attrib)) for one in picture.iter()]

    bad = draw({}, names=(hostile, f"{hostile}2"), name=hostile)
    good = draw({}, names=("x", "x2"), name="x")
    assert structure(bad) == structure(good)


@pytest.fixture
def crossed(make_span, make_timeline):
    """The scene of two workers, the first of which sends the second gradients."""

    def scene(**changes):
        timeline = make_timeline(
            [make_span(0, 0, 500), make_span(5, 100, 400, row=1)],
            [make_span(1, 600, 700)],
            duration_ns=1_000,
            names=("rank 0 / Main", "rank 1 / gv_rpc_1_1"),
        )
        message = SentMessage(
            worker=0,
            peer=1,
            message=9,
            context=3,
            pass_id=2,
            size_bytes=48,
            task=4,
            node=105,
            thread=0,
            sent_ns=300,
            received_ns=450,
            to_node=101,
            to_task=4,
            to_thread=1,
            start_ns=600,
        )
        message = msgspec.structs.replace(message, **changes)
        timeline = msgspec.structs.replace(timeline, messages=(message,))
        return timeline_scene([timeline], TimelineView())

    return scene


def test_gradients_go_from_the_node_that_sent_them_to_the_one_that_ran_for_them(
    crossed,
):
    scene = crossed()

    (panel,) = scene.panels
    (arrow,) = panel.arrows
    first, second = panel.lanes
    assert arrow.kind == "send"
    assert (arrow.x, arrow.to_x) == (panel.scale.x(300), panel.scale.x(600))
    assert (arrow.y, arrow.to_y) == (first.rows[1].bottom, second.rows[0].top)
    assert arrow.tooltip.splitlines() == [
        "worker 0 sends gradients to worker 1",
        "48 B at 300 ns, came 150 ns later",
        "from #5 MulBackward0 (id 105)",
        "to #1 MulBackward0 (id 101), which started 150 ns after that",
    ]
    assert "gradients to another worker" in [one.item.text for one in scene.legend]


def test_gradients_that_came_before_they_left_say_that_clocks_disagree(crossed):
    (arrow,) = crossed(received_ns=200).panels[0].arrows

    assert "at 300 ns, came before it left: the clocks disagree" in arrow.tooltip


@pytest.mark.parametrize("lost", ["sent_ns", "received_ns", "start_ns"])
def test_gradients_of_which_an_end_is_lost_have_no_arrow(crossed, lost):
    assert crossed(**{lost: None}).panels[0].arrows == ()
