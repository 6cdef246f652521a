"""docs/gallery.md shows what its commands draw."""

import re

import pytest

from gradviz.trace.reading.reader import load_trace
from tests.docs.gallery import PAGE, PICTURES, commands, draw
from tests.render.svg_geometry import faults, read_drawing

SHOWN = re.compile(r"^!\[([^\]]{20,})\]\(((?:gallery|images)/[\w.-]+)\)$", re.MULTILINE)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return list(draw(tmp_path_factory.mktemp("gallery")))


def test_each_picture_is_what_its_command_draws(drawn):
    changed = [
        kept.name for one, kept in drawn if one.read_bytes() != kept.read_bytes()
    ]

    assert changed == [], "draw them anew: make gallery"


def test_each_picture_is_shown_with_words_for_those_who_do_not_see_it(drawn):
    shown = [name for _, name in SHOWN.findall(PAGE.read_text())]

    assert shown == [f"{one.parent.resolve().name}/{one.name}" for one, _ in drawn]


def test_nothing_lies_among_the_pictures_that_no_command_writes():
    assert {one.name for one in PICTURES.iterdir()} == {
        command.written for command in commands() if "/" not in command.written
    }


def test_each_trace_is_whole_and_of_the_examples():
    for trace in map(load_trace, sorted(PICTURES.glob("*.gvt"))):
        assert trace.losses.is_complete
        assert trace.tasks


def test_nothing_is_wrong_with_a_picture_of_a_graph():
    graphs = sorted(PICTURES.glob("*-graph.svg"))

    assert len(graphs) > 5
    for one in graphs:
        assert faults(read_drawing(one.read_bytes())) == [], one.name
