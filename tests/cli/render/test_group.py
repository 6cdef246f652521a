import re
import stat
import xml.etree.ElementTree as ET

import click
import pytest

import gradviz as gv
from gradviz import nn
from gradviz.cli.render.group import Render
from gradviz.render import conversion
from tests.analysis.conftest import Story
from tests.analysis.reentrant import Inner
from tests.analysis.sent_messages import crossing


def test_a_graph_is_drawn_beside_where_one_stands(trace_path, call, tmp_path) -> None:
    result = call("render", "graph", trace_path)

    picture = tmp_path / "gradviz-graph-two.svg"
    assert (result.exit_code, result.stdout) == (0, "")
    assert "gradviz-graph-two.svg" in result.stderr
    assert ET.parse(picture).getroot().tag.endswith("svg")
    assert stat.S_IMODE(picture.stat().st_mode) & stat.S_IRUSR


def test_a_timeline_is_drawn_beside_where_one_stands(trace_path, call, tmp_path):
    result = call("render", "timeline", trace_path)

    picture = tmp_path / "gradviz-timeline-two.svg"
    assert (result.exit_code, result.stdout) == (0, "")
    assert ET.parse(picture).getroot().tag.endswith("svg")


@pytest.mark.parametrize("picture", ["graph", "timeline", "queues", "memory"])
def test_a_dash_draws_to_stdout(picture, trace_path, call, tmp_path) -> None:
    result = call("render", picture, trace_path, "-o", "-")

    assert ET.fromstring(result.stdout_bytes).tag.endswith("svg")
    assert result.stderr.startswith("gradviz: drew stdout: ")
    assert [one.name for one in tmp_path.iterdir()] == ["two.gvt"]


def test_a_page_is_written_beside_where_one_stands(trace_path, call, tmp_path):
    result = call("render", "report", trace_path)

    page = (tmp_path / "gradviz-report-two.html").read_text()
    assert (result.exit_code, result.stdout) == (0, "")
    assert "wrote gradviz-report-two.html: 1 pass, 4 nodes" in result.stderr
    assert page.startswith("<!doctype html>")
    assert "<title>two.gvt · gradviz</title>" in page


def test_a_page_counts_a_pass_of_several_workers_once(call, tmp_path) -> None:
    story, path = Story(), tmp_path / "workers.gvt"
    crossing(story, lambda body: body())
    path.write_bytes(story.contents())

    result = call("render", "report", path)

    assert ": 1 pass, 2 nodes" in result.stderr


def test_a_page_is_html_and_nothing_else(trace_path, call) -> None:
    result = call("render", "report", trace_path, "-o", "x.svg")

    assert result.exit_code == 2
    assert "html" in result.stderr


@pytest.mark.parametrize("picture", ["graph", "timeline", "queues", "memory"])
def test_a_picture_that_exists_is_refused_without_force(
    picture, trace_path, call, tmp_path
) -> None:
    (tmp_path / "x.svg").write_text("precious")

    refused = call("render", picture, trace_path, "-o", "x.svg")
    kept = (tmp_path / "x.svg").read_text()
    forced = call("render", picture, trace_path, "-o", "x.svg", "-f")

    assert (refused.exit_code, kept) == (1, "precious")
    assert "-f" in refused.stderr
    assert forced.exit_code == 0
    assert ET.parse(tmp_path / "x.svg").getroot().tag.endswith("svg")


def test_the_parts_of_a_model_are_framed_or_drawn_as_boxes(call, tmp_path) -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.Linear(2, 1))
    nn.name_root(model, "framed")
    with gv.record(tmp_path / "model.gvt"):
        model(gv.ones(3, 2)).sum().backward()

    whole = call("render", "graph", "-o", "-").stdout
    parts = call("render", "graph", "--collapse", "1", "-o", "-").stdout

    assert ">framed</text>" in whole
    assert ">0</text>" in whole  # within it
    assert "AddmmBackward0" in whole
    assert ">framed</text>" in parts
    assert ">0</text>" in parts
    assert "made by framed.0" in parts
    shown = re.sub("<title>.*?</title>", "", parts, flags=re.DOTALL)
    assert "AddmmBackward0" not in shown


