import pytest

from gradviz.trace.strings import LOST, Strings


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
    monkeypatch.setattr("gradviz.trace.strings._MAX_KNOWN", 2)
    indices = [strings.intern(text) for text in "abca"]

    assert len(set(indices)) == 4
    assert dict(strings.take()) == dict(zip(indices, "abca", strict=True))


def test_texts_are_lost_while_the_writer_does_not_come(strings, monkeypatch):
    monkeypatch.setattr("gradviz.trace.strings._MAX_PENDING", 2)
    kept = [strings.intern(text) for text in "ab"]

    assert strings.intern("c") == LOST
    assert [index for index, _ in strings.take()] == kept
    assert strings.intern("c") != LOST


def test_a_long_text_is_cut(strings):
    strings.intern("x" * 5_000)

    ((_, text),) = strings.take()
    assert text == "x" * 2_000 + "... (5000 characters)"


def test_what_utf8_cannot_hold_is_spelled_out(strings):
    strings.intern("a\udcffb")

    ((_, text),) = strings.take()
    assert text == "a\\udcffb"
