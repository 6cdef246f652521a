"""A replay's screens as an SVG in which one follows the other, again and again."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.segment import Segment
from rich.text import Text

from gradviz.analysis.moments.event_replay import Replay
from gradviz.render import style
from gradviz.render.animation import animated
from gradviz.render.markup import document, element
from gradviz.render.replay.player import Player
from gradviz.render.replay.screen import screen
from gradviz.render.replay.words import ReplayWords
from gradviz.render.terminal.cells import make_console

#: A cell of the terminal, in pixels.
_WIDE: Final = 8.0
_HIGH: Final = 17.0
_MARGIN: Final = 10.0

_COLORS: Final = {
    "cyan": style.PALETTE[0],
    "yellow": "#8a5a00",
    "magenta": style.PALETTE[3],
    "green": style.PALETTE[2],
    "red": style.ALARM,
}

_STYLE: Final = """\
text { font: 13px "DejaVu Sans Mono", Menlo, Consolas, monospace }
"""


def film(
    replay: Replay,
    places: Sequence[int],
    *,
    width: int = 80,
    height: int = 24,
    seconds: float = 1.0,
) -> bytes:
    """An SVG that shows some events of a replay, one after the other, without end.

    Args:
        replay: The replay.
        places: Positions of the events to show, at least one.
        width: Of the terminal, in columns.
        height: Of the terminal, in lines.
        seconds: Time for which each is shown.
    """
    words, player = ReplayWords(replay), Player(replay)
    screens = []
    for place in places:
        player.go(place)
        screens.append(screen(player, words, width, height))
    parts = []
    for line in range(height):
        parts += animated([_line(one[line], line) for one in screens], seconds)
    return document(
        "Replay of a backward pass",
        width * _WIDE + 2 * _MARGIN,
        height * _HIGH + 2 * _MARGIN,
        parts,
        _STYLE,
    )


def _line(text: Text, line: int) -> str:
    """A line of the terminal; each piece stands where its first cell is."""
    console = make_console(width=max(text.cell_len, 1))
    text = text.copy()
    text.stylize_before(text.style)  # which is left out where there is no other
    return "".join(_pieces(text.render(console), _MARGIN + line * _HIGH))


def _pieces(segments: Iterable[Segment], top: float) -> Iterator[str]:
    left = _MARGIN
    for segment in segments:
        words, wide = segment.text, segment.cell_length * _WIDE
        look = segment.style
        ink, weight = style.INK, "400"
        if look is not None:
            name = look.color.name if look.color else ""
            ink = _COLORS.get(name, style.FAINT_INK if look.dim else style.INK)
            weight = "700" if look.bold else "400"
            if look.reverse:
                yield element(
                    "rect", x=left, y=top, width=wide, height=_HIGH, fill=style.INK
                )
                ink = style.BACKGROUND
        if seen := words.strip():
            lead = len(words) - len(words.lstrip(" "))
            extent = wide - (len(words) - len(seen)) * _WIDE
            yield element(
                "text",
                seen,
                x=left + lead * _WIDE,
                y=top + 13,
                textLength=extent,
                style=f"fill: {ink}; font-weight: {weight}",
                **{"xml:space": "preserve"},
            )
        left += wide
