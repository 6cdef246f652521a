"""What is going on, on a terminal, while it takes long."""

import contextlib
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, TextIO

import click

_PATIENCE_S: Final = 0.5


def _soon(done: threading.Event) -> bool:
    """Whether it is done before anybody wonders."""
    return done.wait(_PATIENCE_S)


@contextlib.contextmanager
def working(
    what: str,
    terminal: TextIO | None = None,
    soon: Callable[[threading.Event], bool] = _soon,
) -> Iterator[None]:
    """Say what is going on, and for how long, if it is not done after half a second.

    The line goes as the work ends. Nothing is said where there is no terminal, nor
    with ``-q``.

    Args:
        what: Such as ``reading x.gvt``.
        terminal: Where to say it, stderr by default.
        soon: Waits for the end of the work; false if it takes long.
    """
    terminal = terminal or sys.stderr
    context = click.get_current_context(silent=True)
    is_quiet = context is not None and context.params.get("quiet", False)
    if is_quiet or not terminal.isatty():
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_say, args=(what, terminal, done, soon))
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _say(
    what: str,
    terminal: TextIO,
    done: threading.Event,
    soon: Callable[[threading.Event], bool],
) -> None:
    if soon(done):
        return
    console = importlib.import_module("rich.console")
    progress: Any = importlib.import_module("rich.progress")
    with progress.Progress(
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}", markup=False),
        progress.TimeElapsedColumn(),
        console=console.Console(file=terminal),
        transient=True,
    ) as shown:
        shown.add_task(what, total=None)
        done.wait()
