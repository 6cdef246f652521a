import re
import xml.etree.ElementTree as ET

import msgspec
import pytest

from gradviz.analysis.stream_waits import StreamWait
from gradviz.render.timeline_svg import render_timeline
from gradviz.render.wait_arrows import MAX_ARROWS

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
    paths = [one for one in picture.iter(f"{SVG}path") if one.get("class") == "arrow"]
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
    assert "for the gradient of node 7\n" in told
    assert "asked for by multiply, node 101\n" in told
    assert "arrows: 1 wait of a stream for another" in told


def test_a_wait_that_the_program_asked_for_names_no_node(draw):
    told = everything(draw({"node": -1, "producer": -1}))

    assert "sim:0/1 waits for sim:0/0\nready at 40 ns" in told


def test_without_waits_nothing_is_said_of_arrows(draw):
    picture = draw()

    assert arrows(picture) == []
    assert "arrow" not in everything(picture)
    assert not list(picture.iter(f"{SVG}marker"))


def test_too_many_waits_are_counted_but_not_drawn(draw):
    most = draw(*[{}] * MAX_ARROWS)
    too_many = draw(*[{}] * (MAX_ARROWS + 1))

    assert len(arrows(most)) == MAX_ARROWS
    assert arrows(too_many) == []
    assert "301 waits of streams for others, too many to draw" in everything(too_many)


def test_hostile_names_change_nothing_but_text(hostile, draw):
    def structure(picture):
        return [(one.tag, sorted(one.attrib)) for one in picture.iter()]

    bad = draw({}, names=(hostile, f"{hostile}2"), name=hostile)
    good = draw({}, names=("x", "x2"), name="x")
    assert structure(bad) == structure(good)
