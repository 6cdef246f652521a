"""The line of the user's program that made a node, or launched a kernel.

Note [Two lines]
~~~~~~~~~~~~~~~~
The innermost line outside of gradviz and PyTorch is often in a library that the program
uses, such as one of models. It shows the operation, but not the part of the program
that requested it. So a library's line is followed by the innermost line of the program
itself: ``.../lib/layers.py:10 < /home/me/train.py:39``.

A library is installed code: the files in a ``site-packages`` folder, those of Python
and those beside its interpreter, and modules of its packages that it generates into
other folders. Code under development, such as an editable install, is elsewhere, and so
counts as the program's.
"""

import os
import sys
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from sys import _getframe  # in one step: each node asks
from types import CodeType, FrameType
from typing import Final, Generic, TypeVar

from gradviz.trace.format.strings import CALLED_BY

#: Stand-in for a text.
Text = TypeVar("Text", bound=Hashable)

#: Owner of a file; see `owner_of`.
NOBODYS: Final = 0
A_LIBRARYS: Final = 1
THE_PROGRAMS: Final = 2

#: Modules whose frames are never shown: gradviz itself, libraries that call back into
#: it, and the first frames of a thread.
_HIDDEN: Final = frozenset({"gradviz", "numpy", "threading", "torch"})

#: Folders that installers put packages into.
_PACKAGES: Final = frozenset({"site-packages", "dist-packages"})

#: The folders of other files that nobody wrote for this program: the standard library,
#: scripts of installed packages, and gradviz.
_INSTALLED: Final = tuple(
    f"{folder}{os.sep}"
    for folder in (
        Path(os.__file__).parent,
        Path(sys.prefix, "Scripts" if os.name == "nt" else "bin"),
        Path(__file__).parents[2],
    )
)

_MAX_KNOWN: Final = 100_000


class Locations(Generic[Text]):
    """Finds the line of the stack that belongs to the user's program.

    A frame computes its line number by walking a table from the start of its code,
    which takes microseconds in a long module, so lines are remembered by instruction.
    The code object is remembered with it: while it lives nothing else has its id.

    Args:
        intern: Function that returns what stands for a text, such as `Strings.intern`.
    """

    def __init__(self, intern: Callable[[str], Text]) -> None:
        self._intern = intern
        self._known: dict[tuple[int, ...], tuple[Text, list[CodeType]]] = {}
        self._owners: dict[str, int] = {}

    def of_caller(self) -> Text:
        """Return the number for ``path:line``, or for an empty text. Any thread.

        Of a library's line that is two; see Note [Two lines].
        """
        frame = _frame_of(_getframe(), self._owners, A_LIBRARYS)
        if frame is None:
            return self._intern("")
        own = _frame_of(frame, self._owners, THE_PROGRAMS)
        if own is not None and own is not frame:
            return self._of((frame, own))
        known = self._known.get((id(frame.f_code), frame.f_lasti))
        return self._of((frame,)) if known is None else known[0]

    def known(self) -> set[Text]:
        """Return the numbers of the texts that are remembered."""
        return {text for text, _ in list(self._known.values())}

    def _of(self, frames: Sequence[FrameType]) -> Text:
        places: list[int] = []
        for one in frames:
            places += (id(one.f_code), one.f_lasti)
        key = tuple(places)
        known = self._known.get(key)
        if known is not None:
            return known[0]
        text = self._intern(lines_of(frames))
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[key] = text, [one.f_code for one in frames]
        return text


class NoLocations(Locations[Text]):
    """Looks for nothing: every caller is nowhere."""

    def of_caller(self) -> Text:
        """Return the number for an empty text."""
        return self._intern("")


class Stacks(Locations[Text]):
    """Finds all frames of the stack that belong to the user's program."""

    def of_caller(self) -> Text:
        """Return the number for ``path:line < path:line``, the innermost first."""
        frames: list[FrameType] = []
        frame = _frame_of(_getframe(), self._owners, A_LIBRARYS)
        while frame is not None:
            frames.append(frame)
            frame = _frame_of(frame.f_back, self._owners, A_LIBRARYS)
        return self._of(frames)


def lines_of(frames: Sequence[FrameType]) -> str:
    """Return the file and line of each, with `CALLED_BY` between them."""
    return CALLED_BY.join(f"{one.f_code.co_filename}:{one.f_lineno}" for one in frames)


def _frame_of(
    frame: FrameType | None, owners: dict[str, int], least: int
) -> FrameType | None:
    """The innermost frame of a stack that has at least this owner, None if none does.

    Called for every node that is made, some six frames below the user's: so the loop is
    written out. It skips nobody, for what is compiled has no frame.

    Args:
        frame: The innermost of all.
        owners: Owner of each file that was looked at.
        least: `A_LIBRARYS` or `THE_PROGRAMS`.
    """
    while frame is not None:
        name = frame.f_code.co_filename
        owner = owners.get(name)
        if owner is None:
            owner = owners[name] = owner_of(frame)
        if owner >= least:
            return frame
        frame = frame.f_back
    return None


def owner_of(frame: FrameType) -> int:
    """Return the owner of a frame, which depends only on its file and its module.

    Code that is in no module was generated, as `torch.compile` and `torch.fx` do, and
    nobody can open its file: its caller has the line to show.
    """
    name = frame.f_globals.get("__name__")
    package, dot, _ = str(name).partition(".")
    if name is None or package in _HIDDEN:
        return NOBODYS
    # A module that a library generates, and writes elsewhere, is in its package.
    file = getattr(sys.modules.get(package), "__file__", None) if dot else None
    files = [frame.f_code.co_filename, *([file] if isinstance(file, str) else [])]
    return THE_PROGRAMS if all(map(is_of_program, files)) else A_LIBRARYS


def is_of_program(path: str) -> bool:
    """Return whether a file belongs to the program, and to no installed library."""
    parts = path.replace("\\", "/").split("/")
    is_installed = path.startswith(("<frozen ", *_INSTALLED))
    return not is_installed and _PACKAGES.isdisjoint(parts)
