"""The folder in which workers meet: their sockets, and notes on their ends."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gradviz.posix import posix_needed

try:
    import fcntl
except ModuleNotFoundError:
    raise ImportError(posix_needed("gradviz.distributed with processes")) from None

_PREFIX: Final = "gradviz-"

#: Locked as long as the process lives that has made the folder, however it ends.
_LOCK: Final = "in_use"


@contextlib.contextmanager
def meeting_folder() -> Iterator[Path]:
    """Make a folder that only this user may open, and remove it afterwards.

    Those that were left by processes that had no time to remove them go first.
    """
    _remove_left()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        # It gets its name when it is locked, and before that nobody touches the folder.
        new = folder / "new"
        with new.open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            new.rename(folder / _LOCK)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left() -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        # Those of other users cannot be opened; nor one that goes just now.
        with contextlib.suppress(OSError), path.open("rb") as lock:
            if path.stat().st_uid == os.getuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path.parent, ignore_errors=True)
