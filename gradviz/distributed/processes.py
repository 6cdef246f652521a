"""Processes, one for each worker: started together, and waited for."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from gradviz.distributed.ids import MAX_WORKER
from gradviz.distributed.transport.rendezvous import Rendezvous

#: How many seconds are between two looks at the processes.
_PAUSE_SECONDS: Final = 0.02

#: How many seconds a process may take to end that was asked to.
_GRACE_SECONDS: Final = 5.0

#: After how many looks in a row one that is stopped, when all others have ended, is
#: killed: it would never end.
_MAX_STOPPED: Final = 50


class Ending(NamedTuple):
    """How a worker's process has ended.

    Attributes:
        rank: Which worker.
        exit_code: As a shell has it.
        words: The same for people.
    """

    rank: int
    exit_code: int
    words: str


def run_workers(
    commands: Sequence[Sequence[str]],
    variables: Sequence[Mapping[str, str]] | None = None,
) -> list[Ending]:
    """Run one command for each worker, and wait until all have ended.

    Args:
        commands: By rank.
        variables: What the environment of each says besides.

    Returns:
        Their ends, the first one first.

    Raises:
        ValueError: There cannot be so many.
        OSError: A process cannot be started; the others are ended.
    """
    check_number(len(commands))
    folder = tempfile.mkdtemp(prefix="gradviz-")  # nobody else may open it
    rendezvous = Rendezvous.made_at(folder, len(commands))
    running: dict[int, subprocess.Popen[bytes]] = {}
    try:
        with _ended_at_last(running):
            for rank, command in enumerate(commands):
                own = variables[rank] if variables is not None else {}
                running[rank] = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, **rendezvous.variables(rank), **own},
                )
            return list(_endings(running, rendezvous))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
    running: dict[int, "subprocess.Popen[bytes]"], rendezvous: Rendezvous
) -> Iterator[Ending]:
    num_stopped = 0
    while running:
        for rank, process in list(running.items()):
            code = process.poll()
            if code is not None:
                del running[rank]
                ending = Ending(rank, code if code >= 0 else 128 - code, _words(code))
                rendezvous.bury(rank, f"its process {ending.words}")
                yield ending
        is_over = all(_is_stopped(process.pid) for process in running.values())
        num_stopped = num_stopped + 1 if is_over else 0
        if num_stopped > _MAX_STOPPED:
            for process in running.values():
                process.kill()
        time.sleep(_PAUSE_SECONDS if running else 0)


def _is_stopped(pid: int) -> bool:
    """Whether a process was stopped, by SIGSTOP say, and does not go on."""
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
        # Ctrl-C in a terminal has reached them as well.
        is_told = isinstance(error, KeyboardInterrupt)
        for process in running.values():
            if not is_told:
                process.terminate()
        deadline = time.monotonic() + _GRACE_SECONDS
        for process in running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        for process in running.values():
            process.kill()
            process.wait()
        raise
