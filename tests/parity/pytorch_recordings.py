"""Programs of PyTorch's, recorded."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import gradviz as gv
from gradviz.analysis.check import check_trace
from gradviz.capture import Recording
from gradviz.trace import events as e

torch = pytest.importorskip("torch")


def recorded(program: Callable[[], Any]) -> Recording:
    with gv.pytorch.record() as recording:
        program()
    return recording


def of_kind(recording: Recording, *kinds: type[e.AnyEvent]) -> list[Any]:
    return [event for event in recording.events() if isinstance(event, kinds)]


def is_sound(recording: Recording) -> bool:
    """Whether all of it is explained, and could have happened."""
    history = check_trace(recording.trace).history
    return not of_kind(recording, e.Unexplained) and not history.num_violations


def leaf(*shape: int) -> Any:
    return torch.ones(*shape or (3,), requires_grad=True)


def python(
    tmp_path: Any, program: str, *before: str
) -> "subprocess.CompletedProcess[str]":
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    return subprocess.run(
        [sys.executable, *before, "program.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=120,
    )


def gradviz_run(tmp_path: Any, program: str) -> "subprocess.CompletedProcess[str]":
    return python(tmp_path, program, "-m", "gradviz", "run", "-o", "out.gvt")
