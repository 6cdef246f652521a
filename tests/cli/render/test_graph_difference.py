"""``gradviz render graph --diff``."""

import re
import xml.etree.ElementTree as ET

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.capture.session import record
from gradviz.trace.reading.reader import load_trace
from tests.cli.conftest import record_backwards
from tests.render.svg_geometry import SVG, faults, read_drawing


def recorded(path, *layers):
    gv.manual_seed(0)
    with record(path):
        nn.Sequential(*layers)(gv.ones(2, 4)).sum().backward()
    return path


@pytest.fixture
def two(tmp_path):
    """A model without its dropout, with a tanh and a wider layer."""
    return (
        recorded(
            tmp_path / "before.gvt",
            *(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4), nn.Sigmoid()),
        ),
        recorded(
            tmp_path / "after.gvt",
            *(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4), nn.Tanh()),
        ),
    )


def drawn(call, *words):
    result = call("render", "graph", *words, "-o", "-")
    assert result.exit_code == 0, result.stderr
    return result.stdout_bytes


def texts(svg: bytes) -> list[str]:
    return [one.text or "" for one in ET.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("engine", ["own", "auto"])
def test_one_picture_tells_what_differs(two, call, engine) -> None:
    svg = drawn(call, two[0], "--diff", two[1], "--engine", engine)

    shown = texts(svg)
    assert faults(read_drawing(svg)) == []
    assert re.fullmatch(r"A: before.gvt, pass \d+ → B: after.gvt, pass \d+", shown[0])
    assert "only in A: 1 node, 2 edges" in shown
    assert "only in B: 1 node, 2 edges" in shown
    assert any(one.startswith("changed: ") for one in shown)
    assert "inputs: float32[2, 8] → float32[2, 16]" in " ".join(shown)
    assert shown.count("only in A") == shown.count("only in B") == 1
    classes = [one.get("class") for one in ET.fromstring(svg).iter(f"{SVG}path")]
    assert (classes.count("gone"), classes.count("new")) == (2, 2)


def test_the_other_way_round_it_is_the_other_way_round(two, call) -> None:
    there = texts(drawn(call, two[0], "--diff", two[1]))
    back = texts(drawn(call, two[1], "--diff", two[0]))

    titles = {"SigmoidBackward0": "only in A", "TanhBackward0": "only in B"}
    for name, words in titles.items():
        assert there[there.index(name) + 1] == words
        assert back[back.index(name) + 1] != words


def test_a_node_is_told_under_the_id_that_it_has_in_its_trace(two, call) -> None:
    svg = drawn(call, two[0], "--diff", two[1])
    alone = drawn(call, two[1])

    def about(picture: bytes) -> str:
        titles = [one.text or "" for one in ET.fromstring(picture).iter(f"{SVG}title")]
        return next(one for one in titles if "TanhBackward0 (id " in one)

    name = about(alone).splitlines()[0]
    assert about(svg).splitlines()[:2] == ["only in B", name]


def test_a_trace_and_itself_do_not_differ(two, call) -> None:
    svg = drawn(call, two[0], "--diff", two[0])

    shown = texts(svg)
    assert not [one for one in shown if one.startswith(("only", "changed", "another"))]
    assert [one for one in shown if one.startswith("the same: ")]
    assert b'class="gone"' not in svg
    assert b'class="new"' not in svg


def test_boxes_of_several_nodes_say_how_many_of_them_differ(tmp_path, call) -> None:
    def layers(number: int) -> list[nn.Module]:
        made = [nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(20)]
        if number:
            made[7].append(nn.Sigmoid())
        return made

    one, other = (
        recorded(tmp_path / f"{number}.gvt", *layers(number)) for number in (0, 1)
    )

    shown = texts(drawn(call, one, "--diff", other, "--depth", "1"))

    assert any("1 only in B" in text and "nodes" in text for text in shown)
    assert "only in B: 1 node, 2 edges" in shown


def test_a_pass_of_the_other_trace_follows_its_name(tmp_path, call) -> None:
    path = record_backwards(tmp_path / "two.gvt", [2, 3])
    first, last = load_trace(path).tasks

    svg = drawn(call, path, "--pass", "last", "--diff", f"{path}:{first}")

    assert f"A: two.gvt, pass {last} → B: two.gvt, pass {first}" in texts(svg)
    assert "only in A: 1 node, 2 edges" in texts(svg)


def test_pytorch_is_compared_with_ours(tmp_path, call) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = tmp_path / "ours.gvt", tmp_path / "theirs.gvt"
    recorded(ours, nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    layers = (torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    with gv.pytorch.record(theirs):
        torch.nn.Sequential(*layers)(torch.ones(2, 4)).sum().backward()

    shown = texts(drawn(call, ours, "--diff", theirs))

    assert any(one.startswith("10 nodes in both") for one in shown)
    assert not [one for one in shown if one.startswith("only in")]


def unrelated(tmp_path):
    path = tmp_path / "other.gvt"
    with record(path):
        x = gv.ones(4, requires_grad=True)
        for _ in range(30):
            x = x.sin().exp().cumsum(0)
        x.sum().backward()
    return path


def long(tmp_path):
    return recorded(tmp_path / "long.gvt", *(nn.Linear(4, 4) for _ in range(10)))


def damaged(tmp_path):
    path = recorded(tmp_path / "damaged.gvt", nn.Linear(4, 4))
    path.write_bytes(path.read_bytes()[:900])
    return path


def empty(tmp_path):
    path = tmp_path / "empty.gvt"
    path.write_bytes(b"")
    return path


#: What makes a trace that cannot be read, and the words of the error.
UNREADABLE = [
    (damaged, "damaged.gvt"),
    (empty, "'empty.gvt' is empty"),
    (lambda folder: folder / "nowhere.gvt", "there is no trace 'nowhere.gvt'"),
]


def is_refused(result, words) -> bool:
    """Return whether a command ended in an error of one line, with these words."""
    errors = [one for one in result.stderr.splitlines() if "warning" not in one]
    return result.exit_code in {1, 3} and len(errors) == 1 and words in errors[0]


@pytest.mark.parametrize(
    ("other", "words"),
    [(unrelated, "have too little in common to be compared"), *UNREADABLE],
)
def test_another_trace_that_cannot_be_compared_is_an_error_of_a_line(
    tmp_path, call, other, words
) -> None:
    name = other(tmp_path).name
    result = call("render", "graph", long(tmp_path), "--diff", name, "-o", "x.svg")

    assert is_refused(result, words), result.stderr
    assert not (tmp_path / "x.svg").exists()


def test_colors_are_those_of_the_difference(two, call) -> None:
    result = call("render", "graph", two[0], "--diff", two[1], "--color", "time")

    assert result.exit_code == 2
    assert "--color and --diff exclude each other" in result.stderr
