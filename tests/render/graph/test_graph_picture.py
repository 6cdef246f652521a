import re

import pytest

from gradviz.errors import MissingToolError, RenderTimeoutError, UserError
from gradviz.render import conversion
from gradviz.render.graph import graph_picture as door
from gradviz.render.graph import graphviz
from gradviz.render.graph.graph_picture import dot_cost, render_graph
from gradviz.render.graph.graph_scene import build_scene
from tests.sampled import sampled

needs_graphviz = pytest.mark.skipif(
    not graphviz.is_available(), reason="neither dot nor pygraphviz is here"
)

#: How files of each format begin.
SIGNATURES = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF", "dot": b"digraph"}


class FakeGraphviz:
    """Answers every run alike: with bytes, or with an error."""

    def __init__(self, answer):
        self.answer = answer
        self.runs = []

    def run(self, source, format, timeout_s):  # noqa: A002 - the real one's
        self.runs.append(format)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def fake_graphviz(monkeypatch):
    def install(answer):
        fake = FakeGraphviz(answer)
        monkeypatch.setattr(graphviz, "run", fake.run)
        monkeypatch.setattr(graphviz, "is_available", lambda: True)
        return fake

    return install


@pytest.fixture
def no_graphviz(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(graphviz, "_has_pygraphviz", lambda: False)


@pytest.mark.parametrize("format_", ["svg", "dot"])
def test_svg_and_dot_text_need_no_tool(step, format_, no_graphviz):
    drawn = render_graph(step, format=format_)

    assert drawn.data.startswith(SIGNATURES[format_])


def test_without_dot_our_own_layout_is_used_and_said(step, no_graphviz):
    drawn = render_graph(step)

    assert (drawn.engine, drawn.note) == ("own", "there is no dot")


@pytest.mark.parametrize("format_", ["png", "pdf"])
def test_png_and_pdf_without_their_tool_are_refused(step, format_, monkeypatch):
    monkeypatch.setattr(conversion, "is_available", lambda: False)

    with pytest.raises(MissingToolError, match=f"a {format_} file of this picture"):
        render_graph(step, format=format_)


def test_dot_that_was_asked_for_and_is_missing_is_an_error(step, no_graphviz):
    with pytest.raises(MissingToolError):
        render_graph(step, engine="dot")


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (RenderTimeoutError("slow"), "dot took longer than 20 s"),
        (UserError("broken"), "dot failed: broken"),
        (b"nonsense", "dot failed: dot gave an unexpected answer"),
    ],
)
def test_our_own_layout_replaces_a_failing_dot_and_says_so(
    step, answer, note, fake_graphviz
):
    fake_graphviz(answer)

    drawn = render_graph(step)

    assert drawn.engine == "own"
    assert drawn.note.startswith(note)
    assert drawn.data.startswith(b"<?xml")


def test_a_failure_of_dot_is_an_error_if_dot_was_asked_for(step, fake_graphviz):
    fake_graphviz(RenderTimeoutError("slow"))

    with pytest.raises(RenderTimeoutError):
        render_graph(step, engine="dot")


def test_dot_is_not_tried_with_too_many_nodes(make_graph, fake_graphviz):
    fake = fake_graphviz(b"")

    drawn = render_graph(make_graph(1_501, []))

    assert (drawn.engine, fake.runs) == ("own", [])
    assert drawn.note == "1,501 nodes are too many for dot"


def test_dot_is_not_tried_with_edges_across_many_ranks(make_graph, fake_graphviz):
    fake = fake_graphviz(b"")
    chain = [(index, index + 1) for index in range(200)]
    hub = [(index, 200) for index in range(100)]

    drawn = render_graph(make_graph(201, [*chain, *hub]))

    assert (drawn.engine, fake.runs) == ("own", [])
    assert "too long" in drawn.note


def test_the_cost_of_dot_counts_nodes_and_long_edges_only(make_graph):
    chain = [(index, index + 1) for index in range(20)]

    graph = make_graph(21, [*chain, (0, 10), (0, 20)])

    assert dot_cost(build_scene(graph)) == 21 + 20


#: What dot says of a chain of two nodes, the first of which stands at `x`.
PLAIN = (
    "graph 1 {wide} 3\n"
    'node n0 {x} 2.5 1 0.5 "" solid box black lightgrey\n'
    'node n1 {x} 0.5 1 0.5 "" solid box black lightgrey\n'
    "edge n0 n1 4 {x} 2.25 {x} 2 {x} 1 {x} 0.75 solid black\n"
    "stop\n"
)


@pytest.mark.parametrize(
    ("wide", "x", "engine", "note"),
    [
        (0.5, 0.25, "dot", "smaller than our own"),
        (9, 1, "own", "that of dot is no smaller"),
        (20, 12, "own", "that of dot begins beyond the first screen"),
    ],
)
def test_the_smaller_picture_is_taken_if_it_begins_on_the_first_screen(
    make_graph, fake_graphviz, wide, x, engine, note
):
    fake_graphviz(PLAIN.format(wide=wide, x=x).encode())

    drawn = render_graph(make_graph(2, [(0, 1)]))

    assert (drawn.engine, drawn.note) == (engine, note)


def test_a_picture_is_scaled_to_fit_and_says_so(step):
    whole = shown_size(render_graph(step, engine="own"))

    drawn = render_graph(step, engine="own", fit=(200, 5_000))

    wide, high = shown_size(drawn)
    assert wide == 200
    assert high == pytest.approx(whole[1] * 200 / whole[0], abs=1)
    assert drawn.note == (
        f"asked for; scaled to {200 / whole[0]:.0%} of {whole[0]} x {whole[1]}"
    )


def test_a_picture_that_fits_stays_as_it_is(step):
    drawn = render_graph(step, engine="own", fit=(5_000, 5_000))

    assert drawn == render_graph(step, engine="own")


def test_a_png_says_how_many_pixels_it_has(step):
    wide, high = shown_size(render_graph(step, engine="own"))

    drawn = render_graph(step, format="png", engine="own")

    assert drawn.note == f"asked for; {2 * wide:,} x {2 * high:,} pixels"


def test_a_png_of_too_many_pixels_is_scaled_and_says_so(step, monkeypatch):
    monkeypatch.setattr(door, "MAX_PIXELS", 10_000)

    drawn = render_graph(step, format="png", engine="own")

    assert "scaled to " in drawn.note


def shown_size(drawn):
    wide, high = re.search(rb'width="(\d+)" height="(\d+)"', drawn.data).groups()
    return int(wide), int(high)


@needs_graphviz
@pytest.mark.parametrize("engine", ["dot", "own"])
@pytest.mark.parametrize("format_", door.FORMATS)
def test_real_graphviz_draws_every_format(step, engine, format_):
    drawn = render_graph(step, format=format_, engine=engine)

    assert drawn.data.startswith(SIGNATURES[format_])


@needs_graphviz
@pytest.mark.parametrize("format_", sampled(["svg", "png"], 2))
def test_real_graphviz_draws_hostile_names(hostile_graph, format_):
    drawn = render_graph(hostile_graph, format=format_, engine="dot")
    assert drawn.data.startswith(SIGNATURES[format_])


@needs_graphviz
def test_real_dot_lays_out_what_we_would(step):
    drawn = render_graph(step)

    assert drawn.note in {"smaller than our own", "that of dot is no smaller"}
    assert drawn.data.count(b"<title>") == 1 + len(step.nodes)
