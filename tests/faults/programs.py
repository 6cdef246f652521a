"""Running small programs in a process of their own, which must end in time."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

_ROOT = Path(__file__).parents[2]

#: What every program starts with.
_PREAMBLE = """
import faulthandler, os, signal, sys, threading
faulthandler.dump_traceback_later(40, exit=True)
from gradviz.backends.device import CPU
from gradviz.engine import AccumulateGrad, Edge, Engine
from gradviz.errors import EngineError
from tests.faults.scene import *
"""

#: After so long a program counts as hanging.
_TIMEOUT_SECONDS = 50


class Ended(NamedTuple):
    """How a program ended: as Python programs do, with nothing on stderr, or not."""

    exit_code: int
    output: str
    errors: str


def run_program(source: str, *arguments: object) -> Ended:
    """Run Python source, after `_PREAMBLE`."""
    return _run("-c", _PREAMBLE + textwrap.dedent(source), *arguments)


def run_campaign(module: str, *arguments: object) -> dict[str, Any]:
    """Run a module of the tests that prints a report, and return that."""
    ended = _run("-m", f"tests.faults.{module}", *arguments)
    assert ended.exit_code == 0, ended.errors
    report: dict[str, Any] = json.loads(ended.output)
    return report


def _run(*arguments: object) -> Ended:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    return Ended(done.returncode, done.stdout.strip(), done.stderr.strip())
