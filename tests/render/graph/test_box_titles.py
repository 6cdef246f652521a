import pytest

from gradviz.render.graph.box_titles import relative, without_shared, wrapped
from gradviz.render.words.text import MAX_TITLE

DEEP = "model.decoder.block.2.layer.2.attention_with_bias.q_proj"


@pytest.mark.parametrize(
    ("name", "outer", "expected"),
    [
        ("model.block.2.attn", "model.block.2", "attn"),
        ("model.block.2.attn", "model.block", "2.attn"),
        ("model.block.2.attn", "model.bl", "model.block.2.attn"),
        ("model.block", "model.block", "model.block"),
        ("model.block", "", "model.block"),
    ],
)
def test_a_name_leaves_out_the_frame_around_it(name, outer, expected):
    assert relative(name, outer) == expected


@pytest.mark.parametrize(
    ("name", "module", "expected"),
    [
        ("net.0.weight", "net.0", "weight"),
        ("net.head.weight", "net.body", "head.weight"),
        ("net.head.weight", "worker 2.net.head", "weight"),
        ("net.weight", "worker 2", "net.weight"),
        ("0.weight", "net.0", "0.weight"),
        ("net.weight", "", "net.weight"),
        ("net", "net", "net"),
        ("", "net", ""),
    ],
)
def test_a_parameter_leaves_out_what_it_shares_with_its_user(name, module, expected):
    assert without_shared(name, module) == expected


def test_a_name_that_has_room_is_one_line():
    assert wrapped("attn.q_proj") == "attn.q_proj"


def test_a_long_name_is_broken_behind_dots():
    assert wrapped(DEEP).split("\n") == [
        "model.decoder.block.2.layer.2.attention_",
        "with_bias.q_proj",
    ]


def test_a_long_name_is_in_its_lines_as_a_whole():
    for length in range(1, 60):
        lines = wrapped(DEEP, max_lines=99, length=length).split("\n")

        assert "".join(lines) == DEEP
        assert max(map(len, lines)) <= length


@pytest.mark.parametrize("text", [DEEP * 9, "x" * 10_000, "a b " * 900 + "end"])
@pytest.mark.parametrize("max_lines", [1, 2, 4])
def test_a_name_that_needs_too_many_lines_keeps_its_end(text, max_lines):
    lines = wrapped(text, max_lines).split("\n")

    assert len(lines) == max_lines
    assert lines[0].startswith("…")
    assert max(map(len, lines)) <= MAX_TITLE
    assert text.endswith(lines[-1].removeprefix("…"))
