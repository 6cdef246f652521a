"""Films of replays: SVG in which screens follow each other."""

import re
from xml.etree import ElementTree as ET

from gradviz.render.replay.film import film
from gradviz.render.style import PALETTE
from tests.render.replay.conftest import replay_of

SVG = "{http://www.w3.org/2000/svg}"


def shown_at(root, part):
    """The texts that are seen after that part of the film."""
    found = []
    for group in root.findall(f"{SVG}g"):
        move = group.find(f"{SVG}animate")
        seen = group.get("display") is None
        if move is not None:
            times = [float(one) for one in move.get("keyTimes").split(";")]
            values = move.get("values").split(";")
            seen = [v for t, v in zip(times, values, strict=True) if t <= part][-1]
            seen = seen == "inline"
        if seen:
            found += [text.text for text in group.findall(f"{SVG}text")]
    return " ".join(found)


def test_each_event_is_seen_in_its_time_and_no_other(busy):
    root = ET.fromstring(film(busy, range(6), seconds=0.5))

    for place in range(6):
        text = shown_at(root, (place + 0.5) / 6)
        assert re.findall(r"event (\d+)/21", text) == [str(place + 1)]
    assert {one.get("dur") for one in root.iter(f"{SVG}animate")} == {"3s"}


def test_a_film_without_animation_shows_the_first_screen(busy):
    root = ET.fromstring(film(busy, [3, 4]))
    still = [one for one in root.findall(f"{SVG}g") if one.get("display") is None]
    texts = " ".join(t.text for one in still for t in one.findall(f"{SVG}text"))

    assert "event 4/21" in texts
    assert "event 5/21" not in texts


def test_the_line_of_the_event_has_its_color(busy):
    root = ET.fromstring(film(busy, [4]))
    (said,) = (one for one in root.iter(f"{SVG}text") if "thread 0" in (one.text or ""))

    assert said.text == "thread 0 MainThread: #0 Mul (5) started."
    assert said.get("style") == f"fill: {PALETTE[2]}; font-weight: 700"


def test_names_are_text(story):
    node = story.node(1, name='</text><script>"&')
    story.begin(0, [node], at=0)
    story.push(0, node, at=10)
    root = ET.fromstring(film(replay_of(story), [2]))

    tags = {one.tag for one in root.iter()} - {f"{SVG}animate"}
    assert tags == {
        f"{SVG}{tag}" for tag in ("svg", "title", "style", "rect", "g", "text")
    }
    assert any('</text><script>"&' in (one.text or "") for one in root.iter())
