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

from gradviz.cli.console.notes import note, note_next
from gradviz.cli.console.output import check_output
from gradviz.cli.run.then import rerun_command
from gradviz.errors import GradvizError
from gradviz.posix import signals
from gradviz.render.words.text import count
from gradviz.trace.format.model import Trace

#: Signals that end the workers, and then this process.
_ENDINGS: Final = signals("SIGINT", "SIGTERM", "SIGHUP")


def run_with_workers(
    args: Sequence[str], path: Path, num_workers: int, *, force: bool, quiet: bool
) -> int:
    """Run a program in several processes; the exit code of the first that fails.

    When all have ended, their traces are merged, as far as there are any.

    Args:
        args: The arguments of ``gradviz run``.
        path: The trace of all; see `trace_of_worker` for those of each.
        num_workers: Number of processes.
        force: True if traces may be replaced.
        quiet: Say only what went wrong.

    Raises:
        UserError: The traces cannot be written there.
    """
    parts = [trace_of_worker(path, rank) for rank in range(num_workers)]
    for one in (path, *parts):
        check_output(one, force=force)
    for one in (path, *parts):
        one.unlink(missing_ok=True)  # or an old one would be merged with new ones
    command = rerun_command(["--is-worker", "--quiet", "-o", str(path)], args)
    processes = _distributed("launching.processes")
    signals: list[int] = []
    with _noted(signals):
        endings = processes.run_workers([command] * num_workers, signals=signals)
    asked = 128 + signals[0] if signals else 0
    for rank, exit_code, words, _ in endings:
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
        path: Path of the whole.
        quiet: Say only what went wrong.

    Raises:
        UserError: They do not fit into one, or it cannot be written.
    """
    # Loaded when there are workers: most programs have none.
    from gradviz.cli.console.trace_argument import read_trace  # noqa: PLC0415

    traces = []
    for rank, part in enumerate(parts):
        try:
            traces.append(read_trace(part))
        except GradvizError as error:
            note(f"warning: worker {rank} has left no trace: {error}")
    if traces:
        merge_traces(traces, path, "worker", quiet=quiet)


def merge_traces(
    traces: Sequence[Trace], path: Path, noun: str, *, quiet: bool
) -> None:
    """Put the traces of several processes into one, and say how much there is.

    Args:
        traces: At least one.
        path: Path of the whole.
        noun: One of the processes in words, such as ``worker``.
        quiet: Say only what went wrong.

    Raises:
        UserError: They do not fit into one, or it cannot be written.
    """
    from gradviz.cli.commands.merge import merge  # noqa: PLC0415 - as above

    merge(traces, path, quiet=True)
    if quiet:
        return
    whole = importlib.import_module("gradviz.trace.reading.reader").load_trace(path)
    parts_of = importlib.import_module("gradviz.analysis.tables.worker_parts")
    passes = len(parts_of.numbers_of(whole, whole.tasks))
    events = sum(one.num_events for one in traces)
    note(
        f"recorded {count(passes, 'backward')} and {count(events, 'event')} of "
        f"{count(len(traces), noun)} in {path}, and each alone beside it"
    )
    if passes:
        note_next("show order", path)


def merge_launched(parts: Sequence[Path], path: Path, *, quiet: bool) -> bool:
    """Put the traces into one that the processes of a launcher left.

    Args:
        parts: Theirs. Those without a pass, such as of loaders of data, are left out.
        path: Path of the whole, in the place of the launcher's own trace.
        quiet: Say only what went wrong.

    Returns:
        False if there is no pass in any of them, or they do not fit into one.
    """
    from gradviz.cli.console.trace_argument import warn_of_losses  # noqa: PLC0415

    # Without the thread that shows progress: exit handlers can start none.
    load_trace = importlib.import_module("gradviz.trace.reading.reader").load_trace
    traces = []
    for part in parts:
        try:
            trace = load_trace(part)
        except GradvizError as error:
            note(f"warning: {part} is left out: {error}")
            continue
        if trace.tasks:
            warn_of_losses(part, trace.losses)
            traces.append(trace)
    try:
        if traces:
            merge_traces(traces, path, "process", quiet=quiet)
    except GradvizError as error:
        note(str(error))
        return False
    return bool(traces)


def trace_of_worker(path: Path, rank: int) -> Path:
    """The trace of one worker, beside that of all."""
    return path.with_name(f"{path.stem}.worker{rank}{path.suffix}")


def begin_worker(path: Path) -> Path:
    """Have this process be one of those; its trace."""
    found = _distributed("transport.rendezvous").Rendezvous.of_environment(os.environ)
    if found is None:
        raise click.UsageError("--is-worker is what --workers says: use that")
    rank, rendezvous = found
    _distributed("launching.processes").begin_worker(rendezvous)
    return trace_of_worker(path, rank)


def _distributed(name: str) -> ModuleType:
    """A module, loaded where it is needed: it brings tensors and all operations."""
    return importlib.import_module(f"gradviz.distributed.{name}")
