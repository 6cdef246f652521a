"""The traces that a server shows: those that it was given, by name."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gradviz.errors import UserError
from gradviz.trace.format.model import Trace
from gradviz.trace.reading.following import GrowingTrace


class Edition(NamedTuple):
    """State of a file: another file, or a longer one, is another edition.

    Attributes:
        file: Identity of the file.
        size_bytes: Its size.
        changed_ns: Time of the last write.
    """

    file: int
    size_bytes: int
    changed_ns: int

    def __str__(self) -> str:
        return f"{self.file:x}-{self.size_bytes:x}-{self.changed_ns:x}"


class Shelf:
    """The trace, or the traces of a folder; the one that was read last stays open.

    What comes from a browser is looked up among the names there are, and never made
    into a path.

    Args:
        place: A file, which need not be there yet, or a folder: its ``*.gvt``, links
            not followed.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._open: tuple[Path, Edition, Trace] | None = None
        self._growing: tuple[Path, GrowingTrace] | None = None

    @property
    def is_folder(self) -> bool:
        """True if there may be several."""
        return self._place.is_dir()

    def traces(self) -> Mapping[str, Path]:
        """Name -> file, the newest first."""
        if not self.is_folder:
            return {self._place.name: self._place}
        with os.scandir(self._place) as entries:
            found = [
                (one.stat().st_mtime_ns, one.name)
                for one in entries
                if one.name.endswith(".gvt") and one.is_file(follow_symlinks=False)
            ]
        return {name: self._place / name for _, name in sorted(found, reverse=True)}

    def read(self, path: Path) -> tuple[Trace, Edition]:
        """A trace as it is now, and what it is.

        Raises:
            TraceError: It is none.
            UserError: It is not there, or not any more.
        """
        edition = edition_of(path)
        if self._open is None or self._open[:2] != (path, edition):
            self._open = None  # two large ones at once are too much
            if self._growing is None or self._growing[0] != path:
                self._growing = None
                self._growing = path, GrowingTrace(path)
            trace = self._growing[1].read()
            if trace.losses.closed:
                self._growing = None  # nothing more comes
            self._open = path, edition, trace
        return self._open[2], edition


def edition_of(path: Path) -> Edition:
    """Return the current edition of a file.

    Raises:
        UserError: It is not there.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise UserError(f"{path.name}: {error.strerror}") from None
    return Edition(found.st_ino, found.st_size, found.st_mtime_ns)
