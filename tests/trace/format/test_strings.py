import pytest

from gradviz.trace.format.strings import LOST, Strings
from tests.trace.watched_list import Watched


@pytest.fixture
def strings():
    return Strings()


def test_a_text_is_defined_once(strings):
    first, other, again = map(strings.intern, ("a", "b", "a"))

    assert first == again != other
    assert strings.take() == [(first, "a"), (other, "b")]
    assert strings.take() == []


def test_a_text_defined_before_is_not_defined_again(strings):
    index = strings.intern("a")
    strings.take()

    assert strings.intern("a") == index
    assert strings.take() == []


def test_a_table_that_is_full_forgets_but_stays_true(strings, monkeypatch):
    monkeypatch.setattr("gradviz.trace.format.strings._MAX_KNOWN", 2)
    indices = [strings.intern(text) for text in "abca"]

    assert len(set(indices)) == 4
    assert dict(strings.take()) == dict(zip(indices, "abca", strict=True))


def test_texts_are_lost_while_the_writer_does_not_come(strings, monkeypatch):
    monkeypatch.setattr("gradviz.trace.format.strings._MAX_PENDING", 2)
    kept = [strings.intern(text) for text in "ab"]

    assert strings.intern("c") == LOST
    assert [index for index, _ in strings.take()] == kept
    assert strings.intern("c") != LOST


def test_a_long_text_is_cut(strings):
    strings.intern("x" * 5_000)

    ((_, text),) = strings.take()
    assert text == "x" * 2_000 + "... (5000 characters)"


def test_characters_that_utf8_cannot_hold_are_spelled_out(strings):
    strings.intern("a\udcffb")

    ((_, text),) = strings.take()
    assert text == "a\\udcffb"


def test_a_text_defined_while_texts_are_taken_is_taken_the_next_time(strings):
    strings._pending = Watched(after_copy=lambda: strings.intern("b"))
    strings.intern("a")

    assert [text for _, text in strings.take()] == ["a"]
    assert [text for _, text in strings.take()] == ["b"]


def test_nobody_is_told_an_index_before_the_writer_finds_its_text(strings):
    told = []
    strings._pending = Watched(at_append=lambda: told.append("a" in strings._known))
    strings.intern("a")

    assert told == [False]
