"""Memory over time as an SVG file: bytes held, by whom, and who had the peak."""

from collections.abc import Iterator, Sequence
from typing import Final

from gradviz.analysis.memory import PURPOSES, HeldMemory, Holder, Purpose
from gradviz.render import style
from gradviz.render.bars import Scale
from gradviz.render.charts import (
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
from gradviz.render.text import clean, count, duration, fit, place, size, width

PLOT_HEIGHT: Final = 190.0
MAX_HOLDERS: Final = 5
_HOLDER_LINE: Final = 16.0
#: Above the highest peak there is room for what it is called.
_HEADROOM: Final = 1.15
#: Marks of the axis of bytes, besides 0.
_NUM_LEVELS: Final = 4

#: From the bottom of the stack to its top, each darker or lighter than its neighbours.
COLOURS: Final[dict[Purpose, str]] = {
    "gradients": "#17406d",
    "saved": "#e39a3b",
    "buffers": "#2f7d6d",
    "results": "#ecd9a0",
}

CALLED: Final[dict[Purpose, str]] = {
    "buffers": "input buffers",
    "saved": "saved tensors",
    "gradients": ".grad",
    "results": "captured results",
    "unclaimed": "perhaps besides",
}


def render_memory(
    memories: Sequence[HeldMemory], program: str = "", wide: float = WIDTH
) -> bytes:
    """Draw what was held, for several passes one below the other on one scale.

    Args:
        memories: At least one.
        program: What ran, for the title; empty if not known.
        wide: The width of the picture.
    """
    most = max(sum(sizes) for one in memories for _, *sizes in one.stack)
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
            LegendKey(CALLED[purpose], {"fill": COLOURS[purpose]})
            for purpose in COLOURS
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
    most = max(memories, key=lambda one: one.peak.use.total)
    whose = f" in pass {most.tasks[0]}" if len(memories) > 1 else ""
    peak = (
        f"peak {size(most.peak.use.total)}{whose} after {duration(most.peak.after_ns)}"
    )
    return " · ".join(filter(None, (peak, shown(memories))))


def _missing(memories: Sequence[HeldMemory]) -> Iterator[str]:
    """What the figures leave out."""
    for one in memories:
        if not one.is_complete:
            yield "Events are missing from the trace: the figures are of what is left."
        if one.num_unknown:
            yield (
                f"Not counted: what {count(one.num_unknown, 'node')} of pass "
                f"{one.tasks[0]} had saved before the recording began."
            )


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
    """Lines at round sizes, and what they are."""
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
    """The stack, from its bottom to its top; what is not sure hatched above it."""
    xs = [scale.x(when) for when, *_ in memory.stack] + [scale.x(memory.until_ns)]
    lower = [0] * len(memory.stack)
    per_byte = PLOT_HEIGHT / most
    for purpose in (*COLOURS, "unclaimed"):
        nr = 1 + PURPOSES.index(purpose)
        upper = [
            below + point[nr] for below, point in zip(lower, memory.stack, strict=True)
        ]
        if upper != lower:
            outline = _outline(xs, lower, upper, bottom, per_byte)
            look = (
                'class="hatched"'
                if purpose == "unclaimed"
                else f'fill="{COLOURS[purpose]}"'
            )
            peak = max(point[nr] for point in memory.stack)
            hint = f"{CALLED[purpose]}: at most {size(peak)}"
            yield f'<path {look} d="{outline}"><title>{escape(hint)}</title></path>'
        lower = upper


def _outline(
    xs: Sequence[float],
    lower: Sequence[int],
    upper: Sequence[int],
    bottom: float,
    per_byte: float,
) -> str:
    """What lies between two curves of steps: there along one, back along the other."""
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
    x = scale.x(peak.after_ns)
    y = bottom - PLOT_HEIGHT * peak.use.total / most
    text = f"peak {size(peak.use.total)} after {duration(peak.after_ns)}"
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
    """Who held most at the peak, a line each."""
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
            else {"fill": COLOURS[one.purpose]}
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
    parts = [f"{size(one.size_bytes)} {CALLED[one.purpose]} of {one.name} ({one.node})"]
    parts += [one.module] if one.module else []
    parts += [place(one.location)] if one.location else []
    return clean(" · ".join(parts))
