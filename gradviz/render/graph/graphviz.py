"""Graphviz as a child process: with a time limit, and without access to files.

It is the ``dot`` on the PATH, or else pygraphviz, whose wheels bring Graphviz along:
the same program to all who call it here.
"""

import contextlib
import importlib.util
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Final

from gradviz.errors import MissingToolError, RenderTimeoutError, UserError

#: pygraphviz in the role of ``dot -Tformat``.
_PYGRAPHVIZ: Final = """
import sys, pygraphviz
graph = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode())
sys.stdout.buffer.write(graph.draw(None, sys.argv[1], "dot"))
"""

#: Maximum size of a picture; of a program that prints without end no more is read.
MAX_ANSWER: Final = 128 << 20

#: Graphviz takes itself for a web server's: it opens no file that a graph names.
_NO_FILES: Final = {"SERVER_NAME": "gradviz"}


def find_graphviz() -> str | None:
    """The path of ``dot``, else ``pygraphviz`` if that is here; None: no Graphviz."""
    return shutil.which("dot") or ("pygraphviz" if _has_pygraphviz() else None)


def is_available() -> bool:
    """Return whether Graphviz can be run."""
    return find_graphviz() is not None


def run(source: str, format: str, timeout_s: float) -> bytes:  # noqa: A002 - what it is called everywhere
    """Run Graphviz on DOT text and return its output.

    Args:
        source: The graph.
        format: Such as ``plain``, ``png`` or ``pdf``.
        timeout_s: Time after which it is killed.

    Raises:
        MissingToolError: There is no Graphviz.
        RenderTimeoutError: It took too long.
        UserError: It failed, or wrote far too much; the text says with what.
    """
    try:
        done = _run_within(timeout_s, _command(format), source.encode())
    except subprocess.TimeoutExpired as error:
        raise RenderTimeoutError(
            f"Graphviz took longer than {timeout_s:g} s and was stopped; "
            f"allow more with --timeout, or draw an svg with --engine own"
        ) from error
    except OSError as error:
        raise UserError(f"Graphviz cannot be started: {error}") from error
    if done.returncode != 0 or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(
            f"Graphviz failed with exit code {done.returncode}"
            f"{': ' + said[-1] if said else ''}; an svg with --engine own needs none"
        )
    return done.stdout


def _run_within(
    timeout_s: float, command: list[str], source: bytes
) -> subprocess.CompletedProcess[bytes]:
    """Run a command like `subprocess.run`; stop its children too."""
    deadline_s = time.monotonic() + timeout_s
    with tempfile.TemporaryFile() as given:
        given.write(source)
        given.seek(0)
        with subprocess.Popen(
            command,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | _NO_FILES,
            start_new_session=True,
        ) as process:
            try:
                out, err = _read(process, deadline_s)
                process.wait(max(deadline_s - time.monotonic(), 0))
            except BaseException:
                _kill(process)
                raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process, and on POSIX those that it started."""
    if not hasattr(os, "killpg"):
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _read(process: subprocess.Popen[bytes], deadline_s: float) -> tuple[bytes, bytes]:
    """Return all output of a process, unless it is too much to be an answer.

    Raises:
        subprocess.TimeoutExpired: It was not done in time.
        UserError: It wrote too much.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    said = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    with selectors.DefaultSelector() as selector:
        for pipe in said:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(deadline_s - time.monotonic(), 0))
            if not ready:
                raise subprocess.TimeoutExpired(process.args, deadline_s)
            for key, _ in ready:
                some = os.read(key.fd, 1 << 20)
                if not some:
                    selector.unregister(key.fd)
                said[key.fd] += some
            if sum(map(len, said.values())) > MAX_ANSWER:
                raise UserError(
                    f"Graphviz wrote more than {MAX_ANSWER >> 20} MiB and was stopped; "
                    f"is {find_graphviz()} what you take it for? An svg with "
                    f"--engine own needs none"
                )
    out, err = map(bytes, said.values())
    return out, err


def _command(format: str) -> list[str]:  # noqa: A002 - as above
    dot = find_graphviz()
    if dot == "pygraphviz":
        return [sys.executable, "-c", _PYGRAPHVIZ, format]
    if dot is not None:
        return [dot, "-Kdot", f"-T{format}"]
    raise MissingToolError(
        "neither 'dot' nor pygraphviz is here: pip install 'gradviz[dot]', or take "
        "--engine own, which needs nothing"
    )


def _has_pygraphviz() -> bool:
    return importlib.util.find_spec("pygraphviz") is not None
