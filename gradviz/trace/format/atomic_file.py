"""Files that appear whole or not at all."""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gradviz import posix

#: Permissions of a new file, before the umask takes its share: that with which any
#: program makes its files, and that of traces and of what has all that is in one. These
#: hold paths and lines of source.
FOR_ALL: Final = 0o666
FOR_OWNER: Final = 0o600


def write_whole(path: Path, parts: Iterable[bytes], mode: int = FOR_ALL) -> None:
    """Write a file beside `path`, have the disk keep it, and move it there.

    Whatever fails, and whenever the process is killed, what was at `path` before is
    still there, or all of `parts` is. A symbolic link is replaced and not followed; the
    permissions of a file that is replaced stay. Devices and pipes are written to.

    Args:
        path: Path of the file.
        parts: Parts of it.
        mode: The permissions of a new file.

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
        with os.fdopen(os.open(beside, posix.NEW_FILE, mode), "wb") as new:
            if kept is not None:
                opened = new.fileno() if os.chmod in os.supports_fd else beside
                os.chmod(opened, stat.S_IMODE(kept))  # noqa: PTH101 - of a file open
            new.writelines(parts)
            new.flush()
            os.fsync(new.fileno())
        beside.replace(path)
    except BaseException:  # an interrupt too: the file is nobody's
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def _mode(path: Path) -> int | None:
    """Return the mode of the file at `path`, following links; None without one."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
