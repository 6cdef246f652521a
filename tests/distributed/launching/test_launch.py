import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from gradviz.distributed import WorkerFailedError, rpc, spawn
from gradviz.distributed.launching.processes import run_workers
from gradviz.distributed.transport.rendezvous import Rendezvous
from gradviz.errors import UserError
from gradviz.trace.reading.reader import load_trace
from tests.distributed import spawned


def children() -> set[str]:
    """The processes that this one has begun and not waited for."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {child for one in tasks for child in one.read_text().split()}


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = children()
    yield
    assert children() <= before
    assert not list(tmp_path.glob("gradviz-*"))


@pytest.mark.stress
def test_workers_in_processes_of_their_own_have_one_backward():
    spawn(spawned.good, 2)


@pytest.mark.parametrize(
    "transport", ["inproc", pytest.param("local", marks=pytest.mark.stress)]
)
def test_workers_are_given_arguments_and_start_whatever_is_between_them(transport):
    args = ("worker no.", [2, "three"], sys.argv)
    spawn(spawned.given, 3, args, transport=transport)


def test_threads_that_are_workers_fail_like_processes():
    with pytest.raises(WorkerFailedError, match="worker 1 of 3 raised ValueError: no"):
        spawn(spawned.waiting_for_one_that_raises, 3, transport="inproc")
    spawn(spawned.leaving_without_a_word, 2, transport="inproc")
    for thread in threading.enumerate():
        if thread.name.startswith(("worker 0 / timers", "worker 1 / timers")):
            thread.join(60)
            assert not thread.is_alive()


def test_a_transport_that_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="no transport is called 'pigeons'"):
        spawn(spawned.good, 2, transport="pigeons")


def test_spawn_joins_workers_that_were_started_already(tmp_path, monkeypatch):
    for name, value in Rendezvous.made_at(str(tmp_path), 3).variables(2).items():
        monkeypatch.setenv(name, value)
    found = []
    spawn(lambda *given: found.append(given), 3, ("a",))
    assert found == [(2, "a")]
    with pytest.raises(UserError, match="started as 3 workers, and wants 4"):
        spawn(spawned.good, 4)


@pytest.mark.stress
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_worker_struck_down_in_mid_backward_is_named_and_the_others_go_on(how):
    with pytest.raises(WorkerFailedError, match="worker 1 of 3 was killed") as caught:
        spawn(getattr(spawned, how), 3)
    assert (caught.value.rank, caught.value.exit_code) == (1, 128 + 9)


@pytest.mark.stress
def test_a_worker_that_ends_before_it_is_one_is_not_waited_for():
    with pytest.raises(WorkerFailedError, match="worker 1 of 2 ended with exit code 3"):
        spawn(spawned.leaving, 2)


@pytest.mark.stress
def test_an_error_that_a_worker_raises_is_reported():
    with pytest.raises(WorkerFailedError, match=r"(?s)exit code 1.*ValueError: no"):
        spawn(spawned.raising, 2)


def test_a_function_that_no_other_process_can_find_is_refused():
    with pytest.raises(ValueError, match="cannot be found by other processes"):
        spawn(lambda _: None, 2)
    with pytest.raises(ValueError, match="there cannot be 0 workers"):
        spawn(spawned.good, 0)


def test_ends_come_in_their_order_and_a_program_that_is_missing_ends_the_others():
    late = [sys.executable, "-S", "-c", "import sys; sys.stdin.read(); sys.exit(4)"]
    (only,) = run_workers([late])
    assert (only.rank, only.exit_code, only.words) == (0, 4, "ended with exit code 4")
    forever = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
    with pytest.raises(FileNotFoundError):
        run_workers([forever, ["/no/such/program"]])


def test_init_without_a_transport_needs_somebody_who_has_started_it(monkeypatch):
    monkeypatch.delenv("GRADVIZ_WORKERS_AT", raising=False)
    with pytest.raises(RuntimeError, match="gradviz run --workers N"):
        rpc.init()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("RANK", "3", "RANK is '3': expected a number from 0 to 2"),
        ("WORLD_SIZE", "many", "WORLD_SIZE is 'many'"),
        ("GRADVIZ_WORKERS_AT", "0.0.0.0:80", "expected a folder that exists"),
        ("GRADVIZ_WORKERS_AT", "127.0.0.1:65534", "there are no 3 ports"),
        ("GRADVIZ_WORKERS_KEY", "secret", "is no key"),
    ],
)
def test_surroundings_that_cannot_be_are_told(tmp_path, name, value, words):
    variables = Rendezvous.made_at(str(tmp_path), 3).variables(1)
    assert Rendezvous.of_environment(variables)[0] == 1
    with pytest.raises(UserError) as caught:
        Rendezvous.of_environment({**variables, name: value})
    assert words in str(caught.value)


@pytest.fixture
def run(tmp_path):
    """Runs a program in three processes with ``gradviz run``."""
    folder = tmp_path / "run"
    folder.mkdir()

    def run(program, *options):
        (folder / "program.py").write_text(program)
        command = [sys.executable, "-m", "gradviz", "run", "--workers", "3"]
        return folder, subprocess.run(
            [*command, *options, "-o", "x.gvt", "program.py"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )

    return run


#: Each worker has backwards through the next one, and worker 1 ends as it is told.
PROGRAM = """
import os, signal, sys
import gradviz as gv
from gradviz.distributed import autograd, rpc

@rpc.register
def double(x):
    return x * 2

rpc.init()
rank = int(os.environ["RANK"])
for _ in range(3):
    with autograd.context() as context_id:
        x = gv.tensor([1.0], requires_grad=True)
        loss = rpc.rpc_sync((rank + 1) % 3, double, (x,)).sum()
        autograd.backward(context_id, [loss])
rpc.shutdown()
if rank == 1:
    END
"""


@pytest.mark.stress
@pytest.mark.parametrize(
    ("end", "code", "words"),
    [
        ("sys.exit(7)", 7, "worker 1 ended with exit code 7"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "worker 1 was killed by SIGKILL"),
    ],
)
def test_run_with_workers_merges_their_traces_and_ends_as_the_first_that_fails(
    run, end, code, words
):
    folder, done = run(PROGRAM.replace("END", end))
    assert done.returncode == code
    assert f"gradviz: {words}" in done.stderr
    names = ["x.gvt", *(f"x.worker{rank}.gvt" for rank in range(3))]
    whole, *parts = (load_trace(folder / name) for name in names)
    assert len(whole.processes) == 3
    assert {one.header.run_id for one in parts} == {whole.header.run_id} != {""}
    assert whole.num_events == sum(one.num_events for one in parts)
    assert len(parts[0].tasks) == 6  # its own passes, and its part of those of worker 2
    assert parts[2].losses.is_complete
    again = run(PROGRAM)[1]
    assert again.returncode == 1
    assert again.stderr == "gradviz: x.gvt exists already; replace it with -f\n"


@pytest.mark.stress
def test_a_command_after_a_run_with_workers_reads_the_merged_trace(run):
    _, done = run(PROGRAM.replace("END", "pass"), "--then", "show summary")
    assert done.returncode == 0
    assert "worker 2 / " in done.stdout
    assert done.stdout.split()[:2] == ["trace", "x.gvt"]
