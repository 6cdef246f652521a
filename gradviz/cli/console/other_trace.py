"""Another trace that one is compared with: its file, and which pass of it."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gradviz.analysis.tables.passes import NoSuchPassError, select_task
from gradviz.cli.console.trace_argument import NODE_RUNS, read_trace
from gradviz.errors import UserError
from gradviz.trace.format.model import Trace

#: Pass of a file, after a colon.
_TASK: Final = re.compile(r"(.+):(\d{1,19}|last|slowest|failed)", re.DOTALL)


def parts_of(name: str) -> tuple[Path, str | None]:
    """Return a file, and which pass of it; a file that is called so goes first."""
    found = _TASK.fullmatch(name)
    if found is None or Path(name).exists():
        return Path(name), None
    return Path(found[1]), found[2]


def read_compared(path: Path) -> Trace:
    """Load a trace whose nodes are compared with those of another one.

    Raises:
        UserError: It is not a trace, or it lacks what is compared.
    """
    return read_trace(path, needs=NODE_RUNS, all_nodes=True)


@contextlib.contextmanager
def named_in_errors(trace: Trace) -> Iterator[None]:
    """Name a trace in errors, since a user who gave two has to know which is meant."""
    try:
        yield
    except UserError as error:
        raise type(error)(f"{trace.path}: {error}") from error


def one_pass(trace: Trace, which: str) -> int:
    """Return the one pass that is meant.

    Raises:
        UserError: There is none, or there are several.
    """
    with named_in_errors(trace):
        found = select_task(trace, which)
    if len(found) > 1:
        raise NoSuchPassError(
            f"{trace.path} has {len(found):,} passes {which!r}, expected one: say which"
        )
    return found[0]
