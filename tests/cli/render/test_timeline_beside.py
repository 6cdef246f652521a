"""``gradviz render timeline --beside``."""

import xml.etree.ElementTree as ET

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.capture.session import record
from tests.analysis.conftest import Story
from tests.cli.render.test_graph_difference import (
    UNREADABLE,
    is_refused,
    long,
    recorded,
    texts,
    unrelated,
)
from tests.render.svg_geometry import SVG


def drawn(call, *words):
    result = call("render", "timeline", *words, "-o", "-")
    assert result.exit_code == 0, result.stderr
    return result.stdout_bytes


def bars(svg: bytes) -> list[tuple[float, float, str, str]]:
    """The left edge, the upper edge, the fill and the tooltip of each bar."""
    return [
        (
            float(rect.get("x", 0)),
            float(rect.get("y", 0)),
            rect.get("fill", ""),
            group.find(f"{SVG}title").text or "",
        )
        for group in ET.fromstring(svg).iter(f"{SVG}g")
        for rect in group.findall(f"{SVG}rect")
        if group.find(f"{SVG}title") is not None
    ]


def written(path, *took_ns, num_passes=4):
    """A trace of passes of nodes that take so long, one after the other."""
    story = Story()
    for task in range(num_passes):
        at = 1_000_000 * task
        nodes = [
            story.node(10 * task + number, name=f"Op{number}Backward0")
            for number in range(len(took_ns))
        ]
        story.begin(task, nodes, at=at)
        for one, took in zip(nodes, took_ns, strict=True):
            story.ran(task, one, at=at + 10, until=at + 10 + took)
            at += 10 + took
        story.end(task, at=at + 10)
    path.write_bytes(story.contents())
    return path


def test_both_passes_stand_below_each_other_on_one_scale(tmp_path, call) -> None:
    quick = written(tmp_path / "quick.gvt", 1_000, 2_000, 1_000)
    slow = written(tmp_path / "slow.gvt", 1_000, 8_000, 1_000)

    svg = drawn(call, quick, "--beside", slow)

    shown = texts(svg)
    assert shown[0] == "A: quick.gvt → B: slow.gvt"
    assert [one for one in shown if one.startswith("A: quick.gvt · Backward pass 3: ")]
    assert [one for one in shown if one.startswith("B: slow.gvt · Backward pass 3: ")]
    assert "slower in B: 1 node" in shown
    assert "the same: 2 nodes" in shown
    assert "#1 Op1 slower: 2 µs → 8 µs (+300%)" in " ".join(shown)
    slower = [one for one in bars(svg) if "took 2 µs → 8 µs (+300%)" in one[3]]
    assert len(slower) == 2
    assert {fill for _, _, fill, _ in slower} == {"#d9822b"}
    (left, top, *_), (other_left, lower, *_) = slower
    assert left == other_left
    assert lower > top


def test_nodes_of_only_one_trace_are_drawn_as_gone_or_new(tmp_path, call) -> None:
    one = recorded(tmp_path / "one.gvt", nn.Linear(4, 4), nn.Sigmoid(), nn.ReLU())
    other = recorded(tmp_path / "other.gvt", nn.Linear(4, 4), nn.Tanh(), nn.ReLU())

    svg = drawn(call, one, "--beside", other)

    classes = [rect.get("class", "") for rect in ET.fromstring(svg).iter(f"{SVG}rect")]
    assert sum("gone" in one.split() for one in classes) == 2  # a bar, and the legend
    assert sum("new" in one.split() for one in classes) == 2
    assert "only in A: 1 node" in texts(svg)
    assert "only in B: 1 node" in texts(svg)


def test_the_border_of_a_narrow_bar_leaves_its_color_to_be_seen(tmp_path, call) -> None:
    one = written(tmp_path / "one.gvt", 4_000, 4_000)
    other = written(tmp_path / "other.gvt", 4_000, 4_000, 4_000, *[40] * 4)

    svg = drawn(call, one, "--beside", other)

    rects = [*ET.fromstring(svg).iter(f"{SVG}rect")]
    new = [rect for rect in rects if "new" in rect.get("class", "").split()]
    wide = [rect for rect in new if float(rect.get("width")) > 100]
    narrow = [rect for rect in new if float(rect.get("width")) < 4]
    assert len(wide) == 1
    assert len(narrow) == 4
    assert {rect.get("style") for rect in wide} == {None}
    assert {rect.get("style") for rect in narrow} == {"stroke-width: 0.6"}


def test_other_colors_may_be_asked_for(tmp_path, call) -> None:
    path = written(tmp_path / "one.gvt", 1_000, 2_000)

    svg = drawn(call, path, "--beside", path, "--color", "time")

    assert not [one for one in texts(svg) if one.startswith("the same")]
    assert "took 1 µs" in texts(svg)


def test_steps_stand_beside_steps(tmp_path, call) -> None:
    def steps(path):
        model = nn.Linear(4, 1)
        optimizer = gv.optim.SGD(model.parameters(), lr=0.1)
        with record(path):
            for _ in range(2):
                optimizer.zero_grad()
                model(gv.ones(2, 4)).sum().backward()
                optimizer.step()
        return path

    one, other = steps(tmp_path / "one.gvt"), steps(tmp_path / "other.gvt")

    shown = texts(drawn(call, one, "--beside", other, "--step", "all"))

    heads = [text.partition(":")[0] + text.partition("·")[2][:7] for text in shown]
    found = [one for one in heads if "Step" in one]
    assert found == ["A Step 0", "B Step 0", "A Step 1", "B Step 1"]


def test_pytorch_stands_beside_ours(tmp_path, call) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = tmp_path / "ours.gvt", tmp_path / "theirs.gvt"
    recorded(ours, nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    layers = (torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    with gv.pytorch.record(theirs):
        torch.nn.Sequential(*layers)(torch.ones(2, 4)).sum().backward()

    shown = texts(drawn(call, ours, "--beside", theirs))

    assert shown[0] == "A: ours.gvt → B: theirs.gvt"
    assert not [one for one in shown if one.startswith("only in")]


def test_unrelated_passes_are_drawn_and_said_to_be_unrelated(tmp_path, call) -> None:
    result = call(
        *("render", "timeline", long(tmp_path), "--beside", unrelated(tmp_path)),
        *("-o", "x.svg"),
    )

    words = "have too little in common to be compared"
    assert result.exit_code == 0
    assert result.stderr.count(words) == 1
    shown = texts((tmp_path / "x.svg").read_bytes())
    assert not [one for one in shown if one.startswith(("only in", "the same"))]


@pytest.mark.parametrize(("other", "words"), UNREADABLE)
def test_another_trace_that_cannot_be_read_is_an_error_of_a_line(
    tmp_path, call, other, words
) -> None:
    name = other(tmp_path).name
    result = call("render", "timeline", long(tmp_path), "--beside", name, "-o", "x.svg")

    assert is_refused(result, words), result.stderr
    assert not (tmp_path / "x.svg").exists()
