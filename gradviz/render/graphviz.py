"""Graphviz as a child process: with a time limit, and without access to files.

It is the ``dot`` on the PATH, or else pygraphviz, whose wheels bring Graphviz along:
the same program to all who call it here.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from typing import Final

from gradviz.errors import MissingToolError, RenderTimeoutError, UserError

#: pygraphviz in the role of ``dot -Tformat``.
_PYGRAPHVIZ: Final = """
import sys, pygraphviz
graph = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode())
sys.stdout.buffer.write(graph.draw(None, sys.argv[1], "dot"))
"""

#: Graphviz takes itself for a web server's: it opens no file that a graph names.
_NO_FILES: Final = {"SERVER_NAME": "gradviz"}


def where() -> str | None:
    """The path of ``dot``, else ``pygraphviz`` if that is here; None: no Graphviz."""
    return shutil.which("dot") or ("pygraphviz" if _has_pygraphviz() else None)


def is_available() -> bool:
    """Whether there is any Graphviz to run."""
    return where() is not None


def run(source: str, format: str, timeout_s: float) -> bytes:  # noqa: A002 - what it is called everywhere
    """What Graphviz makes of DOT text.

    Args:
        source: The graph.
        format: Such as ``plain``, ``png`` or ``pdf``.
        timeout_s: How long it may take; then it is killed.

    Raises:
        MissingToolError: There is no Graphviz.
        RenderTimeoutError: It took too long.
        UserError: It failed; the text says with what.
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
    """As `subprocess.run`, but what ``dot``, as a script, began is stopped too."""
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | _NO_FILES,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(source, timeout_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _command(format: str) -> list[str]:  # noqa: A002 - as above
    dot = where()
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
