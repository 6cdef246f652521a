"""What the views share: a console without surprises, tables, bars of shares.

Everything is built of `Text`: nothing in a trace is taken for rich's markup.
"""

from typing import IO, Final

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gradviz.render.text import clean, duration, shorten

MAX_NAME: Final = 40
#: What stands for something that is not known.
NOTHING: Final = "-"
#: Blocks that fill a cell from the left, by eighths.
EIGHTHS: Final = " ▏▎▍▌▋▊▉█"

#: Texts of which the end says more than the beginning.
PATH_COLUMNS: Final = frozenset({"module", "parameter", "line"})

TEXT_COLUMNS: Final = PATH_COLUMNS | frozenset(
    {
        "name",
        "device",
        "status",
        "error",
        "called at",
        "created at",
        "share",
        "because",
        "what",
        "in A",
        "in B",
        "by nodes",
        "for",
        "module",
        "pushed by",
        "popped by",
        "shape",
        "where",
    }
)
#: What is too important to be cut: it goes on in the next line.
WRAPPED: Final = frozenset({"status", "error"})


def make_console(file: IO[str] | None = None, *, width: int | None = None) -> Console:
    """A console for the views: no markup, no guessing at what to highlight.

    Args:
        file: Where it writes, stdout by default. Without a terminal there are no
            colours.
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


def make_table(*names: str) -> Table:
    """A table without lines; numbers to the right, texts cut where there is no room."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in names:
        is_text = name in TEXT_COLUMNS
        table.add_column(
            name,
            justify="left" if is_text else "right",
            overflow="ellipsis",
            no_wrap=name not in WRAPPED,
        )
    return table


def share(part: float) -> Text:
    """A part of a whole as a bar of ten columns and a percentage."""
    eighths = round(max(min(part, 1), 0) * 80)
    bar = "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")
    return Text.assemble((bar.ljust(10), "blue"), f" {part:4.0%}")


def indented(table: Table) -> RenderableType:
    """A table under a heading."""
    return Padding(table, (0, 0, 0, 2), expand=False)


def heading(text: str, shown: int = 0, total: int = 0) -> Text:
    """A line above a table, and how many rows the table shows if not all."""
    part = f" ({shown:,} of {total:,})" if shown < total else ""
    return Text.assemble("\n", (text, "bold"), (part, "dim"))


def name_text(name: str) -> str:
    """A name without anything harmful, and not too long."""
    return shorten(clean(name), MAX_NAME)


def duration_text(ns: int | None) -> str:
    """A duration, or what stands for it where there is none."""
    return NOTHING if ns is None else duration(ns)
