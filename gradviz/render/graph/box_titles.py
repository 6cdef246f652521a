"""Titles of boxes: names without the frames around them, in lines that have room."""

import re
from collections.abc import Sequence
from typing import Final

from gradviz.render.words.text import MAX_TITLE, shorten_front

#: A name that needs more lines loses its begin.
MAX_LINES: Final = 4

#: A line of a name may end after these.
_PIECES: Final = re.compile(r"[^._ ]*[._ ]+|[^._ ]+")


def relative(name: str, outer: str) -> str:
    """Return a name without the path of the module in whose frame it stands."""
    return name.removeprefix(f"{outer}.") if outer else name


def without_shared(name: str, module: str) -> str:
    """Return a parameter's name without the modules that it shares with a node's.

    A node's module may begin with its worker, as ``worker 2``, a parameter's does not.
    """
    own, others = name.split("."), module.split(".")
    if " " in others[0]:
        del others[0]
    at = 0
    while at < min(len(own) - 1, len(others)) and own[at] == others[at]:
        at += 1
    return ".".join(own[at:])


def wrapped(text: str, max_lines: int = MAX_LINES, length: int = MAX_TITLE) -> str:
    """Return a name in lines of at most `length` characters each.

    Lines end after dots and underscores where they can. Of a name that needs more lines
    the last are kept, for a name's end tells most.
    """
    if len(text) <= length:
        return text
    if max_lines == 1:
        return shorten_front(text, length)
    lines = _lines(text[-2 * max_lines * length :], length)
    if len(lines) > max_lines or len(text) > 2 * max_lines * length:
        lines = lines[-max_lines:]
        lines[0] = shorten_front(f"…{lines[0]}", length)
    return "\n".join(lines)


def _lines(text: str, length: int) -> list[str]:
    pieces: Sequence[str] = [
        whole[at : at + length]
        for whole in _PIECES.findall(text)
        for at in range(0, len(whole), length)
    ]
    lines = [""]
    for piece in pieces:
        if len(lines[-1]) + len(piece) > length:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines if line]
