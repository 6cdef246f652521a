from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from gradviz.capture.session import record
from gradviz.cli.main import gradviz
from gradviz.engine import Edge, Engine, Node

Call = Callable[..., Result]


class Double(Node):
    """y = 2 x, so its gradient is doubled."""

    def apply(self, grad):
        return (2.0 * grad,)


class Explode(Node):
    """A name and an error that try to be more than text."""

    def apply(self, grad):
        raise ValueError("</svg>\x1b[31m <b>boom</b>")


class Stop(Node):
    """Takes a gradient and hands on none."""

    def apply(self, grad):
        return ()


def backward(engine: Engine, length: int = 3) -> None:
    node: Node = Stop()
    for _ in range(length):
        node = Double([Edge(node)])
    engine.execute([Edge(node)], [np.ones(2)])


def record_backwards(path: Path, lengths: Sequence[int]) -> Path:
    engine = Engine()
    with record(path):
        for length in lengths:
            backward(engine, length)
    return path


#: The file of `trace_path`, once a test has asked for it, which checks it as its own.
_two_passes: list[bytes] = []


@pytest.fixture
def trace_path(tmp_path: Path) -> Path:
    """A trace of two backward passes, of three and of four nodes."""
    path = tmp_path / "two.gvt"
    if _two_passes:
        path.write_bytes(_two_passes[0])
    else:
        _two_passes.append(record_backwards(path, [2, 3]).read_bytes())
    return path


@pytest.fixture
def failed_path(tmp_path: Path) -> Path:
    """A trace of one pass, whose second node raises."""
    path = tmp_path / "failed.gvt"
    with record(path), pytest.raises(ValueError, match="boom"):
        Engine().execute([Edge(Double([Edge(Explode([Edge(None)]))]))], [np.ones(2)])
    return path


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the command line in the folder of the test."""
    monkeypatch.chdir(tmp_path)

    def run(*args: object) -> Result:
        return CliRunner().invoke(gradviz, list(map(str, args)))

    return run


@pytest.fixture
def record_empty() -> Callable[[Path], Path]:
    """Record nothing into a trace."""
    return lambda path: record_backwards(path, [])
