"""``gradviz run --workers``: a program of several workers, each with its own trace."""

import contextlib
import importlib
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

import click

from gradviz.cli.merge import merge
from gradviz.cli.notes import note, note_next
from gradviz.cli.reading import read_trace
from gradviz.cli.then import again
from gradviz.cli.writing import check_output
from gradviz.errors import GradvizError
from gradviz.render.text import count

#: What ends the workers, and then this process.
_ENDINGS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
    processes = _distributed("processes")
    signals: list[int] = []
    with _noted(signals):
        endings = processes.run_workers([command] * num_workers, signals=signals)
    asked = 128 + signals[0] if signals else 0
    for rank, exit_code, words in endings:
        if exit_code not in {0, asked}:
            note(f"worker {rank} {words}")
    if asked:
        note(f"the workers were ended by {signal.Signals(signals[0]).name}")
    if len(signals) < 2:  # at the second Ctrl-C nobody wants to wait
        merge_workers(parts, path, quiet=quiet)
    return asked or next((one.exit_code for one in endings if one.exit_code), 0)


@contextlib.contextmanager
def _noted(signals: list[int]) -> Iterator[None]:
    """Take note of signals that would end this process, unless it ignores them."""
    before = {
        number: signal.signal(number, lambda number, _: signals.append(number))
        for number in _ENDINGS
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def merge_workers(parts: Sequence[Path], path: Path, *, quiet: bool) -> None:
    """Put the traces of workers into one, as far as there are any.

    Args:
        parts: Theirs, by rank.
        path: Where the whole goes.
        quiet: Say only what went wrong.

    Raises:
        UserError: They do not fit into one, or it cannot be written.
    """
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


def trace_of_worker(path: Path, rank: int) -> Path:
    """The trace of one worker, beside that of all."""
    return path.with_name(f"{path.stem}.worker{rank}{path.suffix}")


def begin_worker(path: Path) -> Path:
    """Have this process be one of those; its trace."""
    found = _distributed("transport.rendezvous").Rendezvous.of_environment(os.environ)
    if found is None:
        raise click.UsageError("--is-worker is what --workers says: use that")
    rank, rendezvous = found
    _distributed("processes").begin_worker(rendezvous)
    return trace_of_worker(path, rank)


def _distributed(name: str) -> ModuleType:
    """A module, loaded where it is needed: it brings tensors and all operations."""
    return importlib.import_module(f"gradviz.distributed.{name}")
