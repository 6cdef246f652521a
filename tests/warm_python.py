"""Python programs whose slow imports are already done.

Importing gradviz takes a third of a second of processor time, which is more than most
of the programs that tests start take themselves. A server imports it once and forks for
each program. The program runs as ``__main__`` in a process and a session of its own,
with its own working directory and environment, and ends as Python ends.

Two things differ from a new process: modules are already imported, and no option of
Python itself but ``-W`` is supported. Tests of either start a new process.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import re
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

_ROOT: Final = Path(__file__).parents[1]

#: What the server answers to each request: a process, and then its exit code.
_NUMBER: Final = struct.Struct("i")

#: Frames of the server in a traceback, each with the lines of source below it.
_SERVER_FRAMES: Final = re.compile(
    r'^  File "(?:<frozen runpy>|[^"]*\bwarm_python\.py)".*\n(?:    .*\n)*',
    re.MULTILINE,
)

#: What recordings of PyTorch import; it starts no threads, which a fork would lose.
WITH_PYTORCH: Final = ("torch", "gradviz.pytorch", "gradviz.cli.run.command")


class Ended(NamedTuple):
    """The end of a program."""

    exit_code: int
    output: str
    errors: str


def run_warm(
    *arguments: object,
    modules: tuple[str, ...] = ("gradviz.api",),
    cwd: Path = _ROOT,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
    timeout_s: float = 150,
) -> Ended:
    """Run a program as Python with these arguments would, and wait for its end.

    Args:
        arguments: Perhaps ``-W ACTION``, then a script or ``-c SOURCE`` or
            ``-m MODULE``, then the program's own.
        modules: Names of the modules that are already imported.
        cwd: Working directory of the program.
        environment: Environment of the program; by default that of the caller.
        stdin: Text that the program may read.
        timeout_s: Seconds after which the program and its children are killed.

    Raises:
        TimeoutError: The program was killed.
    """
    request = {
        "arguments": list(map(str, arguments)),
        "cwd": str(cwd),
        "environment": dict(os.environ if environment is None else environment),
    }
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        given.write(stdin.encode())
        given.seek(0)
        files = [one.fileno() for one in (given, output, errors)]
        exit_code = _server_with(modules).run(request, files, timeout_s)
        shown = _SERVER_FRAMES.sub("", _text(errors))
        return Ended(exit_code, _text(output), shown)


def run_gradviz(
    *arguments: object,
    cwd: Path = _ROOT,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
    timeout_s: float = 60,
) -> Ended:
    """Run the command ``gradviz`` as `run_warm` runs a program."""
    return run_warm(
        *("-m", "gradviz", *arguments),
        modules=("gradviz.cli.run.command",),
        cwd=cwd,
        environment=environment,
        stdin=stdin,
        timeout_s=timeout_s,
    )


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode())


# --- the side of the tests ------------------------------------------------------------


class _Server:
    """A process that forks; one program at a time."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.warm_python"),
                    *(str(theirs.fileno()), *modules),
                ],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the tests
            )
        self._socket = ours

    def run(self, request: dict[str, Any], files: list[int], timeout_s: float) -> int:
        socket.send_fds(self._socket, [b"\n"], files)
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        pid = self._answer()
        in_time, *_ = select.select([self._socket], [], [], timeout_s)
        if not in_time:
            self._kill(pid)
        exit_code = self._answer()
        if not in_time:
            raise TimeoutError(f"after {timeout_s} s: {request['arguments']}")
        return exit_code

    def _kill(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:  # it has no session of its own yet, or has ended
                os.kill(pid, signal.SIGKILL)

    def _answer(self) -> int:
        answer = self._socket.recv(_NUMBER.size, socket.MSG_WAITALL)
        (number,) = _NUMBER.unpack(answer)
        return int(number)

    def stop(self) -> None:
        self._socket.close()
        self._process.wait()


@functools.cache
def _server_with(modules: tuple[str, ...]) -> _Server:
    server = _Server(modules)
    atexit.register(server.stop)
    return server


# --- the side of the programs ---------------------------------------------------------


def _serve(connection: socket.socket) -> dict[str, Any]:
    """Fork for each request.

    Returns:
        The request, in the fork only. The server exits when its client is gone.
    """
    with connection, connection.makefile("r") as lines:
        while True:
            _, files, _, _ = socket.recv_fds(connection, 1, 3)
            if not files:
                sys.exit()
            request: dict[str, Any] = json.loads(lines.readline())
            pid = os.fork()
            if not pid:
                os.setsid()
                for number, file in enumerate(files):
                    os.dup2(file, number)
                    os.close(file)
                return request
            for file in files:  # the fork has them
                os.close(file)
            connection.sendall(_NUMBER.pack(pid))
            _, status = os.waitpid(pid, 0)
            connection.sendall(_NUMBER.pack(os.waitstatus_to_exitcode(status)))


def _become(request: dict[str, Any]) -> None:
    """Run the program that was asked for, as ``__main__``."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    first, *others = request["arguments"]
    if first == "-W":
        action, first, *others = others
        sys.warnoptions.append(action)
        warnings.simplefilter(action)
    if first == "-m":
        sys.argv = others
        sys.path[0] = request["cwd"]
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
        return
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    if first == "-c":
        sys.argv, sys.path[0] = ["-c", *others[1:]], ""
        code = compile(others[0], "<string>", "exec")
    else:
        sys.argv, sys.path[0] = [first, *others], str(Path(first).parent)
        main.__file__ = str(Path(first).absolute())
        code = compile(Path(first).read_bytes(), main.__file__, "exec")
    exec(code, main.__dict__)


def _main(descriptor: str, *modules: str) -> None:
    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # else the end of each program looks through all that was imported
    _become(_serve(socket.socket(fileno=int(descriptor))))


if __name__ == "__main__":
    _main(*sys.argv[1:])
