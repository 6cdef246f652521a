"""Parts of all views: a console without surprises, wrapped text, bars of shares.

Everything is built of `Text`: nothing in a trace is taken for rich's markup.
"""

import re
import textwrap
from typing import IO, Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from gradviz.render.words.text import clean, duration, shorten

MAX_NAME: Final = 40
#: Stand-in for a value that is not known.
NOTHING: Final = "-"
#: Blocks that fill a cell from the left, by eighths.
EIGHTHS: Final = " ▏▎▍▌▋▊▉█"

INDENT: Final = "  "

#: Texts of which the end says more than the beginning.
PATH_COLUMNS: Final = frozenset(
    {"module", "parameter", "line", "created at", "called at"}
)
#: Texts that are too important to be cut: they go on in the next line.
WRAPPED: Final = frozenset({"status", "error", "case", "why none", "workers"})
#: Columns that may be shown in part. All others are numbers, which may not.
TEXT_COLUMNS: Final = (
    PATH_COLUMNS
    | WRAPPED
    | frozenset(
        {
            "name",
            "device",
            "because",
            "what",
            "in A",
            "in B",
            "by nodes",
            "for",
            "pushed by",
            "popped by",
            "shape",
            "where",
        }
    )
)
#: A number and what it counts.
_QUANTITY: Final = re.compile(r"(\d) (\w)")
#: The parts of a name or a path, each with what follows it.
_PARTS: Final = re.compile(r"\w[^\W_]*[\W_]*|.")


def make_console(file: IO[str] | None = None, *, width: int | None = None) -> Console:
    """Return a console for the views, without markup and highlighting.

    Args:
        file: File that it writes to, stdout by default. Without a terminal there are no
            colors.
        width: In columns; that of the terminal by default.
    """
    return Console(
        file=file,
        width=width,
        markup=False,
        emoji=False,
        highlight=False,
        force_jupyter=False,  # else parts become HTML there, and long tables text
    )


def share(part: float) -> str:
    """A part of a whole as a bar of ten columns and a percentage."""
    eighths = round(max(min(part, 1), 0) * 80)
    bar = "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")
    return f"{bar:10} {part:4.0%}"


def print_heading(console: Console, text: str, shown: int = 0, total: int = 0) -> None:
    """Print a line above a table, and how many rows the table shows if not all."""
    part = f" ({shown:,} of {total:,})" if shown < total else ""
    console.print()
    print_wrapped(console, text + part, "bold", "")


def print_wrapped(console: Console, text: str, style: str, indent: str) -> None:
    """Print lines as wide as the console, those after the first indented."""
    for line in wrapped(text, console.width, indent, INDENT):
        console.print(Text(line, style=style), soft_wrap=True)


def wrapped(text: str, width: int, first: str = "", others: str = "") -> list[str]:
    """The lines of a clean text, none of which ends between a number and its unit.

    Args:
        text: Text to wrap.
        width: The most columns of a line.
        first: Prefix of the first line.
        others: Prefix of all others.
    """
    if cell_len(text) > len(text):
        width = max(width // 2, 1)  # characters that take two columns
    whole = _QUANTITY.sub("\\1\N{NO-BREAK SPACE}\\2", text)
    room = width - max(len(first), len(others))
    lines = textwrap.wrap(
        " ".join(piece for word in whole.split(" ") for piece in _pieces(word, room)),
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
    )
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _pieces(word: str, room: int) -> list[str]:
    """A word, or as much of it at a time as a line has room for, cut at punctuation."""
    if len(word) <= room:
        return [word]
    pieces = [""]
    for part in _PARTS.findall(word):
        if len(pieces[-1]) + len(part) <= room:
            pieces[-1] += part
        else:
            pieces.append(part)
    return [piece for piece in pieces if piece]


def name_text(name: str) -> str:
    """A name without anything harmful, and not too long."""
    return shorten(clean(name), MAX_NAME)


def node_text(name: str, node: int, index: int | None) -> str:
    """A node in a sentence, as `explain` names it: ``#5 MulBackward0 (8)``."""
    number = "" if index is None else f"#{index} "
    return f"{number}{name_text(name)} ({node})"


def address_text(node: int, index: int | None) -> str:
    """A node as `explain` takes it: its number ``#5``, or its id if it has none."""
    return str(node) if index is None else f"#{index}"


def index_text(index: int | None) -> str:
    """A cell of the column ``#``: the number of a node in the order of its pass."""
    return NOTHING if index is None else str(index)


def duration_text(ns: int | None) -> str:
    """Format a duration, or a stand-in for none."""
    return NOTHING if ns is None else duration(ns)
