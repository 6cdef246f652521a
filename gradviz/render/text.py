"""Words in pictures and terminals: made harmless, measured, shortened, formatted."""

import functools
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

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
#: What runs the cells of notebooks.
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
    """As much of `text` as is no wider than `room`, with an ellipsis where it was cut.

    Nothing where there is not even room for that.
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


def duration(ns: float) -> str:
    """Nanoseconds for people, in three digits: ``412 µs``, ``1.24 ms``, ``35 s``."""
    for factor, unit in _UNITS:
        if ns >= factor:
            return f"{_three_digits(ns / factor)} {unit}"
    return "0 ns" if ns == 0 else f"{ns:.2g} ns"


def nanoseconds(text: str) -> int | None:
    """What a time means that is written with its unit, as `duration` does: ``1.5ms``.

    None if it is no such time.
    """
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        return None
    return round(float(found[1]) * _FACTORS[found[2].replace("u", "µ")])


def lasted(took_ns: int | None, shown_ns: int) -> str:
    """How long a pass took, and how much time is shown of it or after it, if not that.

    Streams may go on after a pass, and a picture may show a part of one.

    Args:
        took_ns: By the pass's own begin and end; None if that is not known.
        shown_ns: What is shown.
    """
    shown = duration(shown_ns)
    took = shown if took_ns is None else duration(took_ns)
    return took if took == shown else f"{took} (shown: {shown})"


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
    """What ran, for titles: `` of train.py``; empty of ``-c``, and in a notebook."""
    name = shorten_front(clean(place(program)), MAX_TITLE)
    has_name = name and not name.startswith("-") and name != _NOTEBOOK
    return f" of {name}" if has_name else ""


def place(location: str, length: int | None = None) -> str:
    """The file and line of a ``path:line``, without the folders.

    A file whose name makes it longer than `length` loses the begin of it, not the line.
    """
    name = location.replace("\\", "/").rpartition("/")[2]
    return name if length is None else shorten_front(name, length)
