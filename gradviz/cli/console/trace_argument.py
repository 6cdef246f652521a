"""The trace a command works on: named, or the newest of the current folder."""

from collections.abc import Collection
from pathlib import Path
from typing import Final

import click

from gradviz.cli.console.notes import note, working
from gradviz.errors import UserError
from gradviz.trace.format.model import Losses, Trace
from gradviz.trace.reading.reader import load_trace

#: Events that tell which nodes ran, and when.
NODE_RUNS: Final = ("node_started", "node_completed")

#: A warning tells so much of what is lost; ``check`` tells all.
_TOLD: Final = 4


def find_trace(path: Path | None) -> Path:
    """`path`, or the newest ``*.gvt`` of the current folder, which is said on stderr.

    A command that follows a run, by ``--then``, means the trace that was just written.

    Raises:
        UserError: No path was given and there is no trace here.
    """
    context = click.get_current_context(silent=True)
    path = path or (context.obj if context else None)
    if path is not None:
        return path
    if (newest := newest_trace()) is None:
        raise UserError(
            f"no trace given and no *.gvt in {Path.cwd()}: name one, or record one "
            f"with 'gradviz run SCRIPT'"
        )
    note(f"reading {newest}, the newest trace here")
    return newest


def read_trace(
    path: Path, *, needs: Collection[str] = (), all_nodes: bool = False
) -> Trace:
    """Load a trace; says on stderr what of it is lost, or was left out on purpose.

    Args:
        path: The file.
        needs: Kinds of events without which the command would say what is not so.
        all_nodes: True if it would, too, with only some nodes recorded.

    Raises:
        TraceError: It is not a trace, or nothing of it can be read.
        UserError: Events or nodes that the command needs were left out.
    """
    with working(f"reading {path}"):
        trace = load_trace(path)
    warn_of_losses(path, trace.losses)
    scope = trace.header.scope
    if missing := sorted(set(needs).intersection(scope.left_out)):
        raise UserError(
            f"{path} was recorded without events {', '.join(missing)}, and without "
            f"them this cannot be told: record it again, with them among its events"
        )
    if all_nodes and scope.only:
        raise UserError(
            f"{path} was recorded with the events of only some nodes, "
            f"{', '.join(scope.only)}, and without the others this cannot be told: "
            f"record it again with all nodes"
        )
    if left_out := list(scope.in_words()):
        note(
            f"{path} was recorded with less on purpose: {'; '.join(left_out)}; what "
            f"depends on the rest is not known"
        )
    return trace


def warn_of_losses(path: Path, losses: Losses) -> None:
    """Say on stderr what of a trace is lost, if anything is."""
    if losses.is_complete:
        return
    told = losses.in_words()
    more = f"; and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
    note(f"warning: {path} is incomplete: {'; '.join(told[:_TOLD])}{more}")


def check_recorded(trace: Trace, node: int) -> None:
    """Make sure that the events of a node were to be recorded.

    Raises:
        UserError: They were not.
    """
    scope, definition = trace.header.scope, trace.nodes.get(node)
    if definition and not scope.has_events_of(definition.name, definition.module):
        raise UserError(
            f"only events of the nodes {', '.join(scope.only)} were recorded, and "
            f"{definition.name} ({node}) is none of them"
        )


def newest_trace() -> Path | None:
    """The newest ``*.gvt`` of the current folder; None if there is none."""
    traces = (path for path in Path().glob("*.gvt") if path.is_file())
    return max(traces, key=lambda path: (path.stat().st_mtime_ns, path), default=None)
