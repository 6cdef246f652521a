"""Sinks: where the bytes of a trace go."""

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Final, Protocol

from gradviz.errors import UserError

#: How a trace file is opened: it must be new, and no link is followed to make it.
_NEW_FILE: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
)


class Sink(Protocol):
    """Takes bytes in order. Called by one thread at a time."""

    def write(self, data: bytes) -> None:
        """Take all of `data`, or raise."""

    def close(self) -> None:
        """Nothing more will come."""


class MemorySink:
    """Keeps a trace in memory, for notebooks and tests."""

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: bytes) -> None:
        """Append `data`."""
        self._data += data

    def close(self) -> None:
        """The bytes stay readable."""

    def contents(self) -> bytes:
        """Everything written so far."""
        return bytes(self._data)


class FileSink:
    """A new file, readable by its owner only, whose bytes are appended.

    What `write` returned from survives a kill of the process; what `close` returned
    from survives a power failure. A file that somebody removes or replaces meanwhile is
    lost: the next call says so.

    Args:
        path: Where the file shall be.
        force: Replace a file that is there. A symbolic link is replaced, not followed.

    Raises:
        UserError: There is something at `path`, or no file can be made there.
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self._file = _replace(path) if force else _create(path)
        # Some network file systems count no names; nothing can be noticed there.
        self._has_names = os.fstat(self._file).st_nlink > 0

    def write(self, data: bytes) -> None:
        """Append `data` to the file.

        Raises:
            OSError: It could not be written as a whole, or the file has been removed.
        """
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self._check_name()

    def close(self) -> None:
        """Ask the disk to keep the file, and close it.

        Raises:
            OSError: The disk could not, or the file has been removed.
        """
        try:
            os.fsync(self._file)
            self._check_name()
        finally:
            os.close(self._file)

    def _check_name(self) -> None:
        if self._has_names and os.fstat(self._file).st_nlink == 0:
            raise FileNotFoundError(
                errno.ENOENT, "the file was removed or replaced while it was written"
            )


def exists_already(path: Path) -> UserError:
    """What to raise where a trace would replace something that is there."""
    return UserError(
        f"{str(path)!r} exists and is not overwritten; choose another name, "
        f"or replace it with force=True (on the command line: -f)"
    )


def cannot_write(path: Path, error: OSError | ValueError) -> UserError:
    """What to raise where `error` keeps a trace from being written."""
    reason = getattr(error, "strerror", None) or str(error)
    return UserError(f"cannot write a trace to {str(path)!r}: {reason}")


def _create(path: Path) -> int:
    try:
        return os.open(path, _NEW_FILE, 0o600)
    except FileExistsError:
        raise exists_already(path) from None
    except (OSError, ValueError) as error:
        raise cannot_write(path, error) from None


def _replace(path: Path) -> int:
    """Open a new file beside `path` and move it there, so that no other is touched."""
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError):
        return _create(path)
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise UserError(f"{str(path)!r} is not a file and cannot be replaced by one")
    beside = path.with_name(f".gradviz.{os.getpid()}")
    with contextlib.suppress(OSError):
        beside.unlink()
    file = _create(beside)
    try:
        beside.replace(path)
    except OSError as error:
        os.close(file)
        beside.unlink(missing_ok=True)
        raise cannot_write(path, error) from None
    return file
