import signal

import pytest

from tests.warm_python import run_gradviz

STANDSTILL = """
import threading
import gradviz as gv
from gradviz.engine import Node, default_engine

class Waits(Node):
    def apply(self, grad):
        engine.watch(0.05, lambda text: (print(text), reported.set()))
        reported.wait(60)
        engine.watch(0, str)
        return ()

reported = threading.Event()
engine = default_engine()
engine.execute([(Waits(), 0)], [1.0])
"""

ON_REQUEST = """
import os, signal
from gradviz.engine import Node, default_engine

class Asks(Node):
    def apply(self, grad):
        os.kill(os.getpid(), signal.SIGUSR1)
        return ()

default_engine().execute([(Asks(), 0)], [1.0])
"""


def run(code, *options):
    return run_gradviz("run", "-q", *options, "-c", code)


def test_a_standstill_is_reported_once_with_the_node_that_runs(tmp_path):
    done = run(STANDSTILL, "-o", str(tmp_path / "x.gvt"))

    assert done.exit_code == 0, done.errors
    assert done.output.count("no backward pass made progress for 0.05 s") == 1
    assert "runs <Waits #0>" in done.output


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no such signal here")
def test_sigusr1_reports_the_state_of_the_engine(tmp_path):
    done = run(ON_REQUEST, "-o", str(tmp_path / "x.gvt"))

    assert done.exit_code == 0
    assert done.errors.startswith("1 pass under way\n")
    assert "runs <Asks #0> of <GraphTask #0>" in done.errors


def test_a_watchdog_of_no_time_is_a_usage_error_only_if_negative(tmp_path):
    assert run("", "--watchdog", "0", "-o", str(tmp_path / "x.gvt")).exit_code == 0
    assert run("", "--watchdog", "-1").exit_code == 2