def test_of_a_big_graph_an_overview_is_drawn_unless_all_is_asked_for(call, tmp_path):
    layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(40))
    x = gv.ones(3, 2)
    with gv.record(tmp_path / "model.gvt"):
        for layer in layers:
            x = layer(x).tanh()
        x.sum().backward()

    overview = call("render", "graph", "-o", "-")
    whole = call("render", "graph", "-o", "-", "--no-collapse")

    assert "--no-collapse" in overview.stderr
    assert "What repeats is drawn once" in overview.stdout
    assert ">TanhBackward0 \N{MULTIPLICATION SIGN}40</text>" in overview.stdout
    assert "What repeats" not in whole.stdout
    assert len(re.findall(">TanhBackward0</text>", whole.stdout)) == 40


def test_nodes_beyond_the_limit_are_counted_in_the_picture_and_on_stderr(
    call, tmp_path
):
    record_chain(tmp_path / "chain.gvt")

    result = call("render", "graph", "chain.gvt", "--max-nodes", "2", "-qo", "-")

    said = "too much for one picture: 3 nodes and 3 edges are left out"
    assert result.stderr.splitlines() == [f"gradviz: {said}"]
    assert "2 nodes · 1 edge" in result.stdout
    assert "3 more left out · 3 edges left out" in result.stdout


def test_chains_are_drawn_as_boxes_of_several_nodes(call, tmp_path) -> None:
    record_chain(tmp_path / "chain.gvt")

    result = call("render", "graph", "chain.gvt", "--contract", "-o", "chain.svg")

    assert "drew chain.svg: 5 nodes in 1 box" in result.stderr
    shown = ET.parse(tmp_path / "chain.svg").getroot().itertext()
    assert "SumBackward0 → … → AccumulateGrad" in shown


@pytest.mark.parametrize("limit", ["0", "20001", "all"])
def test_a_limit_of_nodes_has_limits(limit, trace_path, call) -> None:
    result = call("render", "graph", trace_path, "--max-nodes", limit)

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def record_chain(path) -> None:
    """Records a pass of five nodes in a row."""
    with gv.record(path):
        gv.ones(3, requires_grad=True).sin().cos().exp().sum().backward()


@pytest.mark.parametrize("picture", ["graph", "timeline", "queues", "memory"])
def test_quiet_says_nothing(picture, trace_path, call) -> None:
    assert call("render", picture, trace_path, "-q").output == ""


@pytest.mark.parametrize("picture", ["graph", "timeline", "queues", "memory"])
@pytest.mark.parametrize("name", ["x.jpeg", "x", "x.gvt"])
def test_an_unknown_suffix_is_a_usage_error(picture, name, trace_path, call) -> None:
    result = call("render", picture, trace_path, "-o", name)

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert ".svg" in result.stderr


