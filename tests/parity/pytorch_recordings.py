"""Programs of PyTorch's, recorded."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import gradviz as gv
from gradviz.analysis.findings.check import check_trace
from gradviz.capture.session import Recording
from gradviz.trace import events as e
from tests.warm_python import WITH_PYTORCH, Ended, run_warm

torch = pytest.importorskip("torch")


def recorded(program: Callable[[], Any]) -> Recording:
    with gv.pytorch.record() as recording:
        program()
    return recording


def of_kind(recording: Recording, *kinds: type[e.AnyEvent]) -> list[Any]:
    return [event for event in recording.events() if isinstance(event, kinds)]


def faults(recording: Recording) -> list[str]:
    """List what is unexplained in a recording, and what could not have happened."""
    unexplained = [event.text for event in of_kind(recording, e.Unexplained)]
    return [*unexplained, *map(str, check_trace(recording.trace).violations)]


def leaf(*shape: int) -> Any:
    return torch.ones(*shape or (3,), requires_grad=True)


def python(tmp_path: Any, program: str) -> Ended:
    """Run a program in a process that has imported PyTorch and used nothing of it."""
    return _run_warm(tmp_path, program)


def gradviz_run(tmp_path: Any, program: str) -> Ended:
    """Run a program as `python` does, with ``gradviz run -q``, into ``out.gvt``."""
    return _run_warm(tmp_path, program, "-m", "gradviz", "run", "-q", "-o", "out.gvt")


def new_python(
    tmp_path: Any, program: str, *before: str
) -> "subprocess.CompletedProcess[str]":
    """Run a program in a new process, where importing PyTorch takes two seconds."""
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    return subprocess.run(
        [sys.executable, *before, "program.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=120,
    )


def _run_warm(tmp_path: Any, program: str, *before: str) -> Ended:
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    return run_warm(
        *(*before, "program.py"),
        modules=WITH_PYTORCH,
        cwd=tmp_path,
        timeout_s=120,
    )
