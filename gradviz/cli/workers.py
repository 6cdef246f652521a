"""``gradviz run --workers``: a program of several workers, each with its own trace."""

import importlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from gradviz.cli.notes import note
from gradviz.cli.then import again


def run_with_workers(args: Sequence[str], path: Path, num_workers: int) -> int:
    """Run a program in several processes; the exit code of the first that fails.

    Args:
        args: The arguments of ``gradviz run``.
        path: What the traces are called by; see `trace_of_worker`.
        num_workers: How many.
    """
    command = again(["--is-worker", "-o", str(path)], args)
    # Loaded where it is needed: it brings tensors and all their operations.
    processes = importlib.import_module("gradviz.distributed.processes")
    before = signal.signal(signal.SIGTERM, _end)
    try:
        endings = processes.run_workers([command] * num_workers)
    finally:
        signal.signal(signal.SIGTERM, before)
    for rank, exit_code, words in endings:
        if exit_code:
            note(f"worker {rank} {words}")
    return next((one.exit_code for one in endings if one.exit_code), 0)


def trace_of_worker(path: Path) -> Path:
    """The trace of this process, which is a worker."""
    rank = os.environ.get("RANK", "")
    return path.with_name(f"{path.stem}.worker{rank}{path.suffix}")


def _end(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)  # which ends the workers, too
