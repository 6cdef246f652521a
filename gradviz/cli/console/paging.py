"""Long output on a terminal goes through a pager, as that of git does."""

import contextlib
import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TextIO

import click

from gradviz.cli.console.notes import PLAIN


@contextlib.contextmanager
def paged(*, wanted: bool) -> Iterator[None]:
    """Send what is written to stdout through a pager if the terminal is too small.

    Nothing is changed where stdout is no terminal, or there is no pager.

    Args:
        wanted: True if it is a person who reads.
    """
    pager = _pager() if wanted and sys.stdout.isatty() else []
    if not pager:
        yield
        return
    terminal = sys.stdout
    height = shutil.get_terminal_size().lines
    sys.stdout = output = PagedOutput(terminal, pager, height)
    try:
        yield
    finally:
        sys.stdout = terminal
        output.finish()


class PagedOutput(io.TextIOBase):
    """A terminal, in front of which a pager is put as soon as the text is too long.

    Args:
        terminal: Terminal that short text goes to.
        pager: The words of the command that shows longer text.
        height: Number of lines of the terminal.
    """

    def __init__(self, terminal: TextIO, pager: Sequence[str], height: int) -> None:
        self._terminal = terminal
        self._command = pager
        self._height = height
        self._lines = 0
        self._held: list[str] = []
        self._pager: subprocess.Popen[str] | None = None
        self._sink: IO[str] | None = None
        self._has_left = False
        self._on_interrupt: Any = None

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of the terminal."""
        return self._terminal.encoding

    @property
    def errors(self) -> str:  # type: ignore[override]
        """Handling of characters that the encoding lacks."""
        return self._terminal.errors or "strict"

    def isatty(self) -> bool:
        """It is one to all who ask for colors and for its size."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor of the terminal."""
        return self._terminal.fileno()

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str) -> int:
        """Hold the text until it is known where it goes, then pass it on."""
        if self._sink is None:
            self._lines += text.count("\n")  # refuses bytes, which Click tries
            self._held.append(text)
            if self._lines >= self._height:
                self._open()
        else:
            self._pass_on(text)
        return len(text)

    def finish(self) -> None:
        """Write what was held; let the reader leave the pager when it suits them."""
        if self._sink is None:
            self._sink = self._terminal
            self._pass_on("".join(self._held))
        if self._pager is not None and self._pager.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._pager.stdin.close()
            self._pager.wait()
            signal.signal(signal.SIGINT, self._on_interrupt)
        else:
            self._terminal.flush()

    def _open(self) -> None:
        """Start the pager, or do without where that fails."""
        self._sink = self._terminal
        surroundings = {"LESS": "FRX", **os.environ}
        with contextlib.suppress(OSError):
            self._pager = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                text=True,
                encoding=self.encoding,
                errors=PLAIN,
                env=surroundings,
            )
        if self._pager is not None:
            assert self._pager.stdin is not None
            self._sink = self._pager.stdin
            # Ctrl-C is the pager's: in less it ends a search, and not the program.
            self._on_interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._pass_on("".join(self._held))

    def _pass_on(self, text: str) -> None:
        assert self._sink is not None
        if self._pager is not None and not _is_less(self._command):
            text = click.unstyle(text)
        if self._has_left:
            return
        try:
            self._sink.write(text)
        except BrokenPipeError:
            if self._pager is None:
                raise
            self._has_left = True  # whoever leaves the pager has seen enough


def _pager() -> list[str]:
    """The words of ``GRADVIZ_PAGER``, ``PAGER`` or less; none where none is wanted."""
    chosen = os.environ.get("GRADVIZ_PAGER", os.environ.get("PAGER"))
    if chosen is None:
        chosen = "less" if shutil.which("less") else ""
    try:
        words = shlex.split(chosen)
    except ValueError:
        return []
    if words == ["cat"]:
        return []
    return [*words, "-R"] if words and _is_less(words) else words


def _is_less(command: Sequence[str]) -> bool:
    """Return whether it is the pager that is known to show colors."""
    return Path(command[0]).name == "less"
