import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradviz.render.words.text import (
    clean,
    count,
    duration,
    nodes_ran,
    operation,
    place,
    shorten,
    size,
    width,
)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("MulBackward0", "MulBackward0"),
        ("größer ∂x/∂y 勾配", "größer ∂x/∂y 勾配"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;5;196mred", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link", "link"),
        ("\x1b]52;c;ZXZpbA==", ""),
        ("\x1bPq payload\x1b\\after", "after"),
        ("\x1bcreset", "reset"),
        ("\x1b(Bascii", "ascii"),
        ("beep\x07\x00\x7f", "beep"),
        ("a\nb\tc\r\nd", "a b c  d"),
        ("a\u2028b\u2029c\x85d", "a b c d"),
        ("\u202eevil\u2066\u200b\ufeff", "evil"),
        ("\ud800lone", "lone"),
        ("\x1b", ""),
    ],
)
def test_control_characters_are_removed_from_a_text(text, cleaned):
    assert clean(text) == cleaned


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_clean_text_has_no_character_that_acts(text):
    forbidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}

    assert not {unicodedata.category(c) for c in clean(text)} & forbidden


@given(st.text())
def test_cleaning_twice_changes_nothing(text):
    assert clean(clean(text)) == clean(text)


@pytest.mark.parametrize(
    ("ns", "written"),
    [
        (0, "0 ns"),
        (0.25, "0.25 ns"),
        (7, "7 ns"),
        (999, "999 ns"),
        (1_000, "1 µs"),
        (1_234, "1.23 µs"),
        (12_340, "12.3 µs"),
        (412_000, "412 µs"),
        (999_999, "1000 µs"),
        (1_500_000, "1.5 ms"),
        (35_000_000_000, "35 s"),
    ],
)
def test_durations_have_three_digits_and_a_unit(ns, written):
    assert duration(ns) == written


@pytest.mark.parametrize(
    ("number", "noun", "written"),
    [
        (1, "node", "1 node"),
        (0, "node", "0 nodes"),
        (1_797, "node", "1,797 nodes"),
        (2, "backward pass", "2 backward passes"),
    ],
)
def test_counts_agree_with_their_nouns(number, noun, written):
    assert count(number, noun) == written


def test_runs_are_told_where_they_are_not_as_many_as_nodes():
    assert nodes_ran(170, 170) == "170 nodes"
    assert nodes_ran(234, 170) == "234 runs of 170 nodes"
    assert nodes_ran(2, 1) == "2 runs of 1 node"


def test_a_text_that_is_cut_says_so():
    assert shorten("MulBackward0", 6) == "MulBa…"
    assert shorten("MulBackward0", 12) == "MulBackward0"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("MulBackward0", "Mul"),
        ("AddmmBackward12", "Addmm"),
        ("MyBackward", "My"),
        ("AccumulateGrad", "AccumulateGrad"),
        ("Backward0", "Backward0"),
    ],
)
def test_an_operation_is_its_node_without_the_ending(name, short):
    assert operation(name) == short


def test_a_place_is_without_folders():
    assert place("/home/me/train.py:12") == "train.py:12"
    assert place("C:\\me\\train.py:12") == "train.py:12"
    assert place("") == ""


def test_two_places_are_without_folders_and_only_the_last_fits_a_narrow_space():
    both = "/venv/lib/layers.py:12 < /home/me/train.py:7"

    assert place(both) == "layers.py:12 < train.py:7"
    assert place(both, 12) == "train.py:7"
    assert place(both, 8) == "…in.py:7"


@pytest.mark.parametrize(
    # In DejaVu Sans, the widest of the fonts asked for, at 100 px in a browser.
    ("text", "regular", "bold"),
    [
        ("AccumulateGrad", 834, 930),
        ("LogSoftmaxBackward0", 1146, 1292),
        ("(64, 10) · main.py:61", 1049, 1181),
        ("ConvolutionBackward0 → ReluBackward0", 2067, 2318),
        ("MMMMWWWW", 741, 839),
        ("iiiillll", 222, 274),
        ("0123456789", 636, 696),
    ],
)
def test_an_estimated_width_is_never_too_small(text, regular, bold):
    assert regular <= width(text, 100) <= 1.15 * regular
    assert bold <= width(text, 100, bold=True) <= 1.15 * bold


@pytest.mark.parametrize(
    ("num_bytes", "written"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 30, "3 GiB")],
)
def test_bytes_are_written_in_three_digits(num_bytes, written):
    assert size(num_bytes) == written
