"""Programs in standby, asked by a socket as ``gradviz attach`` asks them."""

import os
import shutil
import socket
import tempfile
import threading
from pathlib import Path

import pytest

import gradviz as gv
from gradviz.capture.private_folder import (
    VARIABLE,
    check_is_private,
    make_private_folder,
    socket_of,
)
from gradviz.capture.session import start_from_environment
from gradviz.capture.standby import Standby
from gradviz.capture.standby_messages import (
    LONGEST_MESSAGE,
    Request,
    StandbyAnswer,
    decoded,
    encoded,
)
from gradviz.errors import UserError
from gradviz.program_hooks import after_step
from gradviz.trace.reading.reader import load_trace


@pytest.fixture
def folder(monkeypatch):
    """A private folder, with a path that is short enough for a socket."""
    parent = tempfile.mkdtemp(prefix="gv")
    monkeypatch.setenv(VARIABLE, f"{parent}/private")
    yield Path(parent, "private")
    shutil.rmtree(parent)


@pytest.fixture
def standby(folder):
    made = Standby()
    yield made
    made.stop()


class Asker:
    """Client of a program in standby."""

    def __init__(self, folder: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.fspath(socket_of(folder, os.getpid())))
        self._answers = self.socket.makefile("rb")

    def ask(self, message: bytes) -> StandbyAnswer:
        self.socket.sendall(message)
        return self.next()

    def next(self) -> StandbyAnswer:
        return decoded(self._answers.readline(), StandbyAnswer)

    def close(self) -> None:
        self._answers.close()
        self.socket.close()


@pytest.fixture
def asker(standby, folder):
    """Makes one more of them."""
    made: list[Asker] = []

    def make() -> Asker:
        made.append(Asker(folder))
        return made[-1]

    yield make
    for one in made:
        one.close()


def train(until):
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    optimizer = gv.optim.SGD([x], lr=0.1)
    while not until():
        optimizer.zero_grad()
        (x * x).sum().backward()
        optimizer.step()


def backward():
    gv.ones(2, requires_grad=True).sum().backward()


def test_only_what_happens_after_the_answer_is_recorded(asker, tmp_path):
    path = tmp_path / "x.gvt"
    backward()
    one = asker()

    assert one.ask(encoded(Request(str(path)))).state == "recording"
    backward()
    backward()
    one.socket.shutdown(socket.SHUT_WR)  # as Ctrl-C does
    answer = one.next()

    assert (answer.state, answer.reason, answer.tasks) == ("done", "", 2)
    trace = load_trace(path)
    assert len(trace.tasks) == 2
    assert trace.losses.is_complete
    assert trace.num_events == answer.events


def test_whole_steps_are_counted_from_the_end_of_the_current_one(asker, tmp_path):
    one, is_done = asker(), threading.Event()
    assert one.ask(encoded(Request(str(tmp_path / "x.gvt"), steps=2))).state
    program = threading.Thread(target=train, args=(is_done.is_set,))
    program.start()
    answer = one.next()
    is_done.set()
    program.join()

    assert (answer.state, answer.tasks) == ("done", 2)
    assert not after_step


def test_a_recording_ends_after_its_seconds(asker, tmp_path):
    one = asker()

    assert one.ask(encoded(Request(str(tmp_path / "x.gvt"), seconds=1e-9))).state
    assert one.next().state == "done"


def test_whoever_leaves_ends_the_recording_and_another_one_may_follow(asker, tmp_path):
    one = asker()
    one.ask(encoded(Request(str(tmp_path / "x.gvt"))))
    one.close()

    other = asker()
    request = Request(str(tmp_path / "y.gvt"), seconds=1e-9)
    answer = other.ask(encoded(request))
    while answer.state == "refused":  # the thread may not have seen yet that one left
        other = asker()
        answer = other.ask(encoded(request))
    assert answer.state == "recording"


def test_a_program_that_is_recorded_refuses_another_recording(asker, tmp_path):
    one = asker()
    one.ask(encoded(Request(str(tmp_path / "x.gvt"))))

    answer = asker().next()

    assert answer.state == "refused"
    assert answer.reason == f"process {os.getpid()} is already recorded"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"{}\n", "missing required field `path`"),
        (b"[1]\n", "the message is no request"),
        (b'{"path": 1}\n', "the message is no request"),
        (b'{"path": "x", "more": 1}\n', "unknown field `more`"),
        (b"\xff\n", "the message is no request"),
        (b"x" * LONGEST_MESSAGE, "too long, or cut off"),
        (encoded(Request("x", steps=-1)), "steps"),
        (encoded(Request("x", seconds=-1.0)), "seconds"),
        (encoded(Request("/nowhere/x.gvt")), "No such file"),
    ],
)
def test_an_invalid_request_is_refused_and_the_program_waits_on(
    asker, tmp_path, monkeypatch, message, reason
):
    monkeypatch.chdir(tmp_path)

    answer = asker().ask(message)

    assert answer.state == "refused"
    assert reason in answer.reason
    request = Request(str(tmp_path / "x.gvt"), seconds=1e-9)
    assert asker().ask(encoded(request)).state == "recording"


def test_a_program_that_ends_closes_the_recording_and_says_so(
    standby, asker, folder, tmp_path
):
    one = asker()
    one.ask(encoded(Request(str(tmp_path / "x.gvt"))))
    backward()
    standby.stop()

    assert one.next().tasks == 1
    assert list(folder.iterdir()) == []


def test_once_means_that_nothing_listens_after_a_recording(folder, tmp_path):
    standby = Standby(only_once=True)
    one = Asker(folder)
    one.ask(encoded(Request(str(tmp_path / "x.gvt"), seconds=1e-9)))
    one.next()
    standby._thread.join()
    one.close()

    assert not standby.is_waiting
    assert list(folder.iterdir()) == []


def test_the_environment_puts_a_program_into_standby(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADVIZ_TRACE", "standby")

    assert start_from_environment() is None
    assert start_from_environment() is None  # which is once enough

    assert folder.stat().st_mode & 0o777 == 0o700
    one = Asker(folder)
    request = Request(str(tmp_path / "x.gvt"), seconds=1e-9)
    assert one.ask(encoded(request)).state == "recording"
    one.close()
    from gradviz.capture import standby

    standby._started[0].stop()


def test_a_folder_that_cannot_be_made_is_a_warning(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "no" / "folder"))
    monkeypatch.setenv("GRADVIZ_TRACE", "standby")

    with pytest.warns(RuntimeWarning, match="cannot make the folder for standby"):
        start_from_environment()


class TestPrivateFolder:
    def test_it_is_made_for_this_user_alone(self, folder):
        assert make_private_folder() == folder
        assert make_private_folder() == folder

    def test_one_that_others_can_enter_is_refused(self, folder):
        folder.mkdir(mode=0o755)

        with pytest.raises(UserError, match=r"permissions 0755.*chmod 700"):
            Standby()

    def test_a_link_or_file_in_its_place_is_refused(self, folder, tmp_path):
        folder.symlink_to(tmp_path)

        with pytest.raises(UserError, match="is not a folder"):
            make_private_folder()

    def test_that_of_another_user_is_refused(self, folder, monkeypatch):
        make_private_folder()
        monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)

        with pytest.raises(UserError, match="belongs to user"):
            check_is_private(folder)
