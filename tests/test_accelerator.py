import json
import os
import subprocess
import sys

import pytest

import gradviz as gv


@pytest.fixture
def asked() -> gv.device:
    return gv.device("sim")


#: Asks for nothing, in every way to find out what there is.
PROBING = """
gv.sim.is_available(), gv.sim.device_count(), gv.cuda.is_available()
gv.get_default_device(), gv.ones(2).is_pinned(), gv.Event()
x = gv.ones(2, requires_grad=True)
with gv.autograd.graph.save_on_cpu(pin_memory=True):
    (x * x).sum().backward()
with gv.accelerator.device_index(None):
    gv.accelerator.set_device_index(-1)
for refused in (
    gv.Stream, gv.Event().record, gv.current_stream, gv.ones(2).pin_memory,
    lambda: gv.ones(2, pin_memory=True), lambda: gv.ones(2).to(0),
    gv.accelerator.current_device_index, gv.accelerator.current_stream,
    gv.accelerator.synchronize, gv.accelerator.empty_cache,
    gv.accelerator.memory_allocated, gv.accelerator.memory_reserved,
    gv.accelerator.max_memory_allocated, gv.accelerator.reset_peak_memory_stats,
    lambda: gv.accelerator.set_device_index(0),
):
    try:
        refused()
    except RuntimeError as error:
        text = "Cannot access accelerator device when none is available."
        assert str(error).startswith(text), error
    else:
        raise AssertionError(refused)
"""

#: What a program does, and what it then finds if there is no GPU.
CASES = {
    "pass": "False 0 None",
    PROBING: "False 0 None",
    "gv.zeros(2, device='sim')": "True 2 sim:0",
    "gv.set_default_device('sim:1')": "True 2 sim:0",
    "gv.Stream('sim:0')": "True 2 sim:0",
    "gv.sim.set_device(1)": "True 2 sim:1",
    "gv.sim.set_latency(None)": "True 2 sim:0",
    "gv.sim.set_device_count(3)": "True 3 sim:0",
    "os.environ['GRADVIZ_SIM'] = '3'": "True 3 sim:0",
    "os.environ['GRADVIZ_SIM'] = '0'": "False 0 None",
    "os.environ['GRADVIZ_SIM'] = ''": "False 0 None",
}

#: Runs each in a process of its own, for asking holds for all of a process.
PROGRAM = """
import json, os, sys, gradviz as gv, gradviz.stream_check.checker, gradviz.cli.main
gv.zeros
for case in json.loads(sys.argv[1]):
    if os.fork() == 0:
        exec(case)
        there = gv.accelerator
        print(
            there.is_available(), there.device_count(), there.current_accelerator()
        )
        sys.stdout.flush()
        os._exit(0)
    assert os.wait()[1] == 0, case
"""


@pytest.mark.skipif(gv.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_there_is_an_accelerator_once_a_program_asks_for_one():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(list(CASES))],
        env={k: v for k, v in os.environ.items() if k != "GRADVIZ_SIM"},
        timeout=120,
        check=True,
        capture_output=True,
        text=True,
    )

    assert dict(zip(CASES, done.stdout.splitlines(), strict=True)) == CASES


@pytest.mark.usefixtures("asked")
def test_its_functions_are_those_of_the_current_accelerator():
    assert gv.accelerator.current_device_index() == 0
    assert gv.accelerator.current_stream() == gv.current_stream()
    with gv.accelerator.device_index(0):
        gv.accelerator.synchronize()
    side = gv.Stream()
    gv.accelerator.set_stream(side)
    try:
        assert gv.accelerator.current_stream() == side
    finally:
        gv.accelerator.set_stream(gv.default_stream())
    gv.accelerator.set_device_index(0)
    gv.accelerator.empty_cache()
    gv.accelerator.reset_peak_memory_stats()
    assert gv.accelerator.max_memory_allocated() == gv.accelerator.memory_allocated()
    assert gv.accelerator.memory_reserved() >= 0


@pytest.mark.usefixtures("asked")
def test_the_cpu_is_none():
    with pytest.raises(ValueError, match=r"Expected a .* device, but got: cpu"):
        gv.accelerator.synchronize("cpu")


@pytest.mark.parametrize("module", [gv.accelerator, gv.cuda, gv.sim])
def test_every_public_name_is_there(module):
    assert sorted(module.__all__) == module.__all__
    for name in module.__all__:
        assert callable(getattr(module, name))
        assert name == "Latency" or getattr(module, name).__doc__
