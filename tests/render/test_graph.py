import pytest

from gradviz.errors import MissingToolError, RenderTimeoutError, UserError
from gradviz.render import graph as door
from gradviz.render import graphviz
from gradviz.render.graph import dot_cost, render_graph
from gradviz.render.scene import build_scene

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

    def run(self, source, engine, format, timeout_s):  # noqa: A002 - the real one's
        self.runs.append((engine, format))
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
def test_pixels_without_graphviz_are_refused(step, format_, no_graphviz):
    with pytest.raises(MissingToolError, match=f"a {format_} file needs Graphviz"):
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
def test_when_dot_fails_our_own_layout_is_used_and_said(
    step, answer, note, fake_graphviz
):
    fake_graphviz(answer)

    drawn = render_graph(step)

    assert drawn.engine == "own"
    assert drawn.note.startswith(note)
    assert drawn.data.startswith(b"<?xml")


def test_when_dot_was_asked_for_its_failure_is_an_error(step, fake_graphviz):
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


def test_a_picture_of_pixels_is_drawn_as_it_was_laid_out(step, fake_graphviz):
    fake = fake_graphviz(b"pixels")

    drawn = render_graph(step, format="png", engine="own")

    assert (drawn.data, drawn.engine) == (b"pixels", "own")
    assert fake.runs == [("nop2", "png")]


@needs_graphviz
@pytest.mark.parametrize("engine", ["dot", "own"])
@pytest.mark.parametrize("format_", door.FORMATS)
def test_real_graphviz_draws_every_format(step, engine, format_):
    drawn = render_graph(step, format=format_, engine=engine)

    assert drawn.data.startswith(SIGNATURES[format_])


@needs_graphviz
def test_real_graphviz_draws_hostile_names(hostile_graph):
    for format_ in ("svg", "png"):
        drawn = render_graph(hostile_graph, format=format_, engine="dot")
        assert drawn.data.startswith(SIGNATURES[format_])


@needs_graphviz
def test_real_dot_lays_out_what_we_would(step):
    drawn = render_graph(step)

    assert (drawn.engine, drawn.note) == ("dot", "the graph is small enough for it")
    assert drawn.data.count(b"<title>") == 1 + len(step.nodes)
