"""A command loads the modules that it uses, and few others."""

import json
import subprocess
import sys

import pytest

import gradviz as gv
from gradviz.cli.run.command import IDLE
from gradviz.cli.show import Show
from gradviz.engine import Engine

#: Runs a command line of gradviz, then prints which of gradviz's modules are loaded.
COMMAND = """\
import json, sys
from gradviz.cli.main import gradviz
try:
    gradviz(sys.argv[1:])
finally:
    print(json.dumps([name for name in sys.modules if name.split(".")[0] == "gradviz"]))
"""

#: A program of PyTorch's that says the same of the process that records it.
PROGRAM = """\
import json, sys, torch
torch.ones(2, requires_grad=True).sum().backward()
print(json.dumps([name for name in sys.modules if name.split(".")[0] == "gradviz"]))
"""


def modules_printed_by(*command):
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def packages_of(modules):
    return {".".join(name.split(".")[:2]) for name in modules}


def test_recording_a_program_of_pytorchs_loads_no_engine_and_nothing_that_draws(
    tmp_path,
):
    pytest.importorskip("torch")

    modules = modules_printed_by(
        *("-m", "gradviz", "run", "-q", "-o", str(tmp_path / "x.gvt"), "-c", PROGRAM)
    )

    assert "gradviz.pytorch.watching.watcher" in modules
    unused = {"analysis", "backends", "engine", "export", "nn", "ops", "optim"}
    unused |= {"distributed", "drawing", "tensors", "view"}
    assert packages_of(modules).isdisjoint(f"gradviz.{name}" for name in unused)
    drawing = {name for name in modules if name.startswith("gradviz.render.")}
    assert drawing == {"gradviz.render.words", "gradviz.render.words.text"}
    assert len(modules) <= 110


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "x.gvt"
    with gv.record(path):
        for _ in range(2):
            gv.ones(2, requires_grad=True).sum().backward()
    return path


@pytest.mark.parametrize("view", sorted(Show.entries))
def test_a_view_loads_no_engine_and_no_other_view(trace, view):
    modules = modules_printed_by("-c", COMMAND, "show", view, str(trace))

    unused = {"backends", "capture", "engine", "ops", "pytorch", "stream_check", "view"}
    assert packages_of(modules).isdisjoint(f"gradviz.{name}" for name in unused)
    others = {f"gradviz.cli.show.show_{other}" for other in Show.entries} - {
        f"gradviz.cli.show.show_{view}"
    }
    assert others.isdisjoint(modules)
    assert "gradviz.render.page" not in modules
    assert len(modules) <= 60


def test_a_recorded_pass_is_simulated_without_an_engine(trace):
    modules = modules_printed_by("-c", COMMAND, "simulate", str(trace))

    unused = {"backends", "capture", "engine", "ops", "pytorch", "stream_check", "view"}
    assert packages_of(modules).isdisjoint(f"gradviz.{name}" for name in unused)
    assert len(modules) <= 80


def test_the_state_of_no_engine_is_that_of_an_idle_one():
    engine = Engine()

    assert engine.dump_state() == IDLE

    engine.stop()
