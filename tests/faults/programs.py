"""Running small programs in a process of their own, which must end in time.

What is dangerous to the process that does it belongs there: signals, errors thrown into
threads, failing allocations, forks. Where such a test fails, the next one must not
suffer; and CPython 3.11 itself hangs where a thread is traced while an error waits for
another one that sleeps.
"""

import json
import textwrap
from typing import Any, Final

from tests.warm_python import Ended, run_warm

#: After so long a program, or one pass of a campaign, shows its stacks and ends. Only
#: hanging takes so long: a loaded machine is slow, not stuck.
HANG_SECONDS: Final = 120

#: After so long a program that did not even do that is killed. The longest campaign
#: takes a minute.
_TIMEOUT_SECONDS: Final = 280

_MODULES: Final = ("gradviz.api", "tests.faults.scene")

#: What every program starts with.
_PREAMBLE: Final = f"""
import faulthandler, os, signal, sys, threading
faulthandler.dump_traceback_later({HANG_SECONDS}, exit=True)
from gradviz.backends.device import CPU
from gradviz.engine import AccumulateGrad, Edge, Engine
from gradviz.errors import EngineError
from tests.faults.scene import *
"""


def run_program(source: str, *arguments: object) -> Ended:
    """Run Python source, after `_PREAMBLE`."""
    return _run("-c", _PREAMBLE + textwrap.dedent(source), *arguments)


def run_campaign(module: str, *arguments: object) -> dict[str, Any]:
    """Run a module of the tests that prints a report, and return that."""
    ended = _run("-m", f"tests.faults.{module}", *arguments)
    assert ended.exit_code == 0, f"exit code {ended.exit_code}\n{ended.errors}"
    report: dict[str, Any] = json.loads(ended.output)
    return report


def _run(*arguments: object) -> Ended:
    ended = run_warm(*arguments, modules=_MODULES, timeout_s=_TIMEOUT_SECONDS)
    return ended._replace(output=ended.output.strip(), errors=ended.errors.strip())
