"""The private folder in which programs of one user in standby are found.

Each program has a Unix socket there, called after its process. Only their user may
enter the folder, which both sides verify: that is what keeps others out.
"""

import os
import stat
from pathlib import Path
from typing import Final

from gradviz.errors import UserError

#: The variable that names another folder.
VARIABLE: Final = "GRADVIZ_STANDBY_FOLDER"

_PRIVATE: Final = 0o700


def private_folder() -> Path:
    """Return the folder of this user, which need not exist.

    Temporary folders differ between sessions (TMPDIR), so it is none of these.
    """
    return Path(os.environ.get(VARIABLE) or f"/tmp/gradviz-{os.getuid()}")


def make_private_folder() -> Path:
    """Make the folder unless it exists.

    Raises:
        UserError: It cannot be made, or others can enter it.
    """
    folder = private_folder()
    try:
        folder.mkdir(mode=_PRIVATE, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot make the folder for standby, {folder}: {error.strerror}; "
            f"{VARIABLE} names another"
        ) from None
    check_is_private(folder)
    return folder


def check_is_private(folder: Path) -> None:
    """Verify that only this user can enter a folder.

    Raises:
        UserError: Others can, or there is no such folder.
    """
    try:
        found = folder.lstat()
    except OSError as error:
        raise UserError(f"cannot use {folder} for standby: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode):
        raise UserError(
            f"{folder} is not a folder, so it cannot be used for standby: remove it, "
            f"or name a folder in {VARIABLE}"
        )
    if found.st_uid != os.getuid():
        raise UserError(
            f"{folder} belongs to user {found.st_uid}, not to you, {os.getuid()}: name "
            f"a folder of your own in {VARIABLE}"
        )
    if (mode := stat.S_IMODE(found.st_mode)) != _PRIVATE:
        raise UserError(
            f"{folder} has permissions {mode:04o}, expected {_PRIVATE:04o}: others may "
            f"get in; 'chmod 700 {folder}' corrects that"
        )


def socket_of(folder: Path, pid: int) -> Path:
    """Return the path of the socket of a process."""
    return folder / f"{pid}.sock"
