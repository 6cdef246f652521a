"""Fixtures for every test that runs PyTorch beside gradviz."""

import contextlib
import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

#: Functions of `torch` that tell a mode of the process or of the thread.
MODES = (
    "is_anomaly_enabled",
    "is_anomaly_check_nan_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "get_default_dtype",
    "get_default_device",
)


def state() -> dict[str, Any]:
    """Return the functions that tell PyTorch's modes, and what they say."""
    if (torch := sys.modules.get("torch")) is None:
        return {}
    functions = {name: getattr(torch, name) for name in MODES}
    return {name: (one, one()) for name, one in functions.items()}


@pytest.fixture(autouse=True)
def modes_are_left_as_they_were() -> Iterator[None]:
    """Blame a mode left on, or a function left replaced, on the test that did it.

    Otherwise tests fail that run later in the same process, and in some orders only.
    """
    before = state()
    yield
    if before:  # else the test imported PyTorch, or there is none
        assert state() == before


@pytest.fixture
def no_other_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the threads of pytest, which wait, for threads that cannot run."""
    for name in ("pytorch.watching.kept_graphs", "capture.session"):
        module = importlib.import_module(f"gradviz.{name}")
        monkeypatch.setattr(module, "alone", lambda: contextlib.nullcontext(True))
