"""``gradviz run --then``: commands that follow a run, on the trace that it wrote.

The program runs in a process of its own: whatever it does to its process, and however
it ends, there is somebody left to run the commands and to hand on its exit code. Exit
handlers could not: from Python 3.12 on they can start neither threads nor processes.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from gradviz.cli.console.notes import note
from gradviz.cli.console.output import check_output
from gradviz.posix import signals


class Words(click.ParamType):  # type: ignore[type-arg] # not generic before Click 8.4
    """A command line of gradviz, in one argument; in a variable ``;`` parts several."""

    name = "command"
    envvar_list_splitter = ";"

    def convert(
        self,
        value: str | tuple[str, ...],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, ...]:
        """Its words, as a shell would have them."""
        if isinstance(value, tuple):
            return value
        try:
            words = shlex.split(value)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        return tuple(words[words[:1] == ["gradviz"] :])


def opened(commands: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """The commands, with ``--open`` where they draw something.

    Raises:
        click.UsageError: None of them does.
    """
    if not any(words[:1] == ("render",) for words in commands):
        raise click.UsageError("--open shows a picture: add --then 'render graph'")
    return tuple(
        (*words, "--open") if words[:1] == ("render",) else words for words in commands
    )


def run_then(
    args: Sequence[str], path: Path, commands: Sequence[Sequence[str]], *, force: bool
) -> int:
    """Run a program and then the commands; the program's exit code if it is not 0.

    Otherwise it is that of the first command that fails. Without a new trace, since
    there is no such program for example, no command is run.

    Args:
        args: The arguments of ``gradviz run``.
        path: The trace to write.
        commands: The words of each.
        force: True if the trace may be replaced.

    Raises:
        click.UsageError: One of the commands is wrong; the program has not begun then.
        UserError: The trace cannot be written there.
    """
    root = click.get_current_context().find_root().command
    assert isinstance(root, click.Group)
    for words in commands:
        _check(root, words)
    check_output(path, force=force)
    before = _version(path)
    code = _run(["--no-then", "-o", str(path)], args)
    if _version(path) == before:
        if commands and not code:
            note(f"there is no new {path}: no command follows")
        return code
    for words in commands:
        try:
            root.main(list(words), obj=path)
        except SystemExit as ended:
            if ended.code:
                note(f"'{shlex.join(words)}' ended with exit code {ended.code}")
                code = code or int(ended.code)
    return code


def rerun_command(options: Sequence[str], args: Sequence[str]) -> list[str]:
    """The command line of this process, ``gradviz run``, with some more options.

    Args:
        options: They come before its own.
        args: The arguments of ``gradviz run``.
    """
    ours = [sys.executable, "-m", "gradviz", "run"]
    if sys.orig_argv[-len(args) :] == list(args):  # with the options of Python
        ours = [sys.executable, *sys.orig_argv[1 : -len(args)]]
    return [*ours, *options, *args]


def _check(root: click.Group, words: Sequence[str]) -> None:
    """Parse a command line without running it."""
    group: click.Command | None = root
    context, rest = click.Context(root, info_name="gradviz"), list(words)
    while isinstance(group, click.Group):
        if not rest:
            raise click.UsageError("a command is missing", context)
        name, group, rest = group.resolve_command(context, rest)
        if isinstance(group, click.Group):
            context = click.Context(group, parent=context, info_name=name)
        elif group is not None:
            group.make_context(name, rest, parent=context)


def _version(path: Path) -> tuple[int, int] | None:
    """Return the identity and time of the file there."""
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns
    return None


def _run(options: Sequence[str], args: Sequence[str]) -> int:
    """Run ``gradviz run`` as this process was, with some more options."""
    child = subprocess.Popen(rerun_command(options, args))

    def forward_signal(number: int, _: object) -> None:
        # A terminal sends Ctrl-C to both.
        if number != signal.SIGINT or not _is_in_foreground():
            child.send_signal(number)

    numbers = signals("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")
    before = {number: signal.signal(number, forward_signal) for number in numbers}
    try:
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 - code if code < 0 else code


def _is_in_foreground() -> bool:
    """Return whether keys pressed in a terminal become signals of this process."""
    try:
        with Path("/dev/tty").open("rb") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
