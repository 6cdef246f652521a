"""Words and colors for what memory is held for, the same in every view."""

from typing import Final

from gradviz.analysis.memory.memory_use import Purpose

CALLED: Final[dict[Purpose, str]] = {
    "buffers": "input buffers",
    "saved": "saved tensors",
    "gradients": ".grad",
    "results": "captured results",
    "unclaimed": "perhaps besides",
}

#: From the bottom of a stack to its top, each darker or lighter than its neighbors.
#: The page has the same in `shell.css`.
COLORS: Final[dict[Purpose, str]] = {
    "gradients": "#17406d",
    "saved": "#e39a3b",
    "buffers": "#2f7d6d",
    "results": "#ecd9a0",
}
