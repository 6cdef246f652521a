"""Files that appear whole or not at all."""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

#: How a file that is not there yet is opened: no link is followed to make it.
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file beside `path`, have the disk keep it, and move it there.

    Whatever fails, and whenever the process is killed, what was at `path` before is
    still there, or all of `parts` is. A symbolic link is replaced and not followed; the
    permissions of a file that is replaced stay. Devices and pipes are written to.

    Raises:
        OSError: It could not be written; nothing is left behind.
    """
    kept = _mode(path)
    if kept is not None and not stat.S_ISREG(kept):
        with path.open("wb") as there:
            there.writelines(parts)
        return
    beside = path.with_name(f".gradviz-{secrets.token_hex(8)}.part")
    try:
        with os.fdopen(os.open(beside, _NEW_FILE, 0o666), "wb") as new:
            if kept is not None:
                os.fchmod(new.fileno(), stat.S_IMODE(kept))
            new.writelines(parts)
            new.flush()
            os.fsync(new.fileno())
        beside.replace(path)
    except BaseException:  # an interrupt too: the file is nobody's
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def _mode(path: Path) -> int | None:
    """What is at `path`, or where a link there leads to; None if nothing is."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
