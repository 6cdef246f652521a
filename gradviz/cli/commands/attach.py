"""``gradviz attach``: record a program that runs already."""

import contextlib
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import click

from gradviz.capture.private_folder import (
    check_is_private,
    make_private_folder,
    private_folder,
    socket_of,
)
from gradviz.capture.standby_messages import (
    LONGEST_MESSAGE,
    Request,
    StandbyAnswer,
    decoded,
    encoded,
)
from gradviz.cli.console.notes import note, note_next
from gradviz.cli.console.options import (
    force_option,
    quiet_option,
    recorded_output_option,
)
from gradviz.cli.console.output import STDOUT, check_output
from gradviz.errors import UserError
from gradviz.posix import posix_needed
from gradviz.render.words.text import count

#: Has another process run the file of a script: ``sys.remote_exec``.
RemoteExec: TypeAlias = Callable[[int, str], None]

#: So long a program may take until it runs what it is told to: it may be in C code.
_PATIENCE_SECONDS: Final = 30.0

#: Code that a program runs that was not started in standby.
_SCRIPT: Final = """\
try:
    from gradviz.capture.standby import start_standby
    start_standby(only_once=True)
except BaseException as error:
    with open({problem!r}, "w") as file:
        file.write(repr(error))
"""


@click.command("attach")
@click.argument("pid", type=click.IntRange(min=1))
@recorded_output_option("attach")
@force_option
@quiet_option
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Record for so long. [default: until Ctrl-C, or the program ends]",
)
@click.option(
    "--steps",
    type=click.IntRange(1, 2**31),
    metavar="N",
    help="Record so many whole steps, from the end of the current one. A step ends "
    "with the step() of an optimizer.",
)
def command(
    pid: int,
    output: Path | None,
    force: bool,
    quiet: bool,
    seconds: float | None,
    steps: int | None,
) -> None:
    """Record a program that runs already.

    PID is the process of a program of this user that waits for it: one that was
    started with "gradviz run --standby", or with GRADVIZ_TRACE=standby and imports
    gradviz. From Python 3.14 on, any Python program that has gradviz installed will do.

    Example:
        gradviz attach 4711 --steps 3
    """
    if output == STDOUT:
        raise click.UsageError("the program writes the trace: name a file for it")
    path = output or Path(f"gradviz-attach.{pid}.gvt")
    check_output(path, force=force)
    _check_process(pid)
    with _connected(pid) as connection, connection.makefile("rb") as answers:
        request = Request(str(path.absolute()), force, seconds, steps)
        with contextlib.suppress(OSError):  # it has ended: no answer comes
            connection.sendall(encoded(request))
        answer = _next(answers, pid)
        if answer is None:
            raise UserError(f"process {pid} has ended before it was recorded")
        if not quiet:
            until = "" if seconds or steps else ": Ctrl-C ends that"
            note(f"process {pid} is recorded into {path}{until}")
        try:
            answer = _next(answers, pid)
        except KeyboardInterrupt:
            connection.shutdown(socket.SHUT_WR)  # which ends the recording
            answer = _next(answers, pid)
    if answer is None:
        note(f"process {pid} has been ended; {path} holds what it had written")
    elif answer.reason:
        note(f"warning: {answer.reason}")
    if answer is not None and not quiet:
        _tell(answer, path)


def _tell(answer: StandbyAnswer, path: Path) -> None:
    """Say what is in the trace."""
    if not answer.tasks:
        note(f"no backward pass was recorded; {path} is a trace without passes")
        return
    note(
        f"recorded {count(answer.tasks, 'backward')}, {count(answer.nodes, 'node')}, "
        f"{count(answer.events, 'event')} ({answer.dropped:,} dropped) in {path}"
    )
    note_next("show order", path)


def _check_process(pid: int) -> None:
    """Verify that a process is there and this user's.

    Raises:
        UserError: It is not, or this system cannot attach.
    """
    if not hasattr(os, "getuid"):  # and there `os.kill` would end the process
        raise UserError(posix_needed("gradviz attach"))
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        raise UserError(f"there is no process {pid}") from None
    except PermissionError:
        raise UserError(
            f"process {pid} is another user's: only that user can attach to it"
        ) from None
    owner = _owner(pid)
    if owner not in {None, os.getuid()}:  # root may send a signal to any
        raise UserError(
            f"process {pid} is user {owner}'s, and you are user {os.getuid()}: only "
            f"that user can attach to it"
        )


def _owner(pid: int) -> int | None:
    """Return the user of a process; None if that is not known here."""
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None


def _connected(pid: int) -> socket.socket:
    """Connect to a program in standby, or have it enter that first.

    Raises:
        UserError: It cannot be reached; says what to do.
    """
    folder = private_folder()
    if os.path.lexists(folder):
        check_is_private(folder)
    connection = _connection(folder, pid)
    if connection is not None:
        return connection
    remote_exec: RemoteExec | None = getattr(sys, "remote_exec", None)
    if remote_exec is None:
        raise UserError(
            f"process {pid} is not in standby: start the program with 'gradviz run "
            f"--standby ...', or with GRADVIZ_TRACE=standby if it imports gradviz; "
            f"only Python 3.14 and later can be attached to without"
        )
    return _entered(pid, remote_exec)


def _connection(folder: Path, pid: int) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(os.fspath(socket_of(folder, pid)))
    except OSError:  # none, or one that is left of a process that was killed
        connection.close()
        return None
    return connection


def _entered(
    pid: int, remote_exec: RemoteExec, pause: Callable[[float], None] = time.sleep
) -> socket.socket:
    """Have a process enter standby, and connect to it.

    Args:
        pid: The process.
        remote_exec: Has it run a script, sooner or later.
        pause: Waits for so many seconds.

    Raises:
        UserError: It cannot, or does not.
    """
    folder = make_private_folder()
    with tempfile.TemporaryDirectory(dir=folder) as scripts:
        script, problem = Path(scripts, "enter.py"), Path(scripts, "problem")
        script.write_text(_SCRIPT.format(problem=str(problem)))
        try:
            remote_exec(pid, str(script))
        except Exception as error:  # noqa: BLE001 - it may raise anything
            raise UserError(f"cannot attach to process {pid}: {error}") from None
        for _ in range(int(_PATIENCE_SECONDS / 0.1)):
            connection = _connection(folder, pid)
            if connection is not None:
                return connection
            if problem.exists() and (reason := problem.read_text()):
                raise UserError(f"process {pid} cannot record itself: {reason}")
            _check_process(pid)
            pause(0.1)
    raise UserError(
        f"process {pid} has not answered for {_PATIENCE_SECONDS:g} s: it may be in C "
        f"code for long, or stopped"
    )


def _next(answers: BinaryIO, pid: int) -> StandbyAnswer | None:
    """Wait for an answer; None if the process has ended.

    Raises:
        UserError: It refuses, or what it says is no answer.
    """
    line = b""
    with contextlib.suppress(OSError):
        line = answers.readline(LONGEST_MESSAGE)
    if not line:
        return None
    try:
        answer = decoded(line, StandbyAnswer)
    except UserError as error:
        raise UserError(
            f"process {pid} may have another version of gradviz: {error}"
        ) from None
    if answer.state == "refused":
        raise UserError(answer.reason)
    return answer
