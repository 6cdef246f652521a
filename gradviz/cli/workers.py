"""``gradviz run --workers``: a program of several workers, each with its own trace."""

import importlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from gradviz.cli.merge import merge
from gradviz.cli.notes import note, note_next
from gradviz.cli.reading import read_trace
from gradviz.cli.then import again
from gradviz.cli.writing import check_output
from gradviz.errors import GradvizError
from gradviz.render.text import count


def run_with_workers(
    args: Sequence[str], path: Path, num_workers: int, *, force: bool, quiet: bool
) -> int:
    """Run a program in several processes; the exit code of the first that fails.

    When all have ended, their traces are merged, as far as there are any.

    Args:
        args: The arguments of ``gradviz run``.
        path: The trace of all; see `trace_of_worker` for those of each.
        num_workers: How many.
        force: Whether traces may be replaced.
        quiet: Say only what went wrong.

    Raises:
        UserError: The traces cannot be written there.
    """
    parts = [trace_of_worker(path, rank) for rank in range(num_workers)]
    for one in (path, *parts):
        check_output(one, force=force)
    for one in (path, *parts):
        one.unlink(missing_ok=True)  # or an old one would be merged with new ones
    command = again(["--is-worker", "--quiet", "-o", str(path)], args)
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
    _merge(parts, path, quiet=quiet)
    return next((one.exit_code for one in endings if one.exit_code), 0)


def trace_of_worker(path: Path, rank: int) -> Path:
    """The trace of one worker, beside that of all."""
    return path.with_name(f"{path.stem}.worker{rank}{path.suffix}")


def trace_of_this_worker(path: Path) -> Path:
    """The trace of this process, which is a worker."""
    return trace_of_worker(path, int(os.environ["RANK"]))


def _merge(parts: Sequence[Path], path: Path, *, quiet: bool) -> None:
    traces = []
    for rank, part in enumerate(parts):
        try:
            traces.append(read_trace(part))
        except GradvizError as error:
            note(f"warning: worker {rank} has left no trace: {error}")
    if not traces:
        return
    merge(traces, path, quiet=True)
    if quiet:
        return
    tasks = sum(len(one.tasks) for one in traces)
    events = sum(one.num_events for one in traces)
    note(
        f"recorded {count(tasks, 'backward')} and {count(events, 'event')} of "
        f"{count(len(traces), 'worker')} in {path}, and each alone beside it"
    )
    if tasks:
        note_next("show order", path)


def _end(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)  # which ends the workers, too
