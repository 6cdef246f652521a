"""Tables: rows written as they come, at the speed of a terminal, and no number cut.

rich measures every cell of a table several times before it prints the first row, at a
millisecond a row, and cuts numbers where texts are long. Here rows are taken a block at
a time, columns are as wide as the block needs or the one before it was, and a block is
one write.

Note [Too narrow for a table]
    A number without its end or its unit is wrong, a name without its end is not. So
    where a table is too wide for the console, first its bars go, then texts are cut,
    the longest first. If that is not enough, the columns that do not fit stand below
    the others, with a head and the first column of their own.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice, zip_longest
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from gradviz.render.terminal.cells import (
    EIGHTHS,
    PATH_COLUMNS,
    TEXT_COLUMNS,
    WRAPPED,
    wrapped,
)

#: Number of rows measured, and written, at once.
BLOCK: Final = 1_000
GAP: Final = 2
#: No text is cut below this many columns.
LEAST: Final = 6
#: No bar is drawn where it would leave a text less than this.
USEFUL: Final = 16
#: A text that is not cut has lines of at least this length.
LINE: Final = 24
ALARM: Final = "bold red"
#: ASCII, and the letters of western languages; ``µs`` is in half of all cells.
_NARROW: Final = re.compile("[\x20-\u02ff]*")
_DIGITS: Final = re.compile(r"[.,]?\d+")
_BAR: Final = re.compile(f"[{EIGHTHS.strip()}]+")


class _Group(NamedTuple):
    """Columns that stand beside each other.

    Attributes:
        columns: Their places among all columns of the table.
        widths: The width of each.
    """

    columns: Sequence[int]
    widths: Sequence[int]


def print_rows(
    console: Console,
    names: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    alarming: Container[int] = (),
    widest: Mapping[str, int] | None = None,
    indent: int = 0,
) -> None:
    """Print a table without lines: numbers to the right, texts cut where too long.

    Args:
        console: Console to print to; no line is wider than it.
        names: The heads of the columns.
        rows: A clean text for each column.
        alarming: The numbers of the rows that shall stand out, from 0.
        widest: Columns that will need so much space sooner or later, so that they do
            not move when it comes to that.
        indent: Columns that stay free on the left.
    """
    width = console.width - indent
    needed = [max(cell_len(name), (widest or {}).get(name, 0)) for name in names]
    head: Sequence[str] | None = names
    first = 0
    for block in _blocks(rows):
        columns = _with_or_without_bars(names, list(zip(*block, strict=True)), width)
        needed = list(map(max, needed, map(widest_of, columns)))
        groups = _groups(names, needed, width)
        for group in groups:
            heads = [names[i] for i in group.columns]
            cells = [columns[i] for i in group.columns]
            if head is not None or len(groups) > 1:
                _print_head(console, heads, group.widths, indent)
            lines = _lines(heads, cells, group.widths, indent)
            _print_lines(console, enumerate(lines, first), alarming)
        head = None
        first += len(block)
    if head is not None:
        _print_head(console, names, needed, indent)


def fitted(needed: Sequence[int], least: Sequence[int], available: int) -> list[int]:
    """Return the widths of columns: as needed, or less, the longest first.

    Args:
        needed: Width that each needs.
        least: Width that each gets in any case; of a column that is not cut, the one it
            needs.
        available: Width for all and the gaps between them.
    """
    widths = list(needed)
    excess = sum(widths) + GAP * (len(widths) - 1) - available
    while excess > 0:
        longer = [i for i, width in enumerate(widths) if width > least[i]]
        if not longer:
            break
        longest = max(longer, key=widths.__getitem__)
        second = max((widths[i] for i in longer if i != longest), default=0)
        cut = min(excess, max(widths[longest] - max(second, least[longest]), 1))
        widths[longest] -= cut
        excess -= cut
    return widths


def widest_of(cells: Sequence[str]) -> int:
    """Return the columns of a terminal that the widest text takes; 0 if none."""
    return max(map(len if _is_narrow(cells) else cell_len, cells), default=0)


def _is_narrow(cells: Sequence[str]) -> bool:
    """Return whether each character takes one column, so that lengths are widths."""
    return _NARROW.fullmatch("".join(cells)) is not None


def _with_or_without_bars(
    names: Sequence[str], columns: list[Sequence[str]], width: int
) -> list[Sequence[str]]:
    """The columns, whose shares are bare numbers where bars take the room of texts."""
    if "share" not in names:
        return columns
    needed = map(max, map(cell_len, names), map(widest_of, columns))
    room = sum(
        min(one, USEFUL) if name in TEXT_COLUMNS else one
        for name, one in zip(names, needed, strict=True)
    )
    if room + GAP * (len(names) - 1) > width:
        shares = names.index("share")
        columns[shares] = [cell.lstrip(EIGHTHS) for cell in columns[shares]]
    return columns


def _groups(
    names: Sequence[str], needed: Sequence[int], width: int
) -> Sequence[_Group]:
    """All columns in one group if there is room for them, else in several.

    See Note [Too narrow for a table].
    """
    least = list(map(_least, names, needed))
    groups = [list(range(len(names)))]
    if sum(least) + GAP * (len(names) - 1) > width:
        is_numbered = names[0] not in TEXT_COLUMNS and {*names[1:2]} <= TEXT_COLUMNS
        groups = _folded(least, range(1 + is_numbered), width)
    return [
        _Group(
            group, fitted([needed[i] for i in group], [least[i] for i in group], width)
        )
        for group in groups
    ]


def _folded(least: Sequence[int], key: Sequence[int], width: int) -> list[list[int]]:
    """The columns in groups that have room, each of which begins with the key's."""
    groups = [list(key)]
    for column in range(len(key), len(least)):
        group = [*groups[-1], column]
        if sum(least[i] + GAP for i in group) - GAP <= width or groups[-1] == [*key]:
            groups[-1] = group
        else:
            groups.append([*key, column])
    return groups


