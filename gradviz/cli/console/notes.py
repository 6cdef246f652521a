"""Notes to a person on stderr, and progress while work takes long.

Data goes to stdout, never here. Streams that cannot take all characters, or should not
get them, are given plain ones: each stands for one that views draw with and is as wide,
so that columns stay columns.
"""

import codecs
import contextlib
import importlib
import io
import os
import shlex
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TextIO

import click

from gradviz.render.words.text import clean, count

_PATIENCE_S: Final = 0.5

#: The name of the error handler, as `codecs.register_error` knows it.
PLAIN: Final = "gradviz.plain"

_PLAIN: Final = dict(
    zip(
        "µ…·×╌—–━─│╷└●○▸←→↑↓✕✓ ▏▎▍▌▋▊▉█▁▂▃▄▅▆▇",  # noqa: RUF001 - what is replaced
        "u~.x---=-||`*o><>^vx+ ...++++#_.-=+*%",
        strict=True,
    )
) | {"±": "+-"}


def note(text: str) -> None:
    """Write one line to stderr.

    It stays one line, whatever the text holds: file names and messages may hold line
    breaks and terminal escapes. A closed stderr is no reason to fail.
    """
    with contextlib.suppress(OSError, ValueError):
        click.echo(plain(f"gradviz: {clean(text)}", sys.stderr), file=sys.stderr)


def note_omitted(num_spans: int, num_lanes: int) -> None:
    """Say what of a timeline is left out, if anything is."""
    if num_spans or num_lanes:
        note(
            f"too much for one timeline; left out: {num_spans:,} nodes and kernels, "
            f"{count(num_lanes, 'lane')}"
        )


def note_next(command: str, trace: Path) -> None:
    """Say which command is of use next."""
    note(f"next: gradviz {command} {shlex.quote(str(trace))}")


def note_first(num_shown: int, num_passes: int) -> None:
    """Say that only the first passes are shown, if there are more."""
    if num_passes > num_shown:
        note(f"{num_shown:,} passes of {num_passes:,} are shown, the first ones")


def _soon(done: threading.Event) -> bool:
    """Return whether it is done before anybody wonders."""
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
        terminal: Stream to say it on, stderr by default.
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


def plain(text: str, stream: TextIO) -> str:
    """`text` with all replaced that a stream cannot take."""
    encoding = _encoding_for(stream)
    return text.encode(encoding, PLAIN).decode(encoding)


@contextlib.contextmanager
def plain_streams() -> Iterator[None]:
    """Replace what stdout and stderr cannot take, as long as the block runs."""
    with contextlib.ExitStack() as stack:
        for stream in (sys.stdout, sys.stderr):
            encoding = _encoding_for(stream)
            if isinstance(stream, io.TextIOWrapper) and not _is_unicode(encoding):
                stack.callback(
                    stream.reconfigure, encoding=stream.encoding, errors=stream.errors
                )
                stream.reconfigure(encoding=encoding, errors=PLAIN)
        yield


def _encoding_for(stream: TextIO) -> str:
    """The encoding of what a stream should get.

    Python takes the locale "C" for one of UTF-8; whoever asks for it wants ASCII.
    """
    encoding = stream.encoding or "utf-8"  # a stream in memory has none
    return "ascii" if _is_unicode(encoding) and _wants_ascii() else encoding


def _is_unicode(encoding: str) -> bool:
    return encoding.lower().startswith(("utf", "cp65001"))


def _wants_ascii() -> bool:
    """Return True if the environment asks for the locale "C" and for nothing else."""
    if os.environ.get("PYTHONUTF8") == "1" or os.environ.get("PYTHONIOENCODING"):
        return False
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return next(filter(None, names), "") in {"C", "POSIX"}


def _replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace characters that cannot be encoded; see `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    part = error.object[error.start : error.end]
    return "".join(map(_plain, part)), error.end


def _plain(character: str) -> str:
    """A character of ASCII, or a letter without its accents, or question marks."""
    if character in _PLAIN:
        return _PLAIN[character]
    base = unicodedata.normalize("NFKD", character)[0]
    if base.isascii():
        return base
    return "??" if unicodedata.east_asian_width(character) in {"W", "F"} else "?"


codecs.register_error(PLAIN, _replaced)
