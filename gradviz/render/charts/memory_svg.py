"""Memory over time as an SVG file: bytes held, and the holders at the peak."""

from collections.abc import Iterator, Sequence
from typing import Final

from gradviz.analysis.memory.memory_use import PURPOSES, HeldMemory, Holder
from gradviz.render import style
from gradviz.render.charts.bars import Scale
from gradviz.render.charts.time_chart import (
    AXIS_HEIGHT,
    GUTTER,
    MARGIN,
    SWATCH,
    WIDTH,
    Drawn,
    LegendKey,
    axis,
    chart,
    gutter_text,
    panel_head,
    shown,
    title_of,
)
from gradviz.render.markup import element, escape, number
from gradviz.render.words.purposes import (
    CALLED,
    COLORS,
    STACKED,
    unknown_purposes,
)
from gradviz.render.words.text import (
    clean,
    count,
    duration,
    fit,
    numbered,
    place,
    size,
    width,
)

PLOT_HEIGHT: Final = 190.0
MAX_HOLDERS: Final = 5
_HOLDER_LINE: Final = 16.0
#: Above the highest peak there is room for what it is called.
_HEADROOM: Final = 1.15
#: Marks of the axis of bytes, besides 0.
_NUM_LEVELS: Final = 4


def render_memory(
    memories: Sequence[HeldMemory], program: str = "", wide: float = WIDTH
) -> bytes:
    """Draw held memory, for several passes one below the other on one scale.

    Args:
        memories: At least one.
        program: Program that ran, for the title; empty if not known.
        wide: The width of the picture.
    """
    most = max(sum(map(_known, sizes)) for one in memories for _, *sizes in one.stack)
    highest = max(round(most * _HEADROOM), 1)
    purposes = [
        purpose
        for nr, purpose in enumerate(PURPOSES, start=1)
        if any(point[nr] for one in memories for point in one.stack)
    ]
    return chart(
        title=title_of("Memory", memories, program),
        words=[_words(memories)],
        alarms=list(dict.fromkeys(_missing(memories))),
        legend=[
            LegendKey(CALLED[purpose], {"fill": COLORS[purpose]})
            for purpose in COLORS
            if purpose in purposes
        ]
        + (
            [LegendKey(CALLED["unclaimed"], {"class_": "hatched"})]
            if "unclaimed" in purposes
            else []
        ),
        panels=[_panel(one, memories, highest, wide) for one in memories],
        wide=wide,
    )


def _words(memories: Sequence[HeldMemory]) -> str:
    known = [one for one in memories if one.peak.use.total is not None]
    if not known:
        return " · ".join(filter(None, ("what was held is unknown", shown(memories))))
    most = max(known, key=lambda one: one.peak.use.total or 0)
    whose = f" in pass {most.tasks[0]}" if len(memories) > 1 else ""
    return " · ".join(filter(None, (_peak_words(most, whose), shown(memories))))


def _peak_words(memory: HeldMemory, whose: str = "") -> str:
    peak = memory.peak
    most = "peak at least" if memory.is_partial else "peak"
    return f"{most} {size(peak.use.total or 0)}{whose} after {duration(peak.after_ns)}"


def _missing(memories: Sequence[HeldMemory]) -> Iterator[str]:
    """Yield the parts that the figures leave out."""
    for one in memories:
        if not one.is_complete:
            yield "Events are missing from the trace: the figures are of what is left."
        if one.num_unknown:
            yield (
                f"Unknown, and not counted: the bytes saved by "
                f"{count(one.num_unknown, 'node')} of pass {one.tasks[0]}, made before "
                f"the recording began, or nothing that can be asked for."
            )
        if unknown := unknown_purposes(one.peak.use):
            names = ", ".join(unknown)
            yield f"Unknown, and not drawn: {names} of pass {one.tasks[0]}."


def _panel(
    memory: HeldMemory, memories: Sequence[HeldMemory], most: int, wide: float
) -> Drawn:
    scale, parts, top = panel_head(memory, memories, wide)
    bottom = top + PLOT_HEIGHT
    parts.append(
        element(
            "rect",
            class_="panel",
            x=scale.left,
            y=top,
            width=scale.right - scale.left,
            height=PLOT_HEIGHT,
        )
    )
    parts += _levels(most, scale, top)
    parts += axis(scale, top, bottom)
    parts += _layers(memory, scale, most, bottom)
    parts += _peak(memory, scale, most, bottom, wide - MARGIN)
    holders = _holders(memory, bottom + AXIS_HEIGHT, wide)
    return Drawn(parts + holders.elements, bottom + AXIS_HEIGHT + holders.height)


