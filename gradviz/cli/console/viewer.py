"""Showing files that were written, and pages, with the viewer of the desktop."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import click

from gradviz.cli.console.notes import note
from gradviz.cli.console.output import STDOUT

#: Most viewers are asked to open a file and leave; one that stays is shown by then.
_PATIENCE_S: Final = 3.0


def check_viewable(path: Path, *, is_opened: bool) -> None:
    """Refuse ``--open`` where there will be no file, before any work is done for it.

    Raises:
        click.UsageError: The result goes to stdout.
    """
    if is_opened and path == STDOUT:
        raise click.UsageError("--open needs a file: -o - writes to stdout")


def show_file(path: Path) -> None:
    """Open a file with the desktop's viewer; say where it lies if there is none."""
    where = str(path.absolute())
    if not show_with_desktop(where, f"{where} is there"):
        note(f"there is no viewer here: open {where} yourself")


def show_with_desktop(what: str, else_: str) -> bool:
    """Open a file or an address as the desktop does; false if there is no desktop.

    Args:
        what: The file, or the address.
        else_: Text to show if that fails.
    """
    viewer = _viewer()
    if viewer is None:
        return False
    try:
        started = subprocess.Popen(
            [viewer, what],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C here is none of its business
        )
    except OSError as error:
        note(f"cannot start {viewer}: {error.strerror}: {else_}")
        return True
    code: int | None = None
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = started.wait(_PATIENCE_S)
    if code:
        note(f"{viewer} failed with exit code {code}: {else_}")
    return True


def _viewer() -> str | None:
    """The program that knows which viewer a file has; needs a display to show it on."""
    if sys.platform == "darwin":
        return "open"
    has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return shutil.which("xdg-open") if has_display else None
