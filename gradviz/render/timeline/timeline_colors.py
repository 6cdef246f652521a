"""The colors of a timeline, and how its spans are drawn."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from gradviz.analysis.graphs.backward_graph import LEAF
from gradviz.analysis.nodes.op_families import OP_FAMILIES, op_family
from gradviz.analysis.timelines.timeline_spans import Span
from gradviz.render import style
from gradviz.render.words.text import clean, duration, operation

#: The words of `ColorBy`, as far as they mean something over time, and ``name``.
#: ``auto`` is by family of the operation: lanes tell devices apart.
TimelineColor: TypeAlias = Literal[
    "auto",
    "op",
    "name",
    "module",
    "pass",
    "microbatch",
    "order",
    "time",
    "wait",
    "device",
]

#: Look of a rectangle, besides its color.
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
    "join",
    "gone",
    "new",
]

MAX_COLORS: Final = len(style.PALETTE)

OTHERS: Final = "others"


class LegendItem(NamedTuple):
    """Meaning of a color, or of a way to draw."""

    text: str
    look: Look
    fill: str


def _no_look(_: Span) -> Look | None:
    return None


def _no_words(_: Sequence[Span]) -> Sequence[str]:
    return ()


class SpanColors(NamedTuple):
    """The color of each span that is a node or a kernel, and what colors mean.

    Attributes:
        of: The color of a span.
        legend: Meanings of colors.
        look: Look of a span that is unlike others, None for one that is not.
        words: Notes on the spans of a bar, told before all else, a line each.
        is_of_modules: True if calls of modules have these colors too.
    """

    of: Callable[[Span], str]
    legend: Sequence[LegendItem]
    look: Callable[[Span], Look | None] = _no_look
    words: Callable[[Sequence[Span]], Sequence[str]] = _no_words
    is_of_modules: bool = False


def look_of(span: Span) -> Look:
    """Return the look of a span."""
    if span.kind in {"setup", "finish"}:
        return "idle"
    if span.kind == "wait":
        return "wait"
    if span.kind == "blocked":
        return "blocked"
    if span.status in {"failed", "unfinished"}:
        return "failed"
    return "captured" if span.status == "captured" else "bar"


def span_colors(
    spans: Sequence[Span],
    by: TimelineColor,
    micro_batches: Mapping[int, int] = MappingProxyType({}),
) -> SpanColors:
    """Return colors for spans: for nodes and kernels, or for modules as well.

    Args:
        spans: The spans.
        by: The property that colors stand for.
        micro_batches: The micro-batch of each node, from 0, by its id.
    """
    if by == "module":
        return _by_module(spans)
    spans = [one for one in spans if one.kind in {"node", "kernel"}]
    match by:
        case "device":
            colors = style.assign({clean(span.device) for span in spans})
            items = [LegendItem(name, "bar", one) for name, one in colors.items()]
            return SpanColors(lambda span: colors[clean(span.device)], items)
        case "name":
            return _by_name(spans)
        case "pass":
            return _by_label(spans, _pass_of, "pass", "of no pass")
        case "microbatch":
            return _by_label(
                spans,
                lambda span: micro_batches.get(span.node),
                "micro-batch",
                "of no single micro-batch",
            )
        case "order":
            return _by_number(spans, _order, "ran as number", is_linear=True)
        case "time":
            return _by_number(spans, _took_ns, "took")
        case "wait":
            return _by_number(spans, _waited_ns, "queued for")
        case _:
            return _by_family(spans)


def _by_family(spans: Iterable[Span]) -> SpanColors:
    colors: dict[str, str] = dict(zip(OP_FAMILIES, style.FAMILIES, strict=True))
    family = {
        name: LEAF if name == LEAF else op_family(name)
        for name in {span.name for span in spans}
    }
    found = set(family.values())
    items = [
        LegendItem(name, "bar", one) for name, one in colors.items() if name in found
    ]
    if LEAF in found:
        items.append(LegendItem("leaves", "bar", style.LEAF))
    return SpanColors(lambda span: colors.get(family[span.name], style.LEAF), items)


def _by_name(spans: Iterable[Span]) -> SpanColors:
    """Colors for what took most time; the others share one."""
    raw: Counter[str] = Counter()
    for span in spans:
        raw[span.name] += span.end_ns - span.start_ns
    took: Counter[str] = Counter()
    for name, ns in raw.items():
        took[clean(operation(name))] += ns
    has_leaves = took.pop(LEAF, None) is not None
    names = [name for name, _ in took.most_common(MAX_COLORS)]
    colors = dict(zip(names, style.PALETTE, strict=False))
    if has_leaves:
        colors[LEAF] = style.LEAF
    items = [LegendItem(name, "bar", color) for name, color in colors.items()]
    if len(took) > len(names):
        items.append(LegendItem(OTHERS, "bar", style.REST))
    return SpanColors(
        lambda span: colors.get(clean(operation(span.name)), style.REST), items
    )


def _by_module(spans: Sequence[Span]) -> SpanColors:
    """Return colors for the parts of models, at the deepest level with few enough.

    A part has the same color in the forward, in the backward, and on each of its
    nodes. Where there are more models than colors, those that took most time have one.
    """
    took: Counter[str] = Counter()
    for span in spans:
        if path := _path(span):
            took[path] += span.end_ns - span.start_ns
    parts = _parts(took)
    colors = _colors_of_parts(took, parts)

    def of(span: Span) -> str:
        if not (path := _path(span)):
            return style.LEAF
        return colors.get(parts[path], style.REST)

    items = [LegendItem(clean(part), "bar", one) for part, one in colors.items()]
    if not colors.keys() >= {*parts.values()}:
        items.append(LegendItem("whole models, other parts", "bar", style.REST))
    if any(one.kind in {"node", "kernel"} and not _path(one) for one in spans):
        items.append(LegendItem("outside of any module", "bar", style.LEAF))
    return SpanColors(of, items, is_of_modules=True)


def _parts(paths: Collection[str]) -> dict[str, str]:
    """Return the part of each path, at the deepest level with few enough parts.

    There are at most `MAX_COLORS` parts, unless there are more models.
    """
    deepest = max((path.count(".") for path in paths), default=0)
    parts: dict[str, str] = {}
    for depth in range(deepest + 1):
        found = {path: ".".join(path.split(".")[: depth + 1]) for path in paths}
        if depth and len({*found.values()}) > MAX_COLORS:
            break
        parts = found
    return parts


def _colors_of_parts(
    took: Mapping[str, int], parts: Mapping[str, str]
) -> dict[str, str]:
    """Return the colors of parts, in their order; those around others have none."""
    total: Counter[str] = Counter()
    for path, part in parts.items():
        total[part] += took[path]
    inner = [one for one, _ in total.most_common() if not _is_around(one, total)]
    names = sorted(inner[:MAX_COLORS], key=_natural)
    return dict(zip(names, style.PALETTE, strict=False))


def _path(span: Span) -> str:
    """Return the module of a span, empty if it has none."""
    return span.name if span.kind == "forward" else span.module


def _is_around(path: str, others: Iterable[str]) -> bool:
    """Return whether some of the others are parts of a module."""
    return any(one.startswith(f"{path}.") for one in others)


def _natural(path: str) -> list[tuple[int, str]]:
    """A key by which ``blocks.10`` comes behind ``blocks.9``."""
    parts = path.split(".")
    return [(int(one) if one.isdecimal() else -1, one) for one in parts]


def _by_label(
    spans: Iterable[Span], label: Callable[[Span], int | None], noun: str, none: str
) -> SpanColors:
    """Colors for numbers in their order; the palette repeats."""
    found = {label(span) for span in spans}
    numbers = sorted(one for one in found if one is not None)
    colors = {
        number: style.PALETTE[at % MAX_COLORS] for at, number in enumerate(numbers)
    }
    items = [
        LegendItem(f"{noun} {number}", "bar", colors[number])
        for number in numbers[:MAX_COLORS]
    ]
    if len(numbers) > MAX_COLORS:
        more = f"and so on to {noun} {numbers[-1]}"
        items.append(LegendItem(more, "blank", style.PANEL))
    if None in found:
        items.append(LegendItem(none, "bar", style.REST))

    def of(span: Span) -> str:
        number = label(span)
        return style.REST if number is None else colors[number]

    return SpanColors(of, items)


def _pass_of(span: Span) -> int | None:
    return span.task if span.task >= 0 else None


def _by_number(
    spans: Sequence[Span],
    number: Callable[[Span], int | None],
    what: str,
    *,
    is_linear: bool = False,
) -> SpanColors:
    """Colors from little to much, times logarithmic; what has none is gray."""
    known = [one for one in map(number, spans) if one is not None]
    if not known:
        return SpanColors(lambda _: style.REST, ())

    def place(value: float) -> float:
        return value if is_linear else math.log(max(value, 1))

    written = str if is_linear else duration
    low, high = min(known), max(known)
    length = max(place(high) - place(low), 1e-9)

    def color(value: float) -> str:
        return style.ramp((place(value) - place(low)) / length)

    def of(span: Span) -> str:
        value = number(span)
        return style.REST if value is None else color(value)

    middle = (low + high) // 2 if is_linear else round(math.sqrt(max(low, 1) * high))
    steps = sorted({low, min(max(middle, low), high), high})
    items = [LegendItem(f"{what} {written(one)}", "bar", color(one)) for one in steps]
    return SpanColors(of, items)


def _took_ns(span: Span) -> int | None:
    return span.end_ns - span.start_ns


def _waited_ns(span: Span) -> int | None:
    return span.waited_ns


def _order(span: Span) -> int | None:
    return span.index if span.index >= 0 else None
