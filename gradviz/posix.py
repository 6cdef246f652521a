"""Parts of POSIX that gradviz uses, and stand-ins for systems that lack them.

Traces are read, drawn and compared on any system. Forks, sockets of a folder, file
locks and SIGUSR1 are found on POSIX systems only; the features that need them say so.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Final


def _flags(*names: str) -> int:
    """Return the flags of `os.open` that this system has, combined."""
    combined = 0
    for name in names:
        combined |= getattr(os, name, 0)
    return combined


#: Flags to read a file: never waits for the writer of a FIFO.
READ: Final = os.O_RDONLY | _flags("O_NONBLOCK", "O_CLOEXEC", "O_BINARY")

#: Flags to make a file that must be new: no link is followed to make it.
NEW_FILE: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | _flags("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY")
)


def _no_forks(**callbacks: object) -> None:
    """Drop the callbacks: a process cannot fork here."""


def signals(*names: str) -> tuple[signal.Signals, ...]:
    """Return those of some signals that this system has."""
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


#: `os.register_at_fork`.
at_fork: Final[Callable[..., None]] = getattr(os, "register_at_fork", _no_forks)


def posix_needed(feature: str) -> str:
    """Return the message of an error: `feature` does not work on this system."""
    return (
        f"{feature} needs a POSIX system such as Linux or macOS, and this is "
        f"{sys.platform}; traces can be read, drawn and compared here"
    )
