"""``gradviz run`` records workers that are actors, whose files lie on other nodes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gradviz.trace.reading.reader import load_trace
from tests.distributed.boxes import RAY

pytestmark = RAY

#: Each worker has backwards through the next one, and then what it is told.
PROGRAM = """
import os, signal
import gradviz as gv
from gradviz.distributed import autograd, rpc

@rpc.register
def double(x):
    return x * 2

def one_pass(to):
    with autograd.context() as context_id:
        x = gv.tensor([1.0], requires_grad=True)
        autograd.backward(context_id, [rpc.rpc_sync(to, double, (x,)).sum()])

def main(rank):
    rpc.init()
    for _ in range(20):
        one_pass((rank + 1) % 3)
    then(rank)
    rpc.shutdown()
"""

GOOD = """
def then(rank):
    pass

if __name__ == "__main__":
    gv.distributed.spawn(main, 3, transport="ray")
    gv.distributed.spawn(print, 1, transport="ray")
    gv.tensor([1.0], requires_grad=True).sum().backward()
"""

KILLED = """
def then(rank):
    if rank == 1:
        for _ in range(300):
            one_pass(2)
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    gv.distributed.spawn(main, 3, transport="ray")
"""

FOREVER = """
def then(rank):
    print("begun", flush=True)
    while True:
        one_pass((rank + 1) % 3)

if __name__ == "__main__":
    gv.distributed.spawn(main, 3, transport="ray")
"""


@pytest.fixture
def start(tmp_path, ray_nodes):
    """Starts a program under ``gradviz run``, which joins the cluster of the tests."""
    started = []

    def start(program):
        (tmp_path / "program.py").write_text(PROGRAM + program)
        command = [sys.executable, "-m", "gradviz", "run", "-o", "x.gvt", "program.py"]
        running = subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(running)
        return running

    yield start
    for one in started:
        one.kill()
        one.communicate(timeout=60)


def loaded(folder):
    """The whole, and its parts."""
    names = ["x.gvt", *(f"x.worker{rank}.gvt" for rank in range(3))]
    whole, *parts = (load_trace(folder / name) for name in names)
    assert sorted(one.rank for one in whole.processes) == [0, 1, 2]
    assert whole.num_events == sum(one.num_events for one in parts)
    return parts


def test_traces_of_actors_come_from_their_nodes_and_are_merged(start, tmp_path):
    running = start(GOOD)
    said = running.communicate(timeout=200)[1]
    assert running.returncode == 0, said
    assert "workers of a second spawn are not recorded" in said
    assert "events of 3 workers in" in said
    for part in loaded(tmp_path):
        assert part.losses.is_complete
        assert len(part.tasks) == 40  # its own, and its part of those of another one
    assert len(load_trace(tmp_path / "x.driver.gvt").tasks) == 1


def test_the_trace_of_an_actor_that_is_killed_comes_up_to_its_last_frame(
    start, tmp_path
):
    running = start(KILLED)
    said = running.communicate(timeout=200)[1]
    assert "worker 1 of 3 is gone" in said
    parts = loaded(tmp_path)
    assert [one.losses.closed for one in parts] == [True, False, True]
    assert len(parts[1].tasks) > 40


@pytest.mark.parametrize(
    ("number", "exit_code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 1)],  # Ray has the second end a program
)
def test_traces_of_actors_come_when_a_run_is_interrupted(
    start, tmp_path, number, exit_code
):
    running = start(FOREVER)
    assert "begun" in running.stdout.readline()
    running.send_signal(number)
    said = running.communicate(timeout=200)[1]
    assert running.returncode == exit_code, said
    assert all(len(one.tasks) > 1 for one in loaded(tmp_path))


def test_a_trace_of_an_actor_is_not_replaced_unless_that_is_asked_for(start, tmp_path):
    (tmp_path / "x.worker2.gvt").write_bytes(b"precious")
    running = start(GOOD)
    said = running.communicate(timeout=200)[1]
    assert running.returncode == 1
    assert "x.worker2.gvt exists already; replace it with -f" in said
    assert "left no trace" not in said  # nor is it merged
    assert (tmp_path / "x.worker2.gvt").read_bytes() == b"precious"
