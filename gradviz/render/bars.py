"""A timeline's spans as rectangles: where they are, what they say, which are merged."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from gradviz.analysis.timeline_spans import STEP_PARTS, Span
from gradviz.render.text import clean, count, duration, operation, width
from gradviz.trace.processor_time import SHORT_NS

BAR_TEXT: Final = 11.0
#: Bars that would be narrower are merged with their neighbours: what cannot be seen
#: costs no bytes.
MIN_BAR: Final = 2.0
NUM_TICKS: Final = 9


class Scale(NamedTuple):
    """From times to places: where time 0 is, and how long a nanosecond."""

    left: float
    per_ns: float

    def x(self, ns: float) -> float:
        """The place of a time."""
        return self.left + ns * self.per_ns


class Bar(NamedTuple):
    """One rectangle: a span, or a run of spans too short to be seen alone.

    Attributes:
        spans: At least one, all of one kind and status.
        x: Where it begins.
        wide: Its width.
    """

    spans: Sequence[Span]
    x: float
    wide: float


def bars(spans: Iterable[Span], scale: Scale) -> Iterator[Bar]:
    """The rectangles of one row, runs of narrow ones made into one."""
    run: list[Span] = []
    for span in spans:
        is_narrow = (span.end_ns - span.start_ns) * scale.per_ns < MIN_BAR
        if run and not (is_narrow and _continues(run, span, scale)):
            yield _merged(run, scale)
            run = []
        if is_narrow:
            run.append(span)
        else:
            yield _merged([span], scale)
    if run:
        yield _merged(run, scale)


def _continues(run: Sequence[Span], span: Span, scale: Scale) -> bool:
    gap = (span.start_ns - run[-1].end_ns) * scale.per_ns
    same = (run[0].kind, run[0].status) == (span.kind, span.status)
    return same and gap < MIN_BAR


def _merged(run: Sequence[Span], scale: Scale) -> Bar:
    x = scale.x(run[0].start_ns)
    end = scale.x(max(span.end_ns for span in run))
    return Bar(tuple(run), x, max(end - x, MIN_BAR))


def fitting(span: Span, room: float) -> str:
    """The longest text about a span that its bar has room for."""
    name = clean(operation(span.name))
    texts = (name, name.rpartition(".")[2])
    if span.index >= 0:
        texts = (f"{span.index} {name}", str(span.index))
    for text in texts:
        if width(text, BAR_TEXT) + 4 <= room:
            return text
    return ""


def tooltip(spans: Sequence[Span]) -> str:
    """All that is known of the nodes or kernels of one bar."""
    took = sum(span.end_ns - span.start_ns for span in spans)
    if len(spans) > 1:
        what = spans[0].kind
        if what in STEP_PARTS:
            return f"{count(len(spans), 'call')} of {what}, {duration(took)} together"
        return f"{count(len(spans), what)}, {duration(took)} together"
    (span,) = spans
    if span.kind in STEP_PARTS:
        who = span.name if span.kind == "backward" else f"{span.kind}: {span.name}"
        ended = "" if span.status == "completed" else f", {span.status}"
        told = f"took {duration(took)}, from {duration(span.start_ns)}{ended}"
        return f"{clean(who)}\n{told}"
    node = f"node {span.node} of pass {span.task}"
    who = f"{span.index} {span.name}, {node}"
    if span.kind == "kernel":
        who = f"{span.name}, launched by {'the program' if span.node < 0 else node}"
    lines = [
        who,
        f"took {duration(took)} on {span.device}, from {duration(span.start_ns)}",
    ]
    if span.thread_time_ns is not None and took >= SHORT_NS:
        lines.append(f"its thread was running for {duration(span.thread_time_ns)}")
    if span.parameters:
        lines.append(f"adds up the gradient of {' = '.join(span.parameters)}")
    if span.waited_ns is not None:
        lines.append(f"queued for {duration(span.waited_ns)}")
    if span.status != "completed":
        lines.append(f"{span.status}: {span.error}" if span.error else span.status)
    return "\n".join(map(clean, lines))


def ticks(end_ns: int) -> Sequence[int]:
    """Where the axis has marks: every 1, 2 or 5 times a power of ten."""
    rough = max(end_ns / NUM_TICKS, 1)
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return range(0, end_ns + 1, step)
