"""Starting the workers of a program as processes, and waiting for them."""

import contextlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.spawn import import_main_path
from pathlib import Path
from typing import Any, Final, NamedTuple

from gradviz.distributed.failures import RpcError
from gradviz.distributed.ids import MAX_WORKER
from gradviz.distributed.transport.rendezvous import Rendezvous

#: How many seconds are between two looks at the processes.
_PAUSE_SECONDS: Final = 0.02

#: How many seconds a process may take to end that was asked to.
_GRACE_SECONDS: Final = 5.0

#: After how many looks in a row one that is stopped, when all others have ended, is
#: killed: it would never end.
_MAX_STOPPED: Final = 50

#: Runs a function of the process that has started this one; see `spawn`.
_PROGRAM: Final = "from gradviz.distributed.launch import run_spawned; run_spawned()"

_SPAWNED: Final = "GRADVIZ_WORKERS_FUNCTION"


class WorkerFailedError(RpcError):
    """A worker's process did not end well.

    Attributes:
        rank: Which worker.
        exit_code: As a shell has it: 128 and the number of the signal that killed it.
    """

    def __init__(self, rank: int, exit_code: int, text: str) -> None:
        super().__init__(text)
        self.rank = rank
        self.exit_code = exit_code


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


def spawn(fn: Callable[[int], object], nprocs: int) -> None:
    """Run ``fn(rank)`` in several processes, each of which can be a worker.

    In each of them ``rpc.init()`` needs no arguments. All of them are waited for, also
    those that go on when another one has failed; what stops the waiting, such as
    Ctrl-C, ends them.

    Args:
        fn: At the top level of a module. That of the program is imported anew as
            ``__mp_main__``, so what only the program should do stands under
            ``if __name__ == "__main__":``.
        nprocs: How many.

    Raises:
        WorkerFailedError: One did not end well; the first that did not.
        ValueError: No process could find `fn`, or there cannot be so many.

    Source: torch.multiprocessing.spawn.
    """
    where = json.dumps([_module_of(fn), fn.__qualname__, sys.path])
    command = [sys.executable, *_options_of_python(), "-c", _PROGRAM]
    with tempfile.TemporaryDirectory(prefix="gradviz-") as folder:
        variables = [{_SPAWNED: where, f"{_SPAWNED}_ERROR": folder}] * nprocs
        endings = run_workers([command] * nprocs, variables)
        for rank, exit_code, words in endings:
            if exit_code:
                report = Path(folder, str(rank))
                text = report.read_text(errors="replace") if report.exists() else ""
                raise WorkerFailedError(
                    rank,
                    exit_code,
                    f"worker {rank} of {nprocs} {words}" + (text and f":\n\n{text}"),
                )


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
    if not 0 < len(commands) <= MAX_WORKER + 1:
        raise ValueError(
            f"there cannot be {len(commands)} workers: expected 1 to {MAX_WORKER + 1}"
        )
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


def run_spawned() -> None:
    """Run what `spawn` was given, in one of its processes."""
    module, name, sys.path[:] = json.loads(os.environ.pop(_SPAWNED))
    folder = os.environ.pop(f"{_SPAWNED}_ERROR")
    rank = int(os.environ["RANK"])
    try:
        function = _function(module, name)
        function(rank)
    except Exception:  # noqa: BLE001 - whoever waits is told
        traceback = importlib.import_module("traceback")
        Path(folder, str(rank)).write_text(
            traceback.format_exc(), errors="backslashreplace"
        )
        sys.exit(1)


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


def _options_of_python() -> list[str]:
    """What this Python was started with that another one should be, too."""
    return subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined,no-any-return] # as multiprocessing does


def _module_of(function: Callable[..., Any]) -> str:
    """Where other processes find a function: a module, or the file of the program.

    Raises:
        ValueError: They do not.
    """
    name = getattr(function, "__qualname__", "")
    module = sys.modules.get(getattr(function, "__module__", ""))
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if module is None or found is not function:
        raise ValueError(
            f"{name or function!r} cannot be found by other processes: put it at the "
            f"top level of a module"
        )
    if module.__name__ != "__main__":
        return module.__name__
    if module.__spec__ is not None:
        return module.__spec__.name
    path = getattr(module, "__file__", None)
    if path is None:
        raise ValueError(
            f"{name} cannot be found by other processes: write it into a file"
        )
    return str(Path(path).resolve())


def _function(module: str, name: str) -> Callable[[int], object]:
    if os.sep in module:
        import_main_path(module)
        found: Any = sys.modules["__main__"]
    else:
        found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    function: Callable[[int], object] = found
    return function