@pytest.mark.parametrize(("suffix", "begin"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_timeline_is_drawn_as_the_suffix_says(
    suffix, begin, trace_path, call, tmp_path
) -> None:
    pytest.importorskip("typst")

    result = call("render", "timeline", trace_path, "-o", f"x.{suffix}")

    assert result.exit_code == 0
    assert (tmp_path / f"x.{suffix}").read_bytes().startswith(begin)


@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_a_timeline_that_needs_a_missing_tool_is_4(
    suffix, trace_path, call, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(conversion, "is_available", lambda: False)

    result = call("render", "timeline", trace_path, "-o", f"x.{suffix}")

    assert result.exit_code == 4
    assert len(result.stderr.splitlines()) == 1
    assert "pip install 'gradviz[pictures]'" in result.stderr
    assert not (tmp_path / f"x.{suffix}").exists()


def test_dot_text_needs_no_tool(trace_path, call, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")

    result = call("render", "graph", trace_path, "-o", "x.dot")

    assert result.exit_code == 0
    assert (tmp_path / "x.dot").read_text().startswith("digraph")


@pytest.mark.parametrize("color", ["device", "time"])
def test_a_graph_is_colored_by(color, trace_path, call) -> None:
    result = call("render", "graph", trace_path, "-o", "-", "--color", color)

    assert result.exit_code == 0


def test_our_own_layout_needs_no_tool(trace_path, call, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")

    result = call("render", "graph", trace_path, "--engine", "own")

    assert result.exit_code == 0


def test_a_missing_dot_that_was_asked_for_is_4(trace_path, call, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(__import__("sys").modules, "pygraphviz", None)

    result = call("render", "graph", trace_path, "--engine", "dot")

    assert result.exit_code == 4
    assert len(result.stderr.splitlines()) == 1


def test_one_graph_shows_one_pass(trace_path, call) -> None:
    result = call("render", "graph", trace_path, "--pass", "all")

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("picture", ["graph", "timeline", "queues", "memory"])
def test_markup_of_a_program_is_plain_text_in_a_picture(
    picture, failed_path, call
) -> None:
    result = call("render", picture, failed_path, "-o", "-")

    ET.fromstring(result.stdout_bytes)
    assert b"<b>" not in result.stdout_bytes


@pytest.mark.parametrize("picture", ["graph", "timeline"])
def test_a_trace_without_a_pass_has_no_picture(
    picture, call, tmp_path, record_empty
) -> None:
    record_empty(tmp_path / "empty.gvt")

    result = call("render", picture, "empty.gvt")

    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert "backward" in result.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--around", "SinBackward0:9"), "no 'SinBackward0:9'"),
        (("--around", "Sinn"), "Did you mean"),
        (("--between", "Sum", "Nobody"), "no node 'Nobody'"),
    ],
)
def test_a_node_that_means_none_is_one_sentence(options, said, call, tmp_path):
    record_chain(tmp_path / "chain.gvt")

    result = call("render", "graph", "chain.gvt", *options)

    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_parts_of_a_graph_are_drawn_and_the_rest_is_said_in_the_picture(call, tmp_path):
    record_chain(tmp_path / "chain.gvt")

    near = call("render", "graph", "--around", "Cos", "--radius", "1", "-o", "-")
    way = call("render", "graph", "--between", "Exp", "Sin", "-o", "-")
    path = call("render", "graph", "--critical-only", "-o", "-")

    assert "Only what is 1 edge around CosBackward0" in near.stdout
    assert "Only what is between ExpBackward0" in way.stdout
    assert "critical path" in path.stdout


def test_passes_and_steps_are_drawn_one_below_the_other(trace_path, call) -> None:
    apart = call("render", "timeline", "--pass", "all", "--each", "-qo", "-").stdout
    steps = call("render", "timeline", "--step", "0-1", "-qo", "-").stdout
    together = call("render", "timeline", "--pass", "all", "-qo", "-").stdout

    assert len(re.findall(r">Backward pass \d+: ", apart)) == 2
    assert re.findall(r">Step (\d+): ", steps) == ["0", "1"]
    assert "calls 2 passes" in together


def test_a_part_of_a_timeline_is_drawn_as_wide_as_asked_for(trace_path, call) -> None:
    options = ("--from", "1us", "--to", "2us", "--width", "1600", "--color", "time")
    result = call("render", "timeline", trace_path, *options, "-qo", "-")

    assert ET.fromstring(result.stdout_bytes).get("width") == "1600"
    assert ">1.1 µs<" in result.stdout


@pytest.mark.parametrize(
    "options",
    [
        ("--from", "2us", "--until", "1us"),
        ("--from", "100s"),
        ("--from", "soon"),
        ("--width", "3"),
        ("--step", "7-9"),
        ("--step", "1-x"),
        ("--color", "blue"),
    ],
)
def test_options_that_make_no_sense_are_usage_errors_in_one_line(
    options, trace_path, call
) -> None:
    result = call("render", "timeline", trace_path, *options)

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("picture", ["queues", "memory"])
@pytest.mark.parametrize(("suffix", "begin"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_queues_and_memory_are_drawn_as_the_suffix_says(
    picture, suffix, begin, trace_path, call, tmp_path
) -> None:
    pytest.importorskip("typst")

    result = call("render", picture, trace_path, "-o", f"x.{suffix}")

    assert (result.exit_code, result.stdout) == (0, "")
    assert f"drew x.{suffix}: the {picture} of 1 pass" in result.stderr
    assert (tmp_path / f"x.{suffix}").read_bytes().startswith(begin)


@pytest.mark.parametrize("picture", ["queues", "memory"])
def test_several_passes_are_drawn_one_below_the_other(picture, trace_path, call):
    result = call("render", picture, trace_path, "--pass", "all", "-o", "-")

    shown = [*ET.fromstring(result.stdout_bytes).itertext()]
    assert any("of 2 backward passes" in one for one in shown)
    assert sum(one.startswith("Backward pass ") for one in shown) == 2


@pytest.mark.parametrize("picture", ["queues", "memory"])
def test_a_part_of_the_time_is_drawn_as_wide_as_it_is_wanted(picture, trace_path, call):
    options = ("--from", "1us", "--to", "5us", "--width", "500")

    result = call("render", picture, trace_path, *options, "-o", "-")

    root = ET.fromstring(result.stdout_bytes)
    assert root.get("width") == "500"
    assert any("1 µs to 5 µs after the start" in one for one in root.itertext())


def options_of(picture: str) -> list[dict[str, object]]:
    command = Render("render").get_command(click.Context(click.Group()), picture)
    assert command is not None
    infos = [one.to_info_dict() for one in command.params if one.name != "output"]
    # Each command has variables of its own, which options get as they are asked for.
    return [{**info, "envvar": None} for info in infos]


def test_pictures_over_time_have_the_same_options_and_a_timeline_has_more() -> None:
    timeline = options_of("timeline")

    assert options_of("queues") == options_of("memory")
    assert [one for one in options_of("queues") if one not in timeline] == []
    more = [one["name"] for one in timeline if one not in options_of("queues")]
    assert more == [
        *("step", "is_each", "other", "color_by", "has_queues", "has_threads")
    ]


@pytest.mark.parametrize("picture", ["graph", "timeline", "queues", "memory"])
def test_a_format_that_needs_a_missing_tool_is_refused_before_anything_is_read(
    picture, call, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(conversion, "is_available", lambda: False)
    (tmp_path / "bad.gvt").write_bytes(b"no trace")

    result = call("render", picture, "bad.gvt", "-o", "x.png")

    assert result.exit_code == 4
    assert "pip install 'gradviz[pictures]'" in result.stderr


@pytest.mark.parametrize("picture", ["queues", "memory"])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--from", "2ms", "--until", "1ms"), "--until must be later than --from"),
        (("--from", "500s"), "there is nothing 500,000,000,000 ns after the start"),
        (("--width", "20"), "400"),
        (("--from", "soon"), "is not a time"),
    ],
)
def test_a_part_that_makes_no_sense_is_a_usage_error(
    picture, options, told, trace_path, call
) -> None:
    result = call("render", picture, trace_path, *options)

    assert result.exit_code == 2
    assert told in result.stderr.splitlines()[-1]


def test_of_several_passes_those_that_end_before_are_left_out_and_told(call, tmp_path):
    story = Story()
    node = story.node(0)
    for task, took in ((0, 10), (1, 500)):
        story.begin(task, [node], at=1_000 * task)
        story.push(task, node, at=1_000 * task + 1)
        story.pop(task, node, at=1_000 * task + 2)
        story.end(task, at=1_000 * task + took)
    (tmp_path / "two.gvt").write_bytes(story.contents())

    result = call(
        "render", "queues", "two.gvt", "--pass", "all", "--from", "100ns", "-o", "-"
    )

    assert "1 pass that ended before is not drawn" in result.stderr
    assert "Ready queues of backward pass 1" in result.stdout


@pytest.mark.parametrize("kind", ["queues", "memory", "timeline"])
def test_a_program_from_the_command_line_has_no_name_in_a_picture(
    kind, call, monkeypatch
):
    monkeypatch.setattr("sys.argv", ["-c"])
    with gv.record("line.gvt"):
        gv.ones(2, requires_grad=True).sum().backward()

    result = call("render", kind, "line.gvt", "-o", "-")

    told = " ".join(ET.fromstring(result.stdout_bytes).itertext())
    assert "backward pass" in told.lower()
    assert "-c" not in told


def test_passes_that_are_not_drawn_inside_are_said(call, tmp_path) -> None:
    with gv.record(tmp_path / "calls.gvt"):
        Inner.apply(gv.ones(1, requires_grad=True)).sum().backward()

    every = call("render", "graph", "calls.gvt", "-o", "-")
    chains = call("render", "graph", "calls.gvt", "--contract", "-o", "-")

    assert "not drawn" not in every.stderr
    assert "1 pass inside not drawn: --pass N draws one alone" in chains.stderr
    assert "1 pass inside not drawn" in chains.stdout


def test_a_graph_is_scaled_to_fit_and_the_command_says_so(call, trace_path) -> None:
    result = call("render", "graph", trace_path, "-o", "x.svg", "--fit", "300x100")

    assert result.exit_code == 0
    assert "scaled to " in result.stderr


@pytest.mark.parametrize("size", ["300", "0x5", "3x-1", "axb", "1e3x5", "\u0663x3", ""])
def test_a_size_to_fit_that_is_none_is_refused(size, call, trace_path) -> None:
    result = call("render", "graph", trace_path, "-o", "x.svg", "--fit", size)

    assert result.exit_code == 2
    assert "as 1920x1080" in result.stderr
