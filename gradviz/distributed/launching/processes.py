"""Processes, one for each worker: started together, and waited for."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

from gradviz.distributed.launching.meeting_folder import meeting_folder
from gradviz.distributed.messaging.ids import MAX_WORKER
from gradviz.distributed.transport.rendezvous import Rendezvous
from gradviz.engine.graph.sync import THREADS

#: Environment variable with what the recordings of one run have in common.
_RUN_ID: Final = "GRADVIZ_RUN_ID"

#: Seconds between two looks at the processes.
_PAUSE_SECONDS: Final = 0.02

#: Seconds that a process may take to end that was asked to.
_GRACE_SECONDS: Final = 5.0

#: Seconds between two looks of a worker at the process that started it.
_LOOK_SECONDS: Final = 1.0

#: After how many looks in a row one that is stopped, when all others have ended, is
#: killed: it would never end.
_MAX_STOPPED: Final = 50


class Ending(NamedTuple):
    """The end of a worker's process.

    Attributes:
        rank: The worker.
        exit_code: The exit code, as in a shell.
        words: The same for display.
        error: The error that it raised, with the traceback; empty if not reported.
    """

    rank: int
    exit_code: int
    words: str
    error: str = ""


def run_workers(
    commands: Sequence[Sequence[str]],
    variables: Sequence[Mapping[str, str]] | None = None,
    signals: Sequence[int] = (),
) -> list[Ending]:
    """Run one command for each worker, and wait until all have ended.

    Args:
        commands: By rank.
        variables: Further variables in the environment of each.
        signals: Those that this process gets meanwhile. The first is handed on to the
            workers, which may take a while to end then; at the second they are killed.

    Returns:
        Their ends, the first one first.

    Raises:
        ValueError: There cannot be so many.
        OSError: A process cannot be started; the others are ended.
    """
    check_number(len(commands))
    running: dict[int, subprocess.Popen[bytes]] = {}
    common = {_RUN_ID: os.environ.get(_RUN_ID) or uuid.uuid4().hex}
    with meeting_folder() as folder, _ended_at_last(running):
        rendezvous = Rendezvous.made_at(str(folder), len(commands))
        for rank, command in enumerate(commands):
            own = variables[rank] if variables is not None else {}
            running[rank] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **common, **rendezvous.variables(rank), **own},
            )
        return list(_endings(running, rendezvous, signals))


def begin_worker(rendezvous: Rendezvous) -> None:
    """End this process with its parent, and when that is interrupted.

    Args:
        rendezvous: Its own.
    """
    # A terminal sends Ctrl-C to all processes, and who has started them hands it on:
    # what follows the first must not disturb the end of this one.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt_once)
    THREADS.spawn(lambda: _follow(rendezvous), "gv_parent")


def _interrupt_once(*_: object) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _follow(rendezvous: Rendezvous) -> None:
    """End this process when the one that has started it is gone."""
    while not rendezvous.is_abandoned():
        time.sleep(_LOOK_SECONDS)
    shutil.rmtree(rendezvous.place, ignore_errors=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def check_number(num_workers: int) -> None:
    """Refuse numbers of workers that there cannot be.

    Raises:
        ValueError: This is one.
    """
    if not 0 < num_workers <= MAX_WORKER + 1:
        raise ValueError(
            f"there cannot be {num_workers} workers: expected 1 to {MAX_WORKER + 1}"
        )


def _endings(
    running: dict[int, "subprocess.Popen[bytes]"],
    rendezvous: Rendezvous,
    signals: Sequence[int],
) -> Iterator[Ending]:
    num_stopped = num_signals = 0
    deadline = float("inf")
    while running:
        if len(signals) > num_signals == 0:
            deadline = time.monotonic() + _GRACE_SECONDS
            for process in running.values():
                process.send_signal(signals[0])
        num_signals = len(signals)
        for rank, process in list(running.items()):
            code = process.poll()
            if code is not None:
                del running[rank]
                exit_code = code if code >= 0 else 128 - code
                error = rendezvous.error(rank)
                ending = Ending(rank, exit_code, _words(code), error)
                rendezvous.report_exit(rank, f"its process {ending.words}")
                yield ending
        is_over = all(_is_stopped(process.pid) for process in running.values())
        num_stopped = num_stopped + 1 if is_over else 0
        is_late = num_signals > 1 or time.monotonic() > deadline
        if num_stopped > _MAX_STOPPED or is_late:
            for process in running.values():
                process.kill()
        time.sleep(_PAUSE_SECONDS if running else 0)


def _is_stopped(pid: int) -> bool:
    """Return whether a process was stopped, by SIGSTOP say, and does not go on."""
    if not hasattr(os, "waitid"):  # macOS, before Python 3.13
        return False
    flags = os.WSTOPPED | os.WCONTINUED | os.WNOHANG | os.WNOWAIT
    found = os.waitid(os.P_PID, pid, flags)
    return found is not None and found.si_code == os.CLD_STOPPED


def _words(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


@contextlib.contextmanager
def _ended_at_last(running: dict[int, "subprocess.Popen[bytes]"]) -> Iterator[None]:
    """Leave no process behind, whatever happens."""
    try:
        yield
    except BaseException as error:
        is_interrupted = isinstance(error, KeyboardInterrupt)
        try:
            for process in running.values():
                process.send_signal(signal.SIGINT if is_interrupted else signal.SIGTERM)
            deadline = time.monotonic() + _GRACE_SECONDS
            for process in running.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))
        finally:  # also at a second Ctrl-C
            for process in running.values():
                process.kill()
                process.wait()
        raise
