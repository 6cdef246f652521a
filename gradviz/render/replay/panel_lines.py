"""Lines of panels: exactly so wide, and no more than there is room for."""

from collections.abc import Sequence
from typing import Final

from rich.text import Text

DIM: Final = "dim"


def row(width: int, left: Text, right: str = "") -> Text:
    """A line exactly so wide; the left part gives way to the right one."""
    room = width - len(right) - 1 if right else width
    if room < 4:
        room, right = width, ""
    line = left.copy()
    line.no_wrap = True
    line.truncate(max(room, 0), overflow="ellipsis", pad=True)
    if right:
        line.append(f" {right}", style=DIM)
    return line


def headed(title: str, lines: Sequence[Text], width: int, height: int) -> list[Text]:
    """A panel: its title, its lines, empty ones below."""
    head = Text(f"─ {title} ", style="bold")
    head.truncate(width, overflow="ellipsis")
    head.append("─" * (width - head.cell_len), style=DIM)
    empty = Text(" " * width)
    return [head, *lines, *[empty] * (height - 1 - len(lines))][:height]


def cut(
    lines: Sequence[Text], width: int, room: int, total: int | None = None
) -> list[Text]:
    """Return the lines that fit; the last one counts the others."""
    total = len(lines) if total is None else total
    if total <= room:
        return list(lines)
    kept = list(lines[: max(room - 1, 0)])
    more = Text(f"  and {total - len(kept):,} more", style=DIM)
    return [*kept, row(width, more)][: max(room, 0)]


def shares(wanted: Sequence[int], room: int) -> list[int]:
    """Divide `room` so that the smallest gets all it wants first."""
    given = [0] * len(wanted)
    left = room
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    for number, place_ in enumerate(order):
        fair = left // (len(order) - number)
        given[place_] = min(wanted[place_], fair)
        left -= given[place_]
    return given
