"""The distributed engine next to PyTorch's own, which runs in processes of its own."""

import json
import subprocess
import sys

import pytest

import gradviz as gv
from gradviz.distributed import autograd, rpc
from gradviz.distributed.optim import DistributedOptimizer
from tests.distributed.company import Company, idle
from tests.parity import distributed_programs as programs

pytest.importorskip("torch.distributed.rpc")

# Three processes that import PyTorch take their time.
pytestmark = pytest.mark.stress


@pytest.fixture(scope="module")
def of_torch(tmp_path_factory):
    meeting_place = tmp_path_factory.mktemp("torch") / "store"
    workers = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.parity.distributed_programs",
                str(rank),
                meeting_place,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]
    try:
        printed, errors = workers[0].communicate(timeout=120)
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    assert printed, errors
    return json.loads(printed.splitlines()[-1])


@pytest.fixture(scope="module")
def of_gradviz():
    for function in (*programs.FUNCTIONS.values(), programs.on):
        rpc.register(function)
    programs.WORLD.__dict__.update(
        lib=gv,
        rpc=rpc,
        autograd=autograd,
        optimizer=DistributedOptimizer,
        fails=programs.failing_function(gv.autograd.Function),
    )
    return json.loads(json.dumps({name: run(name) for name in programs.PROGRAMS}))


def run(name):
    """Return a program's results in gradviz."""
    found = []
    Company(0).run(lambda: found.append(programs.PROGRAMS[name]()), idle, idle)
    return found[0]


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_a_program_of_three_workers_shows_the_same(name, of_torch, of_gradviz):
    assert of_gradviz[name] == of_torch[name]
