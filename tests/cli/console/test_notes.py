import io
import threading

import click
import pytest

from gradviz.cli.console.notes import note_first, working


class Terminal(io.StringIO):
    """One that lets a test wait for the first word."""

    def __init__(self) -> None:
        super().__init__()
        self.has_text = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        size = super().write(text)
        if "reading" in self.getvalue():
            self.has_text.set()
        return size


def at_once(done: threading.Event) -> bool:
    """Half a second has passed."""
    return done.is_set()


def in_time(done: threading.Event) -> bool:
    """Half a second has not passed before the end."""
    return done.wait(60)


def test_long_work_is_told_while_it_goes_on() -> None:
    terminal = Terminal()

    with working("reading x.gvt", terminal, at_once):
        assert terminal.has_text.wait(60)

    assert "reading x.gvt" in terminal.getvalue()


def test_work_that_ends_in_time_says_nothing() -> None:
    terminal = Terminal()

    with working("reading x.gvt", terminal, in_time):
        pass

    assert terminal.getvalue() == ""


def test_an_error_ends_it() -> None:
    before = set(threading.enumerate())

    with pytest.raises(KeyError), working("reading x.gvt", Terminal(), at_once):
        raise KeyError

    # rich tells its own thread to end, and does not wait for that.
    new = set(threading.enumerate()) - before
    for one in new:
        one.join(60)
    assert not any(one.is_alive() for one in new)


def test_nothing_is_said_where_there_is_no_terminal() -> None:
    file = io.StringIO()

    with working("reading x.gvt", file, pytest.fail):
        pass

    assert file.getvalue() == ""


def test_nothing_is_said_to_who_wants_quiet() -> None:
    terminal = Terminal()
    quiet = click.Context(click.Command("x"))
    quiet.params["quiet"] = True

    with quiet, working("reading x.gvt", terminal, pytest.fail):
        pass

    assert terminal.getvalue() == ""


def test_names_of_files_are_no_markup() -> None:
    terminal = Terminal()

    with working("reading [bold]x[/].gvt", terminal, at_once):
        assert terminal.has_text.wait(60)

    assert "[bold]x[/].gvt" in terminal.getvalue()


def test_passes_beyond_the_first_ones_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    note_first(2, 3)

    assert capsys.readouterr().err == (
        "gradviz: 2 passes of 3 are shown, the first ones\n"
    )


def test_a_view_of_all_passes_has_no_note(
    capsys: pytest.CaptureFixture[str],
) -> None:
    note_first(2, 2)

    assert not capsys.readouterr().err
