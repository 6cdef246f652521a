"""Output files of commands, which are never half written; ``-`` is stdout."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import click

from gradviz.errors import UserError
from gradviz.trace.format.atomic_file import FOR_ALL, write_whole

STDOUT: Final = Path("-")

Format = TypeVar("Format", bound=str)


def called(output: Path) -> str:
    """Return the name of an output in notes."""
    return "stdout" if output == STDOUT else str(output)


def format_of(path: Path, formats: Sequence[Format]) -> Format:
    """The format that the suffix of `path` names; the first of `formats` for ``-``.

    Raises:
        click.UsageError: It names none of them.
    """
    if path == STDOUT:
        return formats[0]
    for known in formats:
        if path.suffix.lower() == f".{known}":
            return known
    raise click.UsageError(
        f"cannot tell the format of {path}: expected .{' or .'.join(formats)}"
    )


def check_output(path: Path, *, force: bool) -> None:
    """Refuse an output before any work is done for it.

    Raises:
        UserError: Something is there already that may not be replaced, or there is
            no folder to put it in.
    """
    if path == STDOUT:
        return
    if path.exists() and not path.is_file():
        raise UserError(f"cannot write {path}: it is not a regular file")
    if os.path.lexists(path) and not force:
        raise UserError(f"{path} exists already; replace it with -f")
    if not path.parent.is_dir():
        raise UserError(f"cannot write {path}: there is no folder {path.parent}")


def write_output(path: Path, data: bytes, mode: int = FOR_ALL) -> None:
    """Write to stdout for ``-``, else to a file that appears whole or not at all.

    Args:
        path: Path of the output.
        data: Contents of the output.
        mode: The permissions of a new file, less the umask.

    Raises:
        UserError: The file cannot be written.
    """
    write_parts(path, [data], mode)


def write_parts(path: Path, parts: Iterable[bytes], mode: int = FOR_ALL) -> None:
    """The same of what is made piece by piece.

    Raises:
        UserError: The file cannot be written.
    """
    if path == STDOUT:
        for part in parts:
            click.echo(part, nl=False)
        return
    try:
        write_whole(path, parts, mode)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
