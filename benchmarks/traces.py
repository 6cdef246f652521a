"""How long traces of a million events and more take to read and to look at.

Each question is asked in a process of its own (`python -m benchmarks.traces QUESTION
TRACE`), since the peak of memory is a process's.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

import gradviz
from benchmarks.memory import resident
from gradviz.analysis.moments.engine_state import History
from gradviz.analysis.training.summary import summarize
from gradviz.export.perfetto import parts
from gradviz.trace.reading.reader import load_trace

#: Nodes of a chain's backward, which reports eight events of each.
_CHAIN: Final = 500

#: Branches that are all ready at once.
_BRANCHES: Final = 70_000


class Answer(NamedTuple):
    """What a question took.

    Attributes:
        question: In words.
        amount: Seconds, or bytes.
        budget: The most that it may be.
        unit: ``s`` or ``MB``.
    """

    question: str
    amount: float
    budget: float | None
    unit: str


def answers() -> Iterator[Answer]:
    """All of them; takes two minutes."""
    with tempfile.TemporaryDirectory() as folder:
        million, ten, wide, long = (
            Path(folder) / f"{name}.gvt" for name in ("million", "ten", "wide", "long")
        )
        _record_chains(million, passes=250)
        yield from _loaded(million, "a million events", 0.5, 2.0, 200)
        yield Answer(
            "any moment of a million events, the worst of 200",
            *(_asked("moments", million), 0.05, "s"),
        )
        yield Answer(
            "a file for Perfetto of a million events, once loaded",
            *(_asked("perfetto", million), 4.0, "s"),
        )
        _record_branches(wide)
        yield Answer(
            f"any moment where {_BRANCHES:,} tasks lie in one queue, the worst of 200",
            *(_asked("moments", wide), 0.05, "s"),
        )
        _record_chains(long, passes=1, length=100_000)
        yield Answer(
            "a table of 100,000 rows, the command", *(_asked("table", long), 2.0, "s")
        )
        _record_chains(ten, passes=2500)
        yield from _loaded(ten, "ten million events", None, None, None)


def _loaded(
    path: Path,
    what: str,
    load_s: float | None,
    summarize_s: float | None,
    peak_mb: float | None,
) -> Iterator[Answer]:
    yield Answer(f"loading {what}", _asked("load", path), load_s, "s")
    took = _asked("summarize", path)
    yield Answer(f"summarizing {what}, once loaded", took, summarize_s, "s")
    yield Answer(f"memory of both, {what}", _asked("memory", path), peak_mb, "MB")


def _asked(question: str, path: Path) -> float:
    command = [sys.executable, "-m", "benchmarks.traces", question, str(path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(output.splitlines()[-1])


def _record_chains(path: Path, *, passes: int, length: int = _CHAIN) -> None:
    x = gradviz.ones(4, requires_grad=True)
    with gradviz.record(path):
        for _ in range(passes):
            y = x
            for _ in range(length // 2):
                y = (y * 1.01).sin()
            y.sum().backward()


def _record_branches(path: Path) -> None:
    x = gradviz.ones(1, requires_grad=True)
    with gradviz.record(path):
        branches = [(x * 2.0).sin() for _ in range(_BRANCHES)]
        gradviz.stack(branches).sum().backward()


def _answer(question: str, path: Path) -> float:
    if question == "table":
        command = [sys.executable, "-m", "gradviz", "show", "order", str(path)]
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin
    begin = time.perf_counter()
    trace = load_trace(path)
    loaded = time.perf_counter()
    if question == "load":
        return loaded - begin
    if question == "moments":
        history = History(trace)
        took = []
        for seq in np.linspace(0, history.num_events - 1, 200).astype(int).tolist():
            begin = time.perf_counter()
            history.at(seq, most=200)
            took.append(time.perf_counter() - begin)
        return max(took)
    if question == "perfetto":
        for _ in parts(trace):
            pass
        return time.perf_counter() - loaded
    summarize(trace)
    if question == "summarize":
        return time.perf_counter() - loaded
    return resident("VmHWM") / 1e6


if __name__ == "__main__":
    print(_answer(sys.argv[1], Path(sys.argv[2])))
