"""Ready queues over time as an SVG file: lengths, contents, hand-overs, sleeps."""

from collections.abc import Iterator, Sequence
from typing import Final

from gradviz.analysis.queues.queues_over_time import QueuesOverTime, QueueStays, Stay
from gradviz.render import style
from gradviz.render.charts.bars import Scale
from gradviz.render.charts.time_chart import (
    AXIS_HEIGHT,
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
from gradviz.render.markup import element, escape, group, number
from gradviz.render.words.text import (
    clean,
    count,
    duration,
    fit,
    numbered,
    operation,
    width,
)

#: Maximum number of places of a queue drawn one above the other; its length tells the
#: rest.
MAX_SLOTS: Final = 12
SLOT_HEIGHT: Final = 15.0
LENGTH_HEIGHT: Final = 34.0
SLEEP_HEIGHT: Final = 8.0
QUEUE_GAP: Final = 10.0
#: Tasks that lay there for a shorter time are drawn together with their neighbors.
MIN_BAR: Final = 1.5

#: Taken by the thread that brought it, and by another one: light and dark.
OWN: Final = "#bcd3e8"
HANDED_OVER: Final = "#c06a12"

_LABEL: Final = 10.0


def render_queues(
    many: Sequence[QueuesOverTime], program: str = "", wide: float = WIDTH
) -> bytes:
    """Draw the contents of queues, several passes one below the other on one scale.

    Args:
        many: At least one.
        program: Program that ran, for the title; empty if not known.
        wide: The width of the picture.
    """
    queues = [queue for one in many for queue in one.queues]
    return chart(
        title=title_of("Ready queues", many, program),
        words=list(_words(many)),
        alarms=list(_missing(many)),
        legend=list(_legend(queues)),
        panels=[_panel(one, many, wide) for one in many],
        wide=wide,
    )


def _words(many: Sequence[QueuesOverTime]) -> Iterator[str]:
    queues = [queue for one in many for queue in one.queues]
    parts = [count(sum(one.num_stays for one in queues), "task")]
    if num_over := sum(one.num_handed_over for one in queues):
        parts.append(f"{num_over:,} handed over between threads")
    if asleep := sum(one.asleep_ns for one in queues):
        parts.append(f"threads slept for {duration(asleep)}, all added up")
    yield " · ".join(parts)
    if part := shown(many):
        yield part.capitalize()


def _missing(many: Sequence[QueuesOverTime]) -> Iterator[str]:
    if not all(one.is_complete for one in many):
        yield "Events are missing from the trace: a task may be drawn too long, or not."
    if omitted := sum(one.omitted for one in many):
        yield f"{count(omitted, 'queue')} more are left out."
    stays = [queue for one in many for queue in one.queues]
    if left_out := sum(one.num_stays - len(one.stays) for one in stays):
        yield f"{count(left_out, 'task')} are counted in the lengths only."


def _legend(queues: Sequence[QueueStays]) -> Iterator[LegendKey]:
    stays = [one for queue in queues for one in queue.stays]
    if any(not one.is_handed_over for one in stays):
        yield LegendKey("task, taken by who brought it", {"fill": OWN})
    if any(one.is_handed_over for one in stays):
        yield LegendKey("handed over from another thread", {"fill": HANDED_OVER})
    if any(one.popped_ns is None for one in stays):
        yield LegendKey("never taken", _NEVER_TAKEN)
    if any(queue.lengths for queue in queues):
        yield LegendKey("length", {"fill": style.PASS, "stroke": style.LINE})
    if any(queue.sleeps for queue in queues):
        yield LegendKey("thread asleep on it", {"class_": "hatched"})


_NEVER_TAKEN: Final = {
    "fill": style.BACKGROUND,
    "stroke": style.ALARM,
    "stroke-width": "1.5",
    "stroke-dasharray": "3 2",
}


def _panel(one: QueuesOverTime, many: Sequence[QueuesOverTime], wide: float) -> Drawn:
    scale, parts, top = panel_head(one, many, wide)
    drawn: list[str] = []
    y = top
    for queue in one.queues:
        part = _queue(queue, one, scale, y)
        parts.append(_ground(scale, y, part.height))
        drawn += part.elements
        y += part.height + QUEUE_GAP
    bottom = max(y - QUEUE_GAP, top)
    if not one.queues:
        drawn.append(gutter_text("no tasks", top + 14, "faint"))
        bottom = top + 20
    parts += axis(scale, top, bottom)
    return Drawn(parts + drawn, bottom + AXIS_HEIGHT)


def _ground(scale: Scale, y: float, high: float) -> str:
    wide = scale.right - scale.left
    return element("rect", class_="panel", x=scale.left, y=y, width=wide, height=high)


def _queue(queue: QueueStays, one: QueuesOverTime, scale: Scale, y: float) -> Drawn:
    """Draw a queue: its length as an area, its tasks below it, and sleeps."""
    num_slots = min(max((stay.slot + 1 for stay in queue.stays), default=0), MAX_SLOTS)
    parts = [
        gutter_text(clean(queue.name), y + 14, "bold"),
        gutter_text(f"longest {queue.longest:,}", y + 28, "small faint"),
    ]
    parts += _length(queue, scale, y)
    at = y + LENGTH_HEIGHT + 3
    for slot in range(num_slots):
        own = [stay for stay in queue.stays if stay.slot == slot]
        parts += _bars(own, one, scale, at)
        at += SLOT_HEIGHT
    if more := max((stay.slot + 1 for stay in queue.stays), default=0) - num_slots:
        text = f"and {more:,} places more"
        parts.append(gutter_text(text, at - 4, "small faint"))
    if queue.sleeps:
        parts.append(
            gutter_text(f"asleep {duration(queue.asleep_ns)}", at + 9, "small")
        )
        parts += _sleeps(queue, scale, at + 1)
        at += SLEEP_HEIGHT + 4
    return Drawn(parts, max(at - y, 34.0))


def _length(queue: QueueStays, scale: Scale, y: float) -> Iterator[str]:
    bottom = y + LENGTH_HEIGHT
    per_task = (LENGTH_HEIGHT - 4) / max(queue.longest, 1)
    path = [f"M{number(scale.left)} {number(bottom)}"]
    for when, length in queue.lengths:
        path.append(f"H{number(scale.x(when))}V{number(bottom - length * per_task)}")
    path.append(f"H{number(scale.right)}V{number(bottom)}Z")
    hint = f"{queue.name}: at most {count(queue.longest, 'task')} at once"
    yield (
        f'<path d="{"".join(path)}" fill="{style.PASS}" stroke="{style.LINE}" '
        f'stroke-width="0.8"><title>{escape(clean(hint))}</title></path>'
    )


def _bars(
    stays: Sequence[Stay], one: QueuesOverTime, scale: Scale, y: float
) -> Iterator[str]:
    """The tasks that took one place, short ones together."""
    run: list[Stay] = []
    for stay in stays:
        if run and not _is_near(run, stay, scale):
            yield _bar(run, one, scale, y)
            run = []
        run.append(stay)
    if run:
        yield _bar(run, one, scale, y)


def _is_near(run: Sequence[Stay], stay: Stay, scale: Scale) -> bool:
    """Return whether a stay is too short to tell from those before it."""
    before, x = scale.x(run[0].pushed_ns), scale.x(stay.pushed_ns)
    end = max(scale.x(_end(run[-1], scale)), before)
    is_short = scale.x(_end(stay, scale)) - x < MIN_BAR and end - before < 2 * MIN_BAR
    return is_short and x - end < MIN_BAR


def _end(stay: Stay, scale: Scale) -> int:
    return scale.end_ns if stay.popped_ns is None else stay.popped_ns


def _bar(run: Sequence[Stay], one: QueuesOverTime, scale: Scale, y: float) -> str:
    x = scale.x(run[0].pushed_ns)
    wide = max(scale.x(max(_end(stay, scale) for stay in run)) - x, MIN_BAR)
    is_over = any(stay.is_handed_over for stay in run)
    look = {"fill": HANDED_OVER if is_over else OWN}
    if any(stay.popped_ns is None for stay in run):
        look = _NEVER_TAKEN
    bar = element("rect", x=x, y=y, width=wide, height=SLOT_HEIGHT - 2, **look)
    parts = [bar]
    name = clean(operation(run[0].name))
    if len(run) == 1 and width(name[:4], _LABEL) + 6 <= wide:
        ink = style.text_on(look["fill"])
        parts.append(
            element(
                "text",
                fit(name, wide - 6, _LABEL),
                class_="small",
                x=x + 3,
                y=y + SLOT_HEIGHT - 5,
                style=f"fill: {ink}",
            )
        )
    return group(parts, tooltip=_hint(run, one))


def _hint(run: Sequence[Stay], one: QueuesOverTime) -> str:
    if len(run) > 1:
        return f"{count(len(run), 'task')}, the first {clean(run[0].name)}"
    (stay,) = run
    who = stay.name
    if stay.node >= 0:
        who = numbered(stay.name, stay.node, stay.index)
    lines = [f"{who} of pass {stay.task}"]
    if stay.popped_ns is None:
        lines.append("never taken")
    else:
        lines.append(f"waited there for {duration(stay.popped_ns - stay.pushed_ns)}")
    if stay.is_handed_over:
        names = one.threads[stay.pushed_by], one.threads[stay.popped_by]
        lines.append("from {} to {}".format(*names))
    return "\n".join(map(clean, lines))


def _sleeps(queue: QueueStays, scale: Scale, y: float) -> Iterator[str]:
    """Yield the sleeps of a thread as one path: there may be thousands."""
    path = []
    reached = scale.left - 1
    for begin, end in queue.sleeps:
        x, to_x = scale.x(begin), max(scale.x(end), scale.x(begin) + 0.5)
        if to_x - reached < 0.5:
            continue  # hidden by the one before
        reached = to_x
        path.append(f"M{number(x)} {number(y)}H{number(to_x)}v{SLEEP_HEIGHT:g}")
        path.append(f"H{number(x)}Z")
    hint = (
        f"asleep for {duration(queue.asleep_ns)} in {count(len(queue.sleeps), 'sleep')}"
    )
    yield f'<path class="hatched" d="{"".join(path)}"><title>{hint}</title></path>'
