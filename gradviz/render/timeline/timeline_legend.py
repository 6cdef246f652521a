"""The legend of a timeline: only what is there."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from gradviz.analysis.timelines.timeline_spans import Span
from gradviz.render import style
from gradviz.render.timeline.timeline_arrows import ArrowKind
from gradviz.render.timeline.timeline_colors import (
    LegendItem,
    Look,
    SpanColors,
    look_of,
)
from gradviz.render.words.text import fit, width

SWATCH: Final = 14.0
SWATCH_GAP: Final = 6.0
ITEM_GAP: Final = 14.0
LEGEND_LINE: Final = 21.0
#: An item of the legend is no wider.
MAX_ITEM: Final = 260.0

_TEXTS: Final[dict[Look, str]] = {
    "wait": "asleep on its empty queue",
    "blocked": "stream waits for another",
    "idle": "setup and end of a pass",
}


_ARROWS: Final[dict[ArrowKind, str]] = {
    "push": "push to another thread",
    "await": "wait of a stream for another",
    "send": "gradients to another worker",
    "join": "the last rank begins",
}


class PlacedItem(NamedTuple):
    """An item of the legend, and where it is."""

    item: LegendItem
    x: float
    y: float


def legend(
    spans: Sequence[Span], colors: SpanColors, *, has_queues: bool
) -> list[LegendItem]:
    """Return the legend of some spans, and nothing else."""
    found = [*colors.legend]
    others = [one for one in spans if one.kind != "node" or one.status != "completed"]
    kinds = {span.kind for span in others}
    found += [
        LegendItem(part, "bar", color)
        for part, color in style.STEP.items()
        if part in kinds and not (colors.is_of_modules and part == "forward")
    ]
    if "module" in kinds and not colors.is_of_modules:
        words = "backward of a module, by its nodes"
        found.append(LegendItem(words, "bar", style.MODULE))
    if "hook" in kinds:
        found.append(LegendItem("hooks", "bar", style.HOOK))
    if "collective" in kinds:
        found.append(LegendItem("collectives of ranks", "bar", style.COLLECTIVE))
    looks = {look_of(span) for span in others}
    found += [
        LegendItem(text, look, style.BACKGROUND)
        for look, text in _TEXTS.items()
        if look in looks
    ]
    statuses = {span.status for span in others}
    bad = [one for one in ("failed", "unfinished") if one in statuses]
    if bad:
        found.append(LegendItem(" or ".join(bad), "failed", style.BACKGROUND))
    if "captured" in statuses:
        found.append(LegendItem("captured", "captured", style.LEAF))
    if has_queues:
        found.append(LegendItem("tasks in its queue", "queue", style.PANEL))
    if spans:
        found.append(LegendItem("none of these, or unknown", "blank", style.PANEL))
    return found


def arrow_items(kinds: Collection[ArrowKind]) -> list[LegendItem]:
    """Return the meanings of arrows of some kinds."""
    return [
        LegendItem(text, kind, style.INK)
        for kind, text in _ARROWS.items()
        if kind in kinds
    ]


def place_legend(
    items: Sequence[LegendItem], left: float, top: float, room: float
) -> list[PlacedItem]:
    """Return the positions of the legend's items, line by line."""
    found: list[PlacedItem] = []
    x, y = 0.0, top
    for item in items:
        text = fit(item.text, MAX_ITEM, style.TEXT_SIZE)
        wide = SWATCH + SWATCH_GAP + width(text, style.TEXT_SIZE) + ITEM_GAP
        if x and x + wide - ITEM_GAP > room:
            x, y = 0.0, y + LEGEND_LINE
        found.append(PlacedItem(item._replace(text=text), left + x, y))
        x += wide
    return found
