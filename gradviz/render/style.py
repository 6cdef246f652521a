"""The style of pictures: colors, fonts, sizes.

Colors are told apart with any of the usual kinds of color blindness, and none of
them is the only carrier of a meaning: devices have a legend, failed nodes a heavy
border, nodes that did not run a dashed one.
"""

import functools
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

#: The kinds of borders.
Outline: TypeAlias = Literal["plain", "dashed", "dotted", "alarm", "bold"]

FONT: Final = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
TEXT_SIZE: Final = 12.0
SMALL_SIZE: Final = 10.0
TITLE_SIZE: Final = 16.0

BACKGROUND: Final = "#ffffff"
INK: Final = "#1b1f24"
FAINT_INK: Final = "#59636e"
LINE: Final = "#8c959f"
FAINT_LINE: Final = "#d8dee4"
PANEL: Final = "#f6f8fa"
PASS: Final = "#c3ccd6"
ALARM: Final = "#b3261e"

#: For devices, then for kinds of operations.
PALETTE: Final = (
    "#33618d",
    "#d9822b",
    "#23806c",
    "#9c4f96",
    "#c9a227",
    "#5aa9d6",
    "#b5544d",
    "#6b7f3a",
)
REST: Final = "#9aa4ae"
#: For leaves, where operations have colors: the same in every picture.
LEAF: Final = "#47525f"

#: For tensors that nodes have saved.
SAVED: Final = "#a8731c"
#: For the families of operations, in their order: from dark to pale. In grayscale they
#: and leaves stay apart, in nearly equal steps of lightness.
FAMILIES: Final = (
    "#063061",
    "#6d2261",
    "#aa401a",
    "#179174",
    "#4798c9",
    "#d69b1e",
    "#afb9c2",
    "#d5c8b0",
)

#: Parts of a training step.
STEP: Final = {"forward": "#9fc5e8", "backward": PASS, "optimizer": "#e6c789"}

#: The backward of a module, from its first to its last node.
MODULE: Final = "#dfe5ec"

#: A call of a hook.
HOOK: Final = "#d5a6bd"

#: A collective of ranks.
COLLECTIVE: Final = "#b4a7d6"

#: Kinds of differences between two passes; what both have alike is pale.
CHANGES: Final = {
    "vanished": "#b5544d",
    "appeared": "#17694f",
    "changed": "#7a2f6d",
    "moved": "#33618d",
    "slower": "#d9822b",
    "faster": "#5aa9d6",
    "same": "#dde2e7",
}

#: From little to much time.
RAMP: Final = ("#f6e3a1", "#fbbf68", "#f08a4b", "#c8433f", "#7a1f4f")


def assign(names: Iterable[str]) -> dict[str, str]:
    """A color for each of `names`, sorted; those beyond the palette share one.

    ``cpu`` is always the first color, so that pictures agree with each other.
    """
    ordered = sorted(set(names), key=lambda name: (name != "cpu", name))
    return {
        name: PALETTE[index] if index < len(PALETTE) else REST
        for index, name in enumerate(ordered)
    }


def ramp(part: float) -> str:
    """The color of `part` (0 to 1) of the way along `RAMP`."""
    at = min(max(part, 0.0), 1.0) * (len(RAMP) - 1)
    index = min(int(at), len(RAMP) - 2)
    return mix(RAMP[index + 1], RAMP[index], at - index)


def mix(color: str, other: str, part: float) -> str:
    """`part` of `color`, the rest `other`."""
    mixed = (
        round(part * one + (1 - part) * two)
        for one, two in zip(_rgb(color), _rgb(other), strict=True)
    )
    return "#" + "".join(f"{value:02x}" for value in mixed)


@functools.lru_cache(maxsize=1 << 10)
def tint(color: str, part: float = 0.13) -> str:
    """A light shade of `color`, on which `INK` reads well."""
    return mix(color, BACKGROUND, part)


def text_on(color: str) -> str:
    """White or ink, whichever reads better on `color`."""
    red, green, blue = _rgb(color)
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else BACKGROUND


def _rgb(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)
