"""What is said to a person on stderr; data goes to stdout, never here."""

import contextlib
import shlex
from pathlib import Path

import click

from gradviz.render.text import clean, count


def note(text: str) -> None:
    """Write one line to stderr.

    It stays one line, whatever the text holds: file names and messages may hold line
    breaks and terminal escapes. A closed stderr is no reason to fail.
    """
    with contextlib.suppress(OSError, ValueError):
        click.echo(f"gradviz: {clean(text)}", err=True)


def note_omitted(num_spans: int, num_lanes: int) -> None:
    """Say what of a timeline is left out, if anything is."""
    if num_spans or num_lanes:
        note(
            f"too much for one timeline: left out are {num_spans:,} nodes and kernels, "
            f"{count(num_lanes, 'lane')}"
        )


def note_next(command: str, trace: Path) -> None:
    """Say which command is of use next."""
    note(f"next: gradviz {command} {shlex.quote(str(trace))}")
