"""Long tables: rows written as they come, at the speed of a terminal.

rich measures every cell of a table several times before it prints the first row, at a
millisecond a row. Here rows are taken a block at a time, columns are as wide as the
block needs or the one before it was, and a block is one write.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from gradviz.render.terminal.tables import PATH_COLUMNS, TEXT_COLUMNS

#: How many rows are measured, and written, at once.
BLOCK: Final = 1_000
GAP: Final = 2
#: No text is cut below this many columns.
LEAST: Final = 6
ALARM: Final = "bold red"
#: ASCII, and the letters of western languages; ``µs`` is in half of all cells.
_NARROW: Final = re.compile("[\x20-\u02ff]*")


def print_rows(
    console: Console,
    names: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    alarming: Container[int] = (),
    widest: Mapping[str, int] | None = None,
) -> None:
    """Print a table without lines: numbers to the right, texts cut where too long.

    Args:
        console: Where to; no line is wider than it.
        names: The heads of the columns.
        rows: A clean text for each column.
        alarming: The numbers of the rows that shall stand out, from 0.
        widest: Columns that will need so much space sooner or later, so that they do
            not move when it comes to that.
    """
    is_text = [name in TEXT_COLUMNS for name in names]
    needed = [max(cell_len(name), (widest or {}).get(name, 0)) for name in names]
    head: Sequence[str] | None = names
    first = 0
    for block in _blocks(rows):
        columns = list(zip(*block, strict=True))
        needed = list(map(max, needed, map(widest_of, columns)))
        widths = fitted(needed, is_text, console.width)
        if head is not None:
            (line,) = _lines(names, [(name,) for name in names], widths)
            console.print(Text(line, style="dim"), soft_wrap=True)
            head = None
        plain: list[str] = []
        for number, line in enumerate(_lines(names, columns, widths), start=first):
            if number in alarming:
                _write(console, plain)
                console.print(Text(line, style=ALARM), soft_wrap=True)
            else:
                plain.append(line)
        _write(console, plain)
        first += len(block)
    if head is not None:
        console.print(Text("  ".join(head), style="dim"), soft_wrap=True)


def fitted(needed: Sequence[int], is_text: Sequence[bool], available: int) -> list[int]:
    """The widths of columns: what they need, or less of texts, the longest first."""
    widths = list(needed)
    excess = sum(widths) + GAP * (len(widths) - 1) - available
    while excess > 0:
        texts = [i for i, text in enumerate(is_text) if text and widths[i] > LEAST]
        if not texts:
            break  # numbers are not cut; the line is, at the end of the console
        longest = max(texts, key=widths.__getitem__)
        second = max((widths[i] for i in texts if i != longest), default=LEAST)
        cut = min(excess, max(widths[longest] - max(second, LEAST), 1))
        widths[longest] -= cut
        excess -= cut
    return widths


def widest_of(cells: Sequence[str]) -> int:
    """How many columns of a terminal the widest of some texts takes; 0 of none."""
    return max(map(len if _is_narrow(cells) else cell_len, cells), default=0)


def _is_narrow(cells: Sequence[str]) -> bool:
    """Whether each character takes one column, so that lengths are widths."""
    return _NARROW.fullmatch("".join(cells)) is not None


def _lines(
    names: Sequence[str], columns: Sequence[Sequence[str]], widths: Sequence[int]
) -> Iterator[str]:
    """The lines of a block, of which the cells are given column by column."""
    padded = map(_padded, names, columns, widths)
    return map(str.rstrip, map((" " * GAP).join, zip(*padded, strict=True)))


def _padded(name: str, cells: Sequence[str], width: int) -> Iterable[str]:
    """The cells of a column, each as wide as the column."""
    if widest_of(cells) > width:
        cells = [_cut(name, cell, width) for cell in cells]
    pad = str.ljust if name in TEXT_COLUMNS else str.rjust
    if _is_narrow(cells):
        return [pad(cell, width) for cell in cells]
    return [pad(cell, width + len(cell) - cell_len(cell)) for cell in cells]


def _cut(name: str, cell: str, width: int) -> str:
    """What there is room for: of a path the end, of other texts the beginning."""
    if cell_len(cell) <= width:
        return cell
    if name in PATH_COLUMNS:
        return "…" + set_cell_size(cell[::-1], width - 1)[::-1].lstrip()
    return set_cell_size(cell, width - 1) + "…"


def _blocks(rows: Iterable[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
    """The rows, `BLOCK` of them at a time."""
    left = iter(rows)
    while block := list(islice(left, BLOCK)):
        yield block


def _write(console: Console, lines: list[str]) -> None:
    """Write lines that need no style, past rich, and forget them."""
    if lines:
        console.file.write("\n".join(lines) + "\n")
        lines.clear()