def _least(name: str, needed: int) -> int:
    """Return the width that a column gets in any case."""
    if name in WRAPPED:
        return min(needed, LINE)
    return min(needed, LEAST) if name in TEXT_COLUMNS else needed


def _lines(
    names: Sequence[str],
    columns: Sequence[Sequence[str]],
    widths: Sequence[int],
    indent: int,
) -> Iterator[str]:
    """The lines of a block, of which the cells are given column by column.

    A row with a cell that is wrapped is several lines in one text.
    """
    heights: Sequence[int] | None = None
    if any(
        name in WRAPPED and widest_of(cells) > width
        for name, cells, width in zip(names, columns, widths, strict=True)
    ):
        columns, heights = _wrapped(names, columns, widths)
    padded = map(_padded, names, columns, widths)
    lines = map(str.rstrip, map((" " * GAP).join, zip(*padded, strict=True)))
    if indent:
        lines = map((" " * indent).__add__, lines)
    if heights is None:
        return lines
    return ("\n".join(islice(lines, height)) for height in heights)


def _wrapped(
    names: Sequence[str], columns: Sequence[Sequence[str]], widths: Sequence[int]
) -> tuple[Sequence[Sequence[str]], Sequence[int]]:
    """The columns with several cells for each that is wrapped, and that many lines.

    The other cells of such a row are empty after the first.
    """
    rows = [
        [
            (wrapped(cell, width) or [""]) if name in WRAPPED else [cell]
            for name, cell, width in zip(names, row, widths, strict=True)
        ]
        for row in zip(*columns, strict=True)
    ]
    lines = [line for row in rows for line in zip_longest(*row, fillvalue="")]
    heights = [max(map(len, row)) for row in rows]
    return list(zip(*lines, strict=True)), heights


def _padded(name: str, cells: Sequence[str], width: int) -> Iterable[str]:
    """The cells of a column, each as wide as the column."""
    if widest_of(cells) > width:
        cells = [_cut(name, cell, width) for cell in cells]
    pad = str.ljust if name in TEXT_COLUMNS else str.rjust
    if _is_narrow(cells):
        return [pad(cell, width) for cell in cells]
    return [pad(cell, width + len(cell) - cell_len(cell)) for cell in cells]


def _cut(name: str, cell: str, width: int) -> str:
    """Cut a cell to a width: keep the end of a path, the beginning of other texts.

    A number that would lose digits goes as a whole.
    """
    if cell_len(cell) <= width:
        return cell
    if name in PATH_COLUMNS:
        end = set_cell_size(cell[::-1], width - 1)[::-1].lstrip()
        is_inside = cell[-len(end) - 1].isdigit()
        return "…" + (end.lstrip("0123456789") if is_inside else end)
    return _begin(cell, width)


def _begin(text: str, width: int) -> str:
    """Return as much of the start of a text as there is room for."""
    if cell_len(text) <= width:
        return text
    begin = set_cell_size(text, width - 1).rstrip()
    is_inside = _DIGITS.match(text[len(begin) :]) is not None
    return (begin.rstrip("0123456789.,") if is_inside else begin) + "…"


def _blocks(rows: Iterable[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
    """The rows, `BLOCK` of them at a time."""
    left = iter(rows)
    while block := list(islice(left, BLOCK)):
        yield block


def _print_head(
    console: Console, names: Sequence[str], widths: Sequence[int], indent: int
) -> None:
    cells = [_begin(*one) for one in zip(names, widths, strict=True)]
    (line,) = _lines(names, [(cell,) for cell in cells], widths, indent)
    console.print(Text(line, style="dim"), soft_wrap=True)


def _print_lines(
    console: Console, lines: Iterable[tuple[int, str]], alarming: Container[int]
) -> None:
    """Print numbered lines, those that need no style past rich."""
    for is_alarming, some in groupby(lines, lambda line: line[0] in alarming):
        told = [line for _, line in some]
        if is_alarming and console.color_system:
            console.print(Text("\n".join(told), style=ALARM), soft_wrap=True)
        else:
            _write(console, told)


def _write(console: Console, lines: list[str]) -> None:
    """Write lines, past rich if they have no bars to be colored."""
    text = "\n".join(lines)
    if console.color_system and _BAR.search(text):
        colored = Text(text)
        colored.highlight_regex(_BAR, "blue")
        console.print(colored, soft_wrap=True)
    elif lines:
        console.file.write(f"{text}\n")
