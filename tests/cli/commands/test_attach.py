"""``gradviz attach``, to the process of the test itself."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import gradviz as gv
from gradviz.capture.private_folder import VARIABLE, make_private_folder, socket_of
from gradviz.capture.standby import Standby
from gradviz.trace.reading.reader import load_trace
from tests.warm_python import run_gradviz

PID = os.getpid()
REMOTE_EXEC = getattr(sys, "remote_exec", None)

#: Runs backward passes until its standard input is closed.
PROGRAM = """
import select, sys
import gradviz as gv
x = gv.ones(2, requires_grad=True)
(x * x).sum().backward()
print("trains", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    (x * x).sum().backward()
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch):
    """The private folder, and a Python that cannot be attached to without standby."""
    parent = tempfile.mkdtemp(prefix="gv")
    monkeypatch.setenv(VARIABLE, f"{parent}/private")
    monkeypatch.delattr(sys, "remote_exec", raising=False)
    yield Path(parent, "private")
    shutil.rmtree(parent)


@pytest.fixture
def standby():
    made = Standby()
    yield made
    made.stop()


@pytest.fixture
def training():
    """A program that trains for as long as the test goes on."""
    is_done = threading.Event()

    def train():
        x = gv.tensor([1.0, 2.0], requires_grad=True)
        optimizer = gv.optim.SGD([x], lr=0.1)
        while not is_done.is_set():
            optimizer.zero_grad()
            (x * x).sum().backward()
            optimizer.step()

    thread = threading.Thread(target=train)
    thread.start()
    yield
    is_done.set()
    thread.join()


def test_steps_of_a_program_that_runs_are_recorded(standby, training, call, tmp_path):
    done = call("attach", PID, "--steps", 3, "-o", "x.gvt")

    assert done.exit_code == 0, done.stderr
    assert len(load_trace(tmp_path / "x.gvt").tasks) == 3
    assert f"process {PID} is recorded into x.gvt" in done.stderr
    assert "recorded 3 backwards" in done.stderr
    assert "next: gradviz show order x.gvt" in done.stderr


def test_the_trace_is_in_the_folder_of_the_command_and_quiet_is_quiet(
    standby, call, tmp_path
):
    done = call("attach", PID, "--seconds", 1e-9, "-q")

    assert (done.exit_code, done.stderr) == (0, "")
    assert not load_trace(tmp_path / f"gradviz-attach.{PID}.gvt").tasks
    assert "exists already" in call("attach", PID).stderr


def test_without_a_pass_that_is_said(standby, call):
    told = call("attach", PID, "--seconds", 1e-9).stderr

    assert "no backward pass was recorded" in told


def test_a_process_that_is_not_in_standby_is_told_how_to_be(call):
    done = call("attach", PID)

    assert done.exit_code == 1
    assert f"process {PID} is not in standby" in done.stderr
    assert "gradviz run --standby" in done.stderr


def test_a_process_that_is_not_there_is_told(call):
    ended = subprocess.Popen(["true"])
    ended.wait()

    done = call("attach", ended.pid)

    assert done.exit_code == 1
    assert f"there is no process {ended.pid}" in done.stderr


def test_the_process_of_another_user_is_told(call, monkeypatch):
    def refuse(pid, signal):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "kill", refuse)
    assert "another user's" in call("attach", PID).stderr

    monkeypatch.undo()
    monkeypatch.setattr(
        "gradviz.cli.commands.attach._owner", lambda pid: os.getuid() + 1
    )
    assert "only that user can attach" in call("attach", PID).stderr


def test_a_folder_that_others_can_enter_is_told(call, folder):
    folder.mkdir(mode=0o750)

    assert "permissions 0750, expected 0700" in call("attach", PID).stderr


