"""Words and colors for what memory is held for, the same in every view."""

from typing import Final

from gradviz.analysis.memory.memory_use import HeldBytes, Purpose

CALLED: Final[dict[Purpose, str]] = {
    "buffers": "input buffers",
    "saved": "saved tensors",
    "gradients": ".grad",
    "results": "captured results",
    "unclaimed": "perhaps besides",
}

#: Each is darker or lighter than its neighbors in a stack. The page has the same in
#: `shell.css`.
COLORS: Final[dict[Purpose, str]] = {
    "gradients": "#17406d",
    "saved": "#e39a3b",
    "buffers": "#2f7d6d",
    "results": "#ecd9a0",
}

#: From the bottom of a stack to its top.
STACKED: Final[tuple[Purpose, ...]] = (*COLORS, "unclaimed")


def unknown_purposes(use: HeldBytes) -> tuple[str, ...]:
    """Return the purposes for which it is unknown what was held at a moment."""
    return tuple(CALLED[purpose] for purpose in use.unknown)
