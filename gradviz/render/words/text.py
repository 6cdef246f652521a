"""Words in pictures and terminals: made harmless, measured, shortened, formatted."""

import functools
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from gradviz.trace.format.strings import CALLED_BY, without_folders

# An escape sequence goes as a whole, so that its payload is not left as text: OSC, DCS
# and their like up to their terminator, then CSI, then any other.
_ESCAPES: Final = re.compile(
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)
#: Control (Cc), format (Cf: bidi overrides, zero width), surrogates, unassigned and
#: private characters, line and paragraph separators.
_HARMFUL: Final = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})

_SLIM: Final = frozenset("il'")
_NARROW: Final = frozenset("fjrtI.,:;|!()[]{} -")
_BROAD: Final = frozenset("mwMWOQ@%—→")

#: Longer names are cut, where they are shown.
MAX_TITLE: Final = 44
#: Program that runs the cells of notebooks.
_NOTEBOOK: Final = "ipykernel_launcher.py"
#: More are not written out.
MAX_DIMENSIONS: Final = 12

_SIZES: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_UNITS: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_FACTORS: Final = {unit: factor for factor, unit in _UNITS}
_MOMENT: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ?(ns|us|µs|ms|s)")


@functools.lru_cache(maxsize=1 << 12)
def clean(text: str) -> str:
    """One line of `text` without anything that acts instead of being shown.

    Escape sequences, control and format characters (bidi overrides, zero width) go;
    line breaks and tabs become spaces.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPES.sub("", text)
    kept = (
        " " if c in "\t\n\v\f\r\x85\u2028\u2029" else c
        for c in text
        if c in "\t\n\v\f\r\x85\u2028\u2029" or unicodedata.category(c) not in _HARMFUL
    )
    return "".join(kept)


def shorten(text: str, length: int) -> str:
    """At most `length` characters of `text`, with an ellipsis where it was cut."""
    return text if len(text) <= length else text[: max(length - 1, 0)] + "…"


def shorten_front(text: str, length: int) -> str:
    """At most the last `length` characters of `text`, with an ellipsis before them."""
    return text if len(text) <= length else "…" + text[len(text) - length + 1 :]


@functools.lru_cache(maxsize=1 << 14)
def width(text: str, size: float, *, bold: bool = False) -> float:
    """Roughly how wide `text` is in a sans-serif font of `size`, never too little.

    The fonts of viewers differ; the classes below are those of DejaVu Sans, the widest
    of the usual ones.
    """
    ems = 0.0
    for c in text:
        if c in _SLIM:
            ems += 0.3
        elif c in _NARROW:
            ems += 0.41
        elif c in _BROAD:
            ems += 1.0
        elif c.isupper():
            ems += 0.73
        elif ord(c) < 0x2000:
            ems += 0.64
        else:
            ems += 1.0
    return ems * size * (1.15 if bold else 1.0)


def fit(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """Return the part of `text` that fits `room`, with an ellipsis where it was cut.

    Empty where there is not even room for that.
    """
    if width(text, size, bold=bold) <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if width(f"{text[:middle].rstrip()}…", size, bold=bold) <= room:
            low = middle
        else:
            high = middle - 1
    return f"{text[:low].rstrip()}…" if low else ""


def fit_end(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """Return as much of the end of `text` as is no wider than `room`.

    An ellipsis stands for the begin. Nothing where there is not even room for that.
    """
    if width(text, size, bold=bold) <= room:
        return text
    return next(
        (
            shorter
            for length in range(len(text), 1, -1)
            if width(shorter := shorten_front(text, length), size, bold=bold) <= room
        ),
        "",
    )


def duration(ns: float) -> str:
    """Nanoseconds for people, in three digits: ``412 µs``, ``1.24 ms``, ``35 s``."""
    for factor, unit in _UNITS:
        if ns >= factor:
            return f"{_three_digits(ns / factor)} {unit}"
    return "0 ns" if ns == 0 else f"{ns:.2g} ns"


def nanoseconds(text: str) -> int | None:
    """Parse a time with its unit, as `duration` writes it: ``1.5ms``.

    None if it is no such time.
    """
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        return None
    return round(float(found[1]) * _FACTORS[found[2].replace("u", "µ")])


def lasted(took_ns: int | None, shown_ns: int) -> str:
    """Return the duration of a pass, and the period shown, if it differs.

    Streams may go on after a pass, and a picture may show a part of one.

    Args:
        took_ns: Time between the pass's own start and end; None if that is not known.
        shown_ns: Time shown.
    """
    shown = duration(shown_ns)
    took = shown if took_ns is None else duration(took_ns)
    return took if took == shown else f"{took} (shown: {shown})"


def nodes_ran(num_runs: int, num_nodes: int) -> str:
    """Number of nodes that ran, and of runs where that differs."""
    nodes = count(num_nodes, "node")
    return nodes if num_runs == num_nodes else f"{count(num_runs, 'run')} of {nodes}"


def size(num_bytes: int) -> str:
    """Bytes for people, in three digits: ``412 B``, ``1.24 MiB``, ``35 GiB``."""
    for factor, unit in _SIZES:
        if num_bytes >= factor:
            return f"{_three_digits(num_bytes / factor)} {unit}"
    return f"{num_bytes} B"


def _three_digits(value: float) -> str:
    digits = 2 if value < 10 else 1 if value < 100 else 0
    written = f"{value:.{digits}f}"
    return written.rstrip("0").rstrip(".") if "." in written else written


def count(number: int, noun: str) -> str:
    """A number and its noun: ``1 node``, ``1,797 nodes``, ``2 passes``."""
    ending = "" if number == 1 else "es" if noun.endswith(("s", "x")) else "s"
    return f"{number:,} {noun}{ending}"


def numbered(name: str, node: int, index: int | None) -> str:
    """Return a node as pictures name it: by its number, with the trace's id.

    Args:
        name: Its name, empty if there is none to be told.
        node: Its id.
        index: Its place in the order of its pass, as `gradviz show order` counts; None
            or less than 0 if it did not run.
    """
    number = "" if index is None or index < 0 else f"#{index}"
    words = " ".join(filter(None, (number, name)))
    return f"{words} (id {node})" if words else f"the node with id {node}"


def shape(sizes: Sequence[int]) -> str:
    """A shape as Python writes it: ``(32, 10)``; of very many dimensions the first."""
    if len(sizes) <= MAX_DIMENSIONS:
        return str(tuple(sizes))
    first = ", ".join(map(str, sizes[:MAX_DIMENSIONS]))
    return f"({first}, … {len(sizes):,} dimensions)"


@functools.lru_cache(maxsize=1 << 12)
def operation(name: str) -> str:
    """The operation of a node's name: ``MulBackward0`` -> ``Mul``."""
    return re.sub(r"Backward\d*$", "", name) or name


def of_program(program: str) -> str:
    """Return the program for titles: `` of train.py``; empty for ``-c``."""
    name = shorten_front(clean(place(program)), MAX_TITLE)
    has_name = name and not name.startswith("-") and not is_notebook(program)
    return f" of {name}" if has_name else ""


def is_notebook(program: str) -> bool:
    """Return whether a program runs the cells of notebooks."""
    return place(program) == _NOTEBOOK


def place(location: str, length: int | None = None) -> str:
    """The file and line of a ``path:line``, or of each of several, without the folders.

    If that is longer than `length`, the last of several lines stands for them, which is
    the program's own. A file whose name makes it longer still loses the start of it.
    """
    name = without_folders(location)
    if length is None or len(name) <= length:
        return name
    return shorten_front(name.rpartition(CALLED_BY)[2], length)
