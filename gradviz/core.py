"""The compiled core: which modules are in it, and whether it may be used.

Note [All or none]
~~~~~~~~~~~~~~~~~~
Modules beside which a ``.pxd`` lies are compiled where there is a C compiler: all of
them, or none. They know the layout of each other's objects, so one that is left over
from another version, as when two are installed over each other, must never meet the
others: it would read memory that is something else. So a build leaves a stamp, which
names the modules that it has compiled and has the checksum of their sources. Where
these have changed since, or ``GRADVIZ_PURE=1`` is set, all modules are read from their
sources, which lie beside them.

An interpreter for which nothing was compiled looks for nothing: names of compiled files
say for which one they are.
"""

import binascii
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from types import ModuleType
from typing import Final

#: Environment variable that, set to other than 0, has nothing compiled, or nothing used
#: of what was.
PURE: Final = "GRADVIZ_PURE"

#: The file in the package that a build leaves: the suffix of what it has compiled, the
#: checksum of the sources, and their names, one a line.
STAMP: Final = "core.stamp"

_PACKAGE: Final = os.path.dirname(__file__)


def is_pure_wanted() -> bool:
    """Whether the environment asks for pure Python."""
    return os.environ.get(PURE, "0") not in ("", "0")


def stamp(package: str, suffix: str, modules: Sequence[str]) -> str:
    """What the stamp of a build says.

    Args:
        package: The folder of the package.
        suffix: That of compiled files, such as ``.cpython-311-x86_64-linux-gnu.so``.
        modules: What was compiled, such as ``engine/node``.
    """
    checksum = 0
    for module in modules:
        with open(os.path.join(package, f"{module}.py"), "rb") as source:
            checksum = binascii.crc32(source.read(), checksum)
    return "\n".join([suffix, f"{checksum:08x}", *modules])


def _read_stamp() -> str:
    try:
        with open(os.path.join(_PACKAGE, STAMP), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _is_sound(told: str, suffix: str, modules: Sequence[str]) -> bool:
    """Whether compiled files are there, and are those of the sources."""
    try:
        return told == stamp(_PACKAGE, suffix, modules) and all(
            os.path.exists(os.path.join(_PACKAGE, f"{module}{suffix}"))
            for module in modules
        )
    except OSError:
        return False


class _Sources:
    """Finds some modules in their sources, whatever else lies beside them."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._paths = {
            f"gradviz.{module.replace('/', '.')}": os.path.join(
                _PACKAGE, f"{module}.py"
            )
            for module in modules
        }

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """As every finder of `sys.meta_path`."""
        del path, target
        if name not in self._paths:
            return None
        return importlib.util.spec_from_file_location(name, self._paths[name])


def _why_pure() -> str:
    """Why the compiled modules are not used; empty if they are."""
    told = _read_stamp()
    if not told:
        return "nothing was compiled"
    suffix, _, *modules = told.splitlines()
    if suffix not in EXTENSION_SUFFIXES:
        return "nothing was compiled for this interpreter"
    if not is_pure_wanted() and _is_sound(told, suffix, modules):
        return ""
    sys.meta_path.insert(0, _Sources(modules))
    if is_pure_wanted():
        return f"{PURE} asks for it"
    why = (
        "what was compiled is not of the sources beside it; "
        "pip install --force-reinstall gradviz"
    )
    print(f"gradviz: pure Python in {_PACKAGE}: {why}", file=sys.stderr)
    return why


#: Why the hot modules do not run compiled; empty if they do.
why_pure: Final = _why_pure()

#: Whether they do.
compiled: Final = not why_pure
