"""Workers are ended with who has started them; here is what that leaves."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gradviz.distributed.launching.meeting_folder import meeting_folder
from gradviz.distributed.launching.processes import run_workers
from gradviz.trace.reading.reader import load_trace

FOREVER = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]

#: It asks for the second signal when it does not hear the first any more.
DEAF = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.kill(os.getppid(), signal.SIGUSR1)
signal.pause()
"""


def test_the_first_signal_is_handed_on_to_all_workers():
    endings = run_workers([FOREVER] * 2, signals=[signal.SIGTERM])
    assert sorted(one.rank for one in endings) == [0, 1]
    assert {one.words for one in endings} == {"was killed by SIGTERM"}


def test_at_the_second_signal_workers_are_killed_that_do_not_listen():
    signals = []
    before = signal.signal(
        signal.SIGUSR1, lambda *_: signals.extend([signal.SIGTERM, signal.SIGINT])
    )
    try:
        (only,) = run_workers([[sys.executable, "-S", "-c", DEAF]], signals=signals)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert only.words == "was killed by SIGKILL"


#: Each worker has backwards through the other one forever, and says so when the first
#: of them are in its file.
PROGRAM = """
import os, signal
import gradviz as gv
from gradviz.distributed import autograd, rpc

@rpc.register
def double(x):
    return x * 2

rpc.init()
rank = int(os.environ["RANK"])
BEGIN
is_told = False
while True:
    with autograd.context() as context_id:
        x = gv.tensor([1.0], requires_grad=True)
        loss = rpc.rpc_sync(1 - rank, double, (x,)).sum()
        autograd.backward(context_id, [loss])
    if not is_told and os.path.getsize(f"x.worker{rank}.gvt") > 20_000:
        is_told = True
        os.write(1, b"%d\\n" % os.getpid())  # whole: others write there, too
"""


@pytest.fixture
def run(tmp_path):
    """Starts a program in two processes; it and theirs when they have begun."""
    started = []

    def run(begin=""):
        (tmp_path / "temporary").mkdir()
        (tmp_path / "program.py").write_text(PROGRAM.replace("BEGIN", begin))
        command = [sys.executable, "-m", "gradviz", "run", "--workers", "2"]
        launcher = subprocess.Popen(
            [*command, "-o", "x.gvt", "program.py"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(Path.cwd()),
                "TMPDIR": str(tmp_path / "temporary"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(launcher)
        workers = [int(launcher.stdout.readline()) for _ in range(2)]
        return launcher, workers

    yield run
    for one in started:
        one.kill()  # or what a test that fails has started would go on forever
        one.communicate(timeout=60)  # until nobody can write any more
        assert not list((tmp_path / "temporary").iterdir())


def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.stress
@pytest.mark.parametrize(
    ("number", "send"),
    [(signal.SIGINT, os.killpg), (signal.SIGTERM, os.kill)],
)
def test_a_run_that_is_interrupted_ends_its_workers_and_merges_what_they_have(
    run, tmp_path, number, send
):
    launcher, workers = run()
    send(launcher.pid, number)  # Ctrl-C as a terminal does, to all
    said = launcher.communicate(timeout=60)[1]
    assert launcher.returncode == 128 + number
    assert f"gradviz: the workers were ended by {number.name}\n" in said
    assert not any(map(is_there, workers))
    whole = load_trace(tmp_path / "x.gvt")
    parts = [load_trace(tmp_path / f"x.worker{rank}.gvt") for rank in range(2)]
    assert len(whole.processes) == 2
    assert whole.num_events == sum(one.num_events for one in parts) > 100
    # Ctrl-C lets a worker say its last words.
    assert all(one.losses.closed == (number == signal.SIGINT) for one in parts)


@pytest.mark.stress
def test_a_second_interrupt_ends_a_run_at_once(run, tmp_path):
    launcher, workers = run(
        "signal.signal(signal.SIGINT, lambda *_: os.write(1, b'no\\n'))"
    )
    launcher.send_signal(signal.SIGINT)
    while launcher.stdout.readline() != "no\n":
        pass
    launcher.send_signal(signal.SIGINT)
    said = launcher.communicate(timeout=60)[1]
    assert launcher.returncode == 130
    assert "worker 1 was killed by SIGKILL" in said
    assert not any(map(is_there, workers))
    assert not (tmp_path / "x.gvt").exists()


@pytest.mark.stress
def test_workers_whose_launcher_is_killed_end_and_remove_what_it_left(run):
    launcher, _ = run()
    launcher.kill()
    launcher.communicate(timeout=60)  # ends when no worker has its stdout any more
    assert launcher.returncode == -signal.SIGKILL


#: Says so when its workers have begun, and waits for them forever.
SPAWNING = """
import os, time
from gradviz.distributed import rpc, spawn

def main(rank):
    rpc.init()
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(600)

if __name__ == "__main__":
    spawn(main, 2)
"""


@pytest.mark.stress
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("is_for_all", [False, True])
def test_a_program_that_is_killed_in_spawn_leaves_no_folder_or_the_next_removes_it(
    tmp_path, monkeypatch, number, is_for_all
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "program.py").write_text(SPAWNING)
    program = subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(Path.cwd()),
            "TMPDIR": str(temporary),
        },
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    with program:
        for _ in range(2):
            program.stdout.readline()
        assert list(temporary.iterdir())
        (os.killpg if is_for_all else os.kill)(program.pid, number)
        program.stdout.read()  # ends when no worker has it any more
    if is_for_all:
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        with meeting_folder():
            pass
    assert not list(temporary.iterdir())


@pytest.mark.stress
def test_a_worker_killed_in_mid_run_is_merged_up_to_its_last_frame(run, tmp_path):
    launcher, workers = run()
    os.kill(workers[0], signal.SIGKILL)
    said = launcher.communicate(timeout=60)[1]
    (killed,) = (
        one for one in range(2) if f"worker {one} was killed by SIGKILL" in said
    )
    parts = [load_trace(tmp_path / f"x.worker{rank}.gvt") for rank in range(2)]
    whole = load_trace(tmp_path / "x.gvt")
    assert not parts[killed].losses.closed
    assert len(parts[killed].tasks) > 1
    assert whole.num_events == sum(one.num_events for one in parts)