def test_a_socket_that_a_killed_process_left_is_nobody(call):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(socket_of(make_private_folder(), PID)))

    assert "is not in standby" in call("attach", PID).stderr


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"", "has ended before it was recorded"),
        (b'{"sta', "may have another version of gradviz"),
        (b"[]\n", "may have another version of gradviz"),
        (b'{"state":"recording"}\n', "has been ended"),
    ],
)
def test_a_process_that_ends_or_says_nonsense_is_told(call, answer, told):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(socket_of(make_private_folder(), PID)))
        listener.listen()

        def serve():
            connection = listener.accept()[0]
            with connection, connection.makefile("rb") as file:
                file.readline()
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        done = call("attach", PID)
        thread.join()

    assert told in done.stderr
    assert "Traceback" not in done.stderr


class TestRemoteExec:
    """From Python 3.14 on; a fake runs the script in this process, as that does."""

    @pytest.fixture
    def remote_exec(self, monkeypatch):
        def use(fake):
            monkeypatch.setattr(sys, "remote_exec", fake, raising=False)

        return use

    def test_a_program_enters_standby_for_one_recording(
        self, call, remote_exec, folder
    ):
        asked = []

        def execute(pid, script):
            asked.append(pid)
            exec(Path(script).read_text(), {})

        remote_exec(execute)
        done = call("attach", PID, "--seconds", 1e-9, "-o", "x.gvt")

        assert done.exit_code == 0, done.stderr
        assert asked == [PID]
        thread = [one for one in threading.enumerate() if "standby" in one.name]
        for one in thread:
            one.join()
        assert list(folder.iterdir()) == []

    @pytest.mark.skipif(REMOTE_EXEC is None, reason="Python before 3.14")
    def test_a_program_that_nobody_prepared_is_recorded(
        self, call, remote_exec, tmp_path
    ):
        remote_exec(REMOTE_EXEC)
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as program:
            assert program.stdout.readline() == b"trains\n"
            done = call("attach", program.pid, "--seconds", 0.1, "-o", "x.gvt")

        assert done.exit_code == 0, done.stderr
        assert load_trace(tmp_path / "x.gvt").tasks
        assert program.returncode == 0

    def test_a_program_without_gradviz_is_told(self, call, remote_exec, monkeypatch):
        def execute(pid, script):
            with monkeypatch.context() as patch:
                patch.setitem(sys.modules, "gradviz.capture.standby", None)
                exec(Path(script).read_text(), {})

        remote_exec(execute)

        assert "cannot record itself: ModuleNotFoundError" in call("attach", PID).stderr

    def test_a_refusal_of_the_interpreter_is_reported(self, call, remote_exec):
        def execute(pid, script):
            raise RuntimeError("remote debugging is disabled")

        remote_exec(execute)
        done = call("attach", PID)

        assert done.exit_code == 1
        assert f"cannot attach to process {PID}: remote debugging" in done.stderr

    def test_a_process_that_never_answers_is_told(self, remote_exec):
        from gradviz.cli.commands.attach import _entered
        from gradviz.errors import UserError

        pauses = []
        with pytest.raises(UserError, match="has not answered for 30 s"):
            _entered(PID, lambda pid, script: None, pauses.append)
        assert sum(pauses) == pytest.approx(30)


def test_a_program_run_in_standby_records_nothing_and_ends_as_it_does(tmp_path):
    source = """\
import sys, gradviz as gv
from gradviz.trace.recording.recorder import _open
gv.ones(2, requires_grad=True).sum().backward()
print(len(_open), sys.argv)
sys.exit(3)
"""
    (tmp_path / "script.py").write_text(source)

    done = run_gradviz("run", "--standby", "script.py", "-x", cwd=tmp_path)

    assert (done.exit_code, done.output) == (3, "0 ['script.py', '-x']\n")
    assert "waits for 'gradviz attach" in done.errors
    assert not list(tmp_path.glob("*.gvt"))


@pytest.mark.parametrize(
    "option", ["--ring=1MB", "--live", "-ox.gvt", "--stacks=none", "--then=check"]
)
def test_options_of_a_recording_are_refused_in_standby(call, option):
    done = call("run", "--standby", option, "x.py")

    assert done.exit_code == 2
    assert "--standby records nothing by itself" in done.stderr
