"""The compiled core: its modules, and whether they may be used.

Note [All or none]
~~~~~~~~~~~~~~~~~~
Modules with a ``.pxd`` beside them are compiled where there is a C compiler: all of
them, or none. They know the layout of each other's objects, so one left over from
another version, as when two are installed over each other, must never meet the others:
it would misread memory. So a build leaves a stamp, which names the compiled modules and
has the checksum of their sources. If these have changed since, or ``GRADVIZ_PURE=1`` is
set, all modules are loaded from the sources beside them.

An interpreter for which nothing was compiled looks for nothing: the names of compiled
files say which interpreter they are for.
"""

import binascii
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from types import ModuleType
from typing import Final

#: Environment variable that, set to anything but 0, prevents compilation and the use of
#: compiled files.
PURE: Final = "GRADVIZ_PURE"

#: File in the package that a build leaves: the suffix of the compiled files, the
#: checksum of the sources, and their names, one per line.
STAMP: Final = "core.stamp"

#: File that a build leaves in its place if it compiled nothing: the reason.
PURE_BUILD: Final = "core.pure"

_PACKAGE: Final = os.path.dirname(__file__)


def is_pure_wanted() -> bool:
    """Return whether the environment asks for pure Python."""
    return os.environ.get(PURE, "0") not in ("", "0")


def stamp(package: str, suffix: str, modules: Sequence[str]) -> str:
    """Return the text of a build's stamp.

    Args:
        package: The folder of the package.
        suffix: The suffix of compiled files, such as
            ``.cpython-311-x86_64-linux-gnu.so``.
        modules: The compiled modules, such as ``engine/node``.
    """
    checksum = 0
    for module in modules:
        with open(os.path.join(package, f"{module}.py"), "rb") as source:
            checksum = binascii.crc32(source.read(), checksum)
    return "\n".join([suffix, f"{checksum:08x}", *modules])


def _read(name: str) -> str:
    """Return the text of a file that a build leaves, empty if it is not there."""
    try:
        with open(os.path.join(_PACKAGE, name), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _why_not_compiled() -> str:
    if because := _read(PURE_BUILD):
        return f": {because}"
    if os.path.exists(os.path.join(os.path.dirname(_PACKAGE), "compile_core.py")):
        return (
            ": this is a source tree or an editable installation, which only "
            "'python compile_core.py' compiles"
        )
    return ""


def _is_sound(told: str, suffix: str, modules: Sequence[str]) -> bool:
    """Return whether compiled files are present, and match the sources."""
    try:
        return told == stamp(_PACKAGE, suffix, modules) and all(
            os.path.exists(os.path.join(_PACKAGE, f"{module}{suffix}"))
            for module in modules
        )
    except OSError:
        return False


class _Sources:
    """Finder of some modules in their sources, even beside compiled files."""

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
        """Find a module, as a finder of `sys.meta_path`."""
        del path, target
        if name not in self._paths:
            return None
        return importlib.util.spec_from_file_location(name, self._paths[name])


def _why_pure() -> str:
    """Return the reason for not using compiled modules; empty if they are used."""
    told = _read(STAMP)
    if not told:
        return f"nothing was compiled{_why_not_compiled()}"
    suffix, _, *modules = told.splitlines()
    if suffix not in EXTENSION_SUFFIXES:
        return (
            f"nothing was compiled for this interpreter, but for {suffix} files; "
            f"pip install --force-reinstall gradviz"
        )
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


#: Reason why the hot modules do not run compiled; empty if they do.
why_pure: Final = _why_pure()

#: True if the hot modules run compiled.
compiled: Final = not why_pure
