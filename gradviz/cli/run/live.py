"""``gradviz run --live``: the trace in a browser while the program writes it."""

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

from gradviz.cli.commands.view import begin_view
from gradviz.cli.console.notes import note
from gradviz.cli.console.output import check_output
from gradviz.cli.run.then import run_then


def run_live(
    args: Sequence[str], path: Path, commands: Sequence[Sequence[str]], *, force: bool
) -> int:
    """Run a program as `run_then` does, and show its trace from the begin.

    On a terminal it is shown until Ctrl-C, elsewhere until all has ended.

    Args:
        args: The arguments of ``gradviz run``.
        path: The trace to write.
        commands: The words of each that follows.
        force: True if the trace may be replaced.

    Raises:
        click.UsageError: One of the commands is wrong; the program has not begun then.
        UserError: The trace cannot be written there.
    """
    check_output(path, force=force)
    server = begin_view(path, is_written_anew=True)
    thread = Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    code = run_then(args, path, commands, force=force)
    if sys.stderr.isatty():
        note("the program has ended; its trace is shown until Ctrl-C")
        with contextlib.suppress(KeyboardInterrupt):
            thread.join()
    return code
