"""What the colours of a timeline stand for, and how its spans are drawn."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from gradviz.analysis.graph import LEAF
from gradviz.analysis.op_families import OP_FAMILIES, op_family
from gradviz.analysis.timeline_spans import Span
from gradviz.render import style
from gradviz.render.text import clean, duration, operation

#: The words of `ColourBy`, as far as they mean something over time, and ``name``.
#: ``auto`` is by family of the operation: lanes tell devices apart.
TimelineColour: TypeAlias = Literal[
    "auto", "op", "name", "order", "time", "wait", "device"
]

#: How a rectangle is drawn, besides its colour.
Look: TypeAlias = Literal[
    "bar",
    "failed",
    "captured",
    "wait",
    "blocked",
    "idle",
    "queue",
    "blank",
    "push",
    "await",
    "send",
]

MAX_COLOURS: Final = len(style.PALETTE)

OTHERS: Final = "others"


class LegendItem(NamedTuple):
    """What a colour, or a way to draw, means."""

    text: str
    look: Look
    fill: str


class SpanColours(NamedTuple):
    """The colour of each span that is a node or a kernel, and what colours mean."""

    of: Callable[[Span], str]
    legend: Sequence[LegendItem]


def look_of(span: Span) -> Look:
    """How a span is drawn."""
    if span.kind in {"setup", "finish"}:
        return "idle"
    if span.kind == "wait":
        return "wait"
    if span.kind == "blocked":
        return "blocked"
    if span.status in {"failed", "unfinished"}:
        return "failed"
    return "captured" if span.status == "captured" else "bar"


def span_colours(spans: Sequence[Span], by: TimelineColour) -> SpanColours:
    """The colours of some spans, of which nodes and kernels have some."""
    spans = [one for one in spans if one.kind in {"node", "kernel"}]
    match by:
        case "device":
            colours = style.assign({clean(span.device) for span in spans})
            items = [LegendItem(name, "bar", one) for name, one in colours.items()]
            return SpanColours(lambda span: colours[clean(span.device)], items)
        case "name":
            return _by_name(spans)
        case "order":
            return _by_number(spans, _order, "ran as number", is_linear=True)
        case "time":
            return _by_number(spans, _took_ns, "took")
        case "wait":
            return _by_number(spans, _waited_ns, "queued for")
        case _:
            return _by_family(spans)


def _by_family(spans: Iterable[Span]) -> SpanColours:
    colours: dict[str, str] = dict(zip(OP_FAMILIES, style.FAMILIES, strict=True))
    family = {
        name: LEAF if name == LEAF else op_family(name)
        for name in {span.name for span in spans}
    }
    found = set(family.values())
    items = [
        LegendItem(name, "bar", one) for name, one in colours.items() if name in found
    ]
    if LEAF in found:
        items.append(LegendItem("leaves", "bar", style.LEAF))
    return SpanColours(lambda span: colours.get(family[span.name], style.LEAF), items)


def _by_name(spans: Iterable[Span]) -> SpanColours:
    """Colours for what took most time; the others share one."""
    raw: Counter[str] = Counter()
    for span in spans:
        raw[span.name] += span.end_ns - span.start_ns
    took: Counter[str] = Counter()
    for name, ns in raw.items():
        took[clean(operation(name))] += ns
    has_leaves = took.pop(LEAF, None) is not None
    names = [name for name, _ in took.most_common(MAX_COLOURS)]
    colours = dict(zip(names, style.PALETTE, strict=False))
    if has_leaves:
        colours[LEAF] = style.LEAF
    items = [LegendItem(name, "bar", colour) for name, colour in colours.items()]
    if len(took) > len(names):
        items.append(LegendItem(OTHERS, "bar", style.REST))
    return SpanColours(
        lambda span: colours.get(clean(operation(span.name)), style.REST), items
    )


def _by_number(
    spans: Sequence[Span],
    number: Callable[[Span], int | None],
    what: str,
    *,
    is_linear: bool = False,
) -> SpanColours:
    """Colours from little to much, times logarithmic; what has none is grey."""
    known = [one for one in map(number, spans) if one is not None]
    if not known:
        return SpanColours(lambda _: style.REST, ())

    def place(value: float) -> float:
        return value if is_linear else math.log(max(value, 1))

    written = str if is_linear else duration
    low, high = min(known), max(known)
    length = max(place(high) - place(low), 1e-9)

    def colour(value: float) -> str:
        return style.ramp((place(value) - place(low)) / length)

    def of(span: Span) -> str:
        value = number(span)
        return style.REST if value is None else colour(value)

    middle = (low + high) // 2 if is_linear else round(math.sqrt(max(low, 1) * high))
    steps = sorted({low, min(max(middle, low), high), high})
    items = [LegendItem(f"{what} {written(one)}", "bar", colour(one)) for one in steps]
    return SpanColours(of, items)


def _took_ns(span: Span) -> int | None:
    return span.end_ns - span.start_ns


def _waited_ns(span: Span) -> int | None:
    return span.waited_ns


def _order(span: Span) -> int | None:
    return span.index if span.index >= 0 else None
