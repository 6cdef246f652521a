"""Records as text and back."""

from gradviz.testing.golden.backward_record import GoldenNode, GoldenPass, escaped
from gradviz.testing.golden.golden_file import edge, golden_text, parse_golden

LEAF = GoldenNode("Net.fc.weight", inputs=("float32[2,3]",))
FULL = GoldenNode(
    "Net.fc/TBackward0#2",
    inputs=("float32[3,2]", "any", "int64[]"),
    device="cuda:0",
    saved="?",
    hooks=("pre:f", "post:g.<locals>.<lambda>"),
    waits=("host_waits_for_a_stream_x2",),
    end="failed",
    line="train.py:12",
    edges=("Net.fc.weight", "-", "/Other:1"),
)
OTHER = GoldenNode("/Other")
RECORD = (
    GoldenPass((), (OTHER, FULL, LEAF)),
    GoldenPass((), (OTHER, FULL, LEAF)),
    GoldenPass(("inside=/Other", "failed"), (OTHER,)),
)


def test_a_record_is_read_as_it_was_written():
    assert parse_golden(golden_text(RECORD), "x") == RECORD


def test_passes_that_repeat_are_written_once():
    lines = golden_text(RECORD).splitlines()

    assert [x for x in lines if x.startswith("pass")] == [
        "pass x2",
        "pass inside=/Other failed",
    ]


def test_a_gradient_that_stays_in_its_module_is_written_without_it():
    assert "-> ~.weight - /Other:1\n" in golden_text(RECORD)


def test_comments_empty_lines_and_line_ends_of_windows_are_no_matter():
    text = (
        golden_text(RECORD).replace("\n", "\r\n").replace("pass\r", "\r\n# x\r\npass\r")
    )

    assert parse_golden(text, "x") == RECORD


def test_an_edge_is_an_address_and_an_input():
    assert edge("Net.fc/TBackward0#2:13") == ("Net.fc/TBackward0#2", 13)
    assert edge("Net.fc.weight") == ("Net.fc.weight", 0)


def test_a_name_becomes_one_word_without_what_addresses_use():
    word = escaped("a b/c#d:e~%=;\n\u202e\ud800é")

    assert not {*word} & {*" /#:~=;\n\u202e"}
    assert word.endswith("é")
    assert escaped(word) != word


def test_the_name_of_a_node_follows_from_its_address():
    assert [LEAF.name, FULL.name, OTHER.name] == [
        "AccumulateGrad",
        "TBackward0",
        "Other",
    ]
