"""Checks that what gradviz needs is installed, with nothing but Python and Click."""

import importlib
import importlib.metadata
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from gradviz._version import __version__

REQUIRED: Final = ("numpy", "click", "rich", "graphviz", "msgspec")
#: Optional packages and their uses; the first of several names that is installed.
OPTIONAL: Final = (
    (("cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x", "cupy"), "arrays on a GPU"),
    (("pygraphviz",), "Graphviz in a wheel"),
    (("pyarrow",), "traces as Parquet"),
    (("typst",), "timelines as PNG and PDF"),
    (("textual",), "full-screen views"),
    (("torch",), "recording PyTorch's own passes"),
)

#: ``absent`` is optional; ``failed`` is something without which gradviz cannot work.
Health: TypeAlias = Literal["ok", "absent", "failed"]


class Finding(NamedTuple):
    """One thing that was looked at.

    Attributes:
        about: Topic that it belongs to: ``versions``, ``engine``, ``gpu`` and so on.
        name: Item that was looked at.
        state: State of the item: if it is there and works.
        told: Result of the look.
        advice: Advice on what to do about it, empty if nothing.
    """

    about: str
    name: str
    state: Health
    told: str
    advice: str = ""


def versions() -> Iterator[Finding]:
    """Of gradviz, Python and the packages; each that is needed is imported."""
    python = f"{platform.python_version()} ({sys.executable})"
    yield Finding(
        "versions", "gradviz", "ok", f"{__version__} ({Path(__file__).parents[2]})"
    )
    yield Finding("versions", "python", "ok", python)
    for name in REQUIRED:
        yield _needed(name)
    for names, purpose in OPTIONAL:
        found = next(filter(version_of, names), None)
        if found is None:
            absent = f"not installed (optional: {purpose})"
            yield Finding("versions", names[-1], "absent", absent)
        else:
            yield Finding("versions", names[-1], "ok", version_of(found) or "")


def version_of(name: str) -> str | None:
    """The version of an installed package, which is not imported."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _needed(name: str) -> Finding:
    try:
        importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - whatever it is, that is the finding
        told = f"cannot be imported: {type(error).__name__}: {error}"
        again = "pip install --force-reinstall gradviz"
        return Finding("versions", name, "failed", told, again)
    return Finding("versions", name, "ok", version_of(name) or "of unknown version")
