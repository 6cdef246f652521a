"""Sinks: where the bytes of a trace go."""

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Final, Protocol

from gradviz import posix
from gradviz.errors import UserError

#: Flags to open a trace file, which must be new.
_NEW_FILE: Final = posix.NEW_FILE | os.O_APPEND


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
    """A new file, readable only by its owner, that is appended to.

    What `write` returned from survives a kill of the process; what `close` returned
    from survives a power failure. A file that somebody removes or replaces meanwhile is
    lost: the next call says so.

    Args:
        path: Path of the new file.
        force: Replace a file that is there. A symbolic link is replaced, not followed.

    Raises:
        UserError: There is something at `path`, or no file can be made there.
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self._file = _replace(path) if force else _create(path)
        self._path = path.absolute()  # the program may change its folder
        found = os.fstat(self._file)
        self._identity = found.st_dev, found.st_ino
        # Some network file systems count no names; nothing can be noticed there.
        self._has_names = found.st_nlink > 0

    def write(self, data: bytes) -> None:
        """Append `data` to the file.

        Raises:
            OSError: It could not be written as a whole, the file has been removed, or
                the program has closed it.
        """
        self._check_own()
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self._check_name()

    def close(self) -> None:
        """Ask the disk to keep the file, and close it.

        Raises:
            OSError: The disk could not, the file has been removed, or the program has
                closed it.
        """
        self._check_own()
        try:
            os.fsync(self._file)
            self._check_name()
        finally:
            os.close(self._file)

    def discard(self) -> None:
        """Close the file and remove it: nothing of use is in it.

        Raises:
            OSError: It cannot be removed, or the program has closed it.
        """
        self._check_own()
        found = self._path.lstat()
        if (found.st_dev, found.st_ino) == self._identity:
            self._path.unlink()
        os.close(self._file)

    def _check_own(self) -> None:
        """Raise if the descriptor is another file's by now.

        A program may close descriptors that are not its own (`os.closerange`), and the
        next file that it opens gets the number: neither to be written to nor closed.
        """
        found = os.fstat(self._file)  # fails if it is nobody's
        if (found.st_dev, found.st_ino) != self._identity:
            raise OSError(
                errno.EBADF, "the program has closed the file of the trace, not its own"
            )

    def _check_name(self) -> None:
        if self._has_names and os.fstat(self._file).st_nlink == 0:
            raise FileNotFoundError(
                errno.ENOENT, "the file was removed or replaced while it was written"
            )


def exists_already(path: Path) -> UserError:
    """Return the error for a trace that would replace an existing file."""
    return UserError(
        f"{str(path)!r} exists and is not overwritten; choose another name, "
        f"or replace it with force=True (on the command line: -f)"
    )


def cannot_write(path: Path, error: OSError | ValueError) -> UserError:
    """Return the error for a trace that `error` keeps from being written."""
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