def _levels(most: int, scale: Scale, top: float) -> Iterator[str]:
    """Yield lines at round sizes, with labels."""
    step = 1
    while step * _NUM_LEVELS < most:
        step *= 2
    for level in range(0, most + 1, step):
        y = number(top + PLOT_HEIGHT * (1 - level / most))
        yield (
            f'<path class="grid" d="M{number(scale.left)} {y}H{number(scale.right)}"/>'
        )
        yield element(
            "text",
            size(level),
            class_="small faint end",
            x=scale.left - 6,
            y=top + PLOT_HEIGHT * (1 - level / most) + 3.5,
        )


def _layers(
    memory: HeldMemory, scale: Scale, most: int, bottom: float
) -> Iterator[str]:
    """Yield the stack, from bottom to top; uncertain parts hatched above it."""
    xs = [scale.x(_known(when)) for when, *_ in memory.stack] + [
        scale.x(memory.until_ns)
    ]
    lower = [0] * len(memory.stack)
    per_byte = PLOT_HEIGHT / most
    for purpose in STACKED:
        nr = 1 + PURPOSES.index(purpose)
        upper = [
            below + _known(point[nr])
            for below, point in zip(lower, memory.stack, strict=True)
        ]
        if upper != lower:
            outline = _outline(xs, lower, upper, bottom, per_byte)
            look = (
                'class="hatched"'
                if purpose == "unclaimed"
                else f'fill="{COLORS[purpose]}"'
            )
            peak = max(_known(point[nr]) for point in memory.stack)
            hint = f"{CALLED[purpose]}: at most {size(peak)}"
            yield f'<path {look} d="{outline}"><title>{escape(hint)}</title></path>'
        lower = upper


def _known(size_bytes: int | None) -> int:
    """Return the height of a size; nothing is drawn for an unknown one."""
    return size_bytes or 0


def _outline(
    xs: Sequence[float],
    lower: Sequence[int],
    upper: Sequence[int],
    bottom: float,
    per_byte: float,
) -> str:
    """Return the area between two curves of steps: there along one, back the other."""
    there = [
        f"V{number(bottom - height * per_byte)}H{number(x)}"
        for height, x in zip(upper, xs[1:], strict=True)
    ]
    back = [
        f"V{number(bottom - height * per_byte)}H{number(x)}"
        for height, x in zip(reversed(lower), reversed(xs[:-1]), strict=True)
    ]
    start = f"M{number(xs[0])} {number(bottom - lower[0] * per_byte)}"
    return f"{start}{''.join(there)}{''.join(back)}Z"


def _peak(
    memory: HeldMemory, scale: Scale, most: int, bottom: float, right: float
) -> Iterator[str]:
    peak = memory.peak
    if peak.use.total is None:
        return
    x = scale.x(peak.after_ns)
    y = bottom - PLOT_HEIGHT * peak.use.total / most
    text = _peak_words(memory)
    is_left = x + width(text, style.TEXT_SIZE, bold=True) + 12 > right
    yield (
        f'<path d="M{number(x)} {number(bottom)}V{number(y)}" fill="none" '
        f'stroke="{style.ALARM}" stroke-width="1.5" stroke-dasharray="4 2"/>'
    )
    yield element("circle", cx=x, cy=y, r=4, fill=style.ALARM)
    yield element(
        "text",
        text,
        class_="bold end" if is_left else "bold",
        x=x - 8 if is_left else x + 8,
        y=y - 8,
        stroke=style.BACKGROUND,
        stroke_width=4,
        paint_order="stroke",
    )


def _holders(memory: HeldMemory, top: float, wide: float) -> Drawn:
    """Return the largest holders at the peak, a line each."""
    peak = memory.peak
    told = peak.holders[:MAX_HOLDERS]
    if not told:
        return Drawn([], 0.0)
    left = MARGIN + GUTTER
    parts = [gutter_text("held at the peak", top + 14, "bold")]
    y = top
    for one in told:
        look: dict[str, str] = (
            {"class_": "hatched"}
            if one.purpose == "unclaimed"
            else {"fill": COLORS[one.purpose]}
        )
        parts.append(
            element(
                "rect", x=left, y=y + 5, width=SWATCH - 3, height=SWATCH - 3, **look
            )
        )
        text = fit(_held(one), wide - left - MARGIN - SWATCH - 4, style.TEXT_SIZE)
        parts.append(element("text", text, x=left + SWATCH + 4, y=y + 14))
        y += _HOLDER_LINE
    if more := peak.num_holders - len(told):
        text = f"and {more:,} more"
        parts.append(
            element("text", text, class_="faint", x=left + SWATCH + 4, y=y + 14)
        )
        y += _HOLDER_LINE
    return Drawn(parts, y - top + 4)


def _held(one: Holder) -> str:
    who = numbered(one.name, one.node, one.index)
    parts = [f"{size(one.size_bytes)} {CALLED[one.purpose]} of {who}"]
    parts += [one.module] if one.module else []
    parts += [place(one.location)] if one.location else []
    return clean(" · ".join(parts))
