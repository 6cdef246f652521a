import io

import pytest

from gradviz.render.terminal.cells import make_console, share, wrapped


def test_a_console_that_is_no_terminal_writes_no_escapes(monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    file = io.StringIO()

    make_console(file).print("bold", style="bold red")

    assert file.getvalue() == "bold\n"


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (0, "             0%"),
        (0.5, "█████       50%"),
        (0.99, "█████████▉  99%"),
        (1, "██████████ 100%"),
        (7, "██████████ 700%"),
    ],
)
def test_a_share_is_a_bar_of_ten_columns(part, text):
    assert share(part) == text


def test_no_line_ends_between_a_number_and_its_unit():
    assert wrapped("it took 1.5 ms of 20 ms", 14) == ["it took 1.5 ms", "of 20 ms"]
    assert wrapped("it took 1.5 ms of 20 ms", 13) == ["it took", "1.5 ms of", "20 ms"]


def test_a_word_that_is_longer_than_a_line_is_broken_at_punctuation():
    assert wrapped("at /home/user/train.py:1234, no", 12) == [
        *("at", "/home/user/", "train.py:", "1234, no"),
    ]
