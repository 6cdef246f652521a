"""The text of a bar of a timeline: on it, and when one points at it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gradviz.analysis.timelines.timeline_spans import STEP_PARTS, Span, SpanKind
from gradviz.render.words.text import (
    clean,
    count,
    duration,
    fit,
    numbered,
    operation,
    width,
)
from gradviz.trace.format.clock import SHORT_NS

BAR_TEXT: Final = 11.0
#: Between a text and the ends of its bar.
PADDING: Final = 3.0
#: Maximum number of names told of spans that are one bar, those of most time.
MAX_NAMED: Final = 5
#: Less of a name than that says nothing.
LEAST_NAME: Final = 4

#: Names of spans that are no node, kernel or call.
IDLE: Final[Mapping[SpanKind, str]] = {
    "wait": "asleep, its queue was empty",
    "blocked": "blocked, waits for stream",
    "setup": "setup of pass",
    "finish": "end of pass",
}
#: Calls within a node, on whose bar the node's number would be in the way of its name.
_WITHIN_NODES: Final = frozenset({"hook", "collective"})
#: And when they are counted.
_NOUNS: Final[Mapping[SpanKind, str]] = {
    "wait": "sleep",
    "blocked": "stream wait",
    "setup": "setup",
    "finish": "end",
}


def fitting(span: Span, room: float) -> str:
    """The most that a bar of so much room can say about its span; nothing if little."""
    room -= 2 * PADDING
    name = clean(operation(span.name))
    if span.kind in IDLE:
        waits = f"waits for {name}"
        said = {"wait": "asleep", "blocked": waits, "setup": "setup"}
        name = said.get(span.kind, name)
    if span.parameters and span.kind == "node":
        return _leaf(span, room)
    if span.kind == "backward" and span.task >= 0 and width(name, BAR_TEXT) > room:
        name = str(span.task)
    if span.kind in IDLE:
        return name if width(name, BAR_TEXT) <= room else ""
    if span.index < 0 or span.kind in _WITHIN_NODES:
        while width(name, BAR_TEXT) > room and "." in name:
            name = name.partition(".")[2]
        return _if_enough(fit(name, room, BAR_TEXT), name)
    number = str(span.index)
    whole = f"{number} {name}"
    text = fit(whole, room, BAR_TEXT)
    if text == whole or len(text) >= len(number) + 1 + LEAST_NAME:
        return text
    return number if width(number, BAR_TEXT) <= room else ""


def _leaf(span: Span, room: float) -> str:
    """The parameter whose gradient a node adds up, as much as there is room for."""
    number = f"{span.index} " if span.index >= 0 else ""
    path = clean(span.parameters[0])
    while width(f"{number}{path}", BAR_TEXT) > room and "." in path:
        path = path.partition(".")[2]
    if width(f"{number}{path}", BAR_TEXT) <= room:
        return f"{number}{path}"
    text = fit(f"{number}{path}", room, BAR_TEXT)
    if len(text) >= len(number) + LEAST_NAME:
        return text
    number = number.strip()
    return number if width(number, BAR_TEXT) <= room else ""


def _if_enough(text: str, whole: str) -> str:
    return text if text == whole or len(text) >= LEAST_NAME else ""


def tooltip(spans: Sequence[Span]) -> str:
    """Return all facts about a bar's only span, or counts of several."""
    lines = _about(spans[0]) if len(spans) == 1 else _about_many(spans)
    return "\n".join(map(clean, lines))


def _about(span: Span) -> Iterator[str]:
    took = duration(span.end_ns - span.start_ns)
    when = f"{took}, from {duration(span.start_ns)}"
    if span.kind in IDLE:
        of = {"blocked": f" {span.name}", "wait": ""}.get(span.kind, f" {span.task}")
        yield f"{IDLE[span.kind]}{of}: {when}"
        return
    if span.kind == "module":
        yield f"backward of {span.name}, from its first node to its last one here"
        yield f"took {when}"
        return
    if span.kind in STEP_PARTS:
        yield span.name if span.kind == "backward" else f"{span.kind}: {span.name}"
        ended = "" if span.status == "completed" else f", {span.status}"
        yield f"took {when}{ended}"
        return
    node = f"{numbered('', span.node, span.index)} of pass {span.task}"
    if span.kind == "hook":
        yield f"hook {span.name}, called for {node}"
        yield f"took {when}"
        return
    if span.kind == "collective":
        by = f"pass {span.task}" if span.node < 0 else node
        ended = ", unfinished" if span.status == "unfinished" else ""
        yield f"{span.name}, launched by {by}"
        yield f"took {when}{ended}"
        return
    yield from _about_run(span, node)


def _about_run(span: Span, node: str) -> Iterator[str]:
    """Yield all that is known of a node that ran, or of a kernel."""
    took = duration(span.end_ns - span.start_ns)
    if span.kind == "kernel":
        by = "the program" if span.node < 0 else node
        yield f"{span.name}, launched by {by}"
    else:
        name = numbered(span.name, span.node, span.index)
        yield f"{name} of pass {span.task}"
    yield f"took {took} on {span.device}, from {duration(span.start_ns)}"
    if span.thread_time_ns is not None and span.end_ns - span.start_ns >= SHORT_NS:
        yield f"its thread was running for {duration(span.thread_time_ns)}"
    if span.module:
        yield f"made by {span.module}"
    if span.parameters:
        yield f"adds up the gradient of {' = '.join(span.parameters)}"
    if span.waited_ns is not None:
        yield f"queued for {duration(span.waited_ns)}"
    if span.status != "completed":
        yield f"{span.status}: {span.error}" if span.error else span.status


def _about_many(spans: Sequence[Span]) -> Iterator[str]:
    num: Counter[SpanKind] = Counter()
    took: Counter[SpanKind] = Counter()
    named: Counter[str] = Counter()
    named_ns: Counter[str] = Counter()
    for span in spans:
        num[span.kind] += 1
        took[span.kind] += span.end_ns - span.start_ns
        if span.kind not in IDLE:
            name = operation(span.name)
            named[name] += 1
            named_ns[name] += span.end_ns - span.start_ns
    for kind, often in num.items():
        of = f" of {kind}" if kind in STEP_PARTS else ""
        noun = "call" if of else _NOUNS.get(kind, kind)
        yield f"{count(often, noun)}{of}, {duration(took[kind])} together"
    for name, ns in named_ns.most_common(MAX_NAMED):
        yield f"{name}: {named[name]:,}, {duration(ns)}"
    if len(named) > MAX_NAMED:
        yield f"and {count(len(named) - MAX_NAMED, 'more name')}"
    bad = Counter(one.status for one in spans if one.status != "completed")
    yield from (f"{often:,} {status}" for status, often in bad.items())
