"""Why a node ran when it did, in sentences."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from gradviz.analysis.explanation import Ahead, Explanation, Mention
from gradviz.render.crossing_text import came, went
from gradviz.render.terminal.tables import make_console, name_text
from gradviz.render.text import clean, count, duration, place
from gradviz.trace.processor_time import SHORT_NS

INDENT: Final = "  "

#: How sentences begin that say that something went wrong.
_BAD: Final = ("It failed", "It did not", "Its gradient never came")


def print_explanation(explanation: Explanation, console: Console | None = None) -> None:
    """Print the sentences, the first as a heading."""
    console = console or make_console()
    first, *rest = sentences(explanation)
    print_wrapped(console, first, "bold", "")
    for sentence in rest:
        style = "bold red" if sentence.startswith(_BAD) else ""
        print_wrapped(console, sentence, style, INDENT)


def print_wrapped(console: Console, text: str, style: str, indent: str) -> None:
    """Lines as wide as the console, those after the first indented."""
    lines = textwrap.wrap(
        text, console.width, initial_indent=indent, subsequent_indent=INDENT
    )
    for line in lines:
        console.print(Text(line, style=style), soft_wrap=True)


def sentences(one: Explanation) -> Iterator[str]:
    """What there is to say of a node, in the order in which it happened."""
    yield _head(one)
    if one.crossing is not None and (arrival := came(one.crossing)) is not None:
        yield arrival.text
    elif one.is_root:
        yield "The pass began with it."
    if one.num_arrivals:
        yield _given(one)
    if one.pushed_ns is not None:
        yield _queued(one)
    if one.ahead:
        yield _overtaken(one)
    if one.stream_waits:
        yield f"Its stream had to wait for the work of {_listed(one.stream_waits)}."
    if one.status is None:
        yield _absent(one)
    else:
        yield from _run(one)
    if one.crossing is not None and (departure := went(one.crossing)) is not None:
        yield departure.text
    if one.num_let_start:
        more = one.num_let_start - len(one.let_start)
        yield f"It gave the last gradient to {_listed(one.let_start, more)}."


def _run(one: Explanation) -> Iterator[str]:
    """How it ran, and how it usually does."""
    yield _ran(one)
    if one.processor_wait_ns:
        yield (
            f"For {duration(one.processor_wait_ns)} of that its thread was not "
            f"running, and nothing recorded says why: another thread had the processor "
            f"or the interpreter's lock, or it slept."
        )
    if one.num_calls:
        yield _called(one)
    if one.num_alike > 1 and one.usual_ns is not None:
        yield _usual(one)


def _head(one: Explanation) -> str:
    called = f" ({clean(place(one.called_at))})" if one.called_at else ""
    parts = [f"{name_text(one.name)}, node {one.node} of pass {one.task}{called}"]
    if one.parameters:
        parts.append(f"of {clean(' = '.join(one.parameters))}")
    if one.device:
        parts.append(f"on {clean(one.device)}")
    if one.location:
        parts.append(f"made at {clean(place(one.location))}")
    if one.module:
        parts.append(f"in {clean(one.module)}")
    return ", ".join(parts)


def _given(one: Explanation) -> str:
    last = one.arrivals[-1]
    said = f"It was given {count(one.num_arrivals, 'gradient')}"
    by = f"{_named(last.producer)}, {duration(last.after_ns)} after the pass began"
    if one.num_arrivals == 1:
        waits = f"; it waits for {last.remaining} more" if last.remaining else ""
        return f"{said}, by {by}{waits}."
    if last.remaining:
        return (
            f"{said}; the last one came from {by}; it waits for {last.remaining} more."
        )
    other = one.arrivals[-2]
    later = duration(last.after_ns - other.after_ns)
    return (
        f"{said}; the last one came from {by}, {later} after that of "
        f"{_named(other.producer)}."
    )


def _queued(one: Explanation) -> str:
    assert one.pushed_ns is not None
    where = f"It was pushed to the queue of {clean(one.queue or '?')}"
    if one.popped_ns is None:
        return f"{where} after {duration(one.pushed_ns)} and never left it."
    waited = one.popped_ns - one.pushed_ns
    parts = [
        *([f"ran other nodes for {duration(one.busy_ns)}"] if one.busy_ns else []),
        *([f"woke up {duration(one.slept_ns)} later"] if one.slept_ns else []),
    ]
    while_ = f"; thread {one.thread} {' and '.join(parts)}" if parts else ""
    return f"{where} and lay there for {duration(waited)}{while_}."


def _overtaken(one: Explanation) -> str:
    """Who went first, those of one reason together."""
    reasons: dict[str, list[Ahead]] = {}
    for other in one.ahead:
        reasons.setdefault(_reason(other), []).append(other)
    parts = [
        f"{_listed([Mention(other.node, other.name) for other in others])} ({reason})"
        for reason, others in reasons.items()
    ]
    more = one.num_ahead - len(one.ahead)
    rest = f"; and {more:,} more" if more else ""
    return f"Before it left: {'; '.join(parts)}{rest}."


def _reason(other: Ahead) -> str:
    match other.why:
        case "wake-up":
            return "a wake-up goes first"
        case "deeper":
            return f"pass {other.task} is nested deeper"
        case "made later":
            return "made later by the forward"
        case "equal":
            return "equal to it, and on top of the heap"
        case None:
            return "not by PyTorch's order"


def _ran(one: Explanation) -> str:
    thread = f"thread {one.thread} {name_text(one.thread_name)}".rstrip()
    assert one.started_ns is not None
    if one.status == "captured":
        return f"Its gradient was captured on {thread}; it did not have to run."
    if one.ended_ns is None:
        return f"Since {duration(one.started_ns)} {thread} runs it: its end is missing."
    took = duration(one.ended_ns - one.started_ns)
    running = _running(one.ended_ns - one.started_ns, one.thread_time_ns)
    if one.status == "failed":
        return f"It failed on {thread} after {took}: {clean(one.error)}"
    return f"It ran on {thread} for {took}{running}."


def _called(one: Explanation) -> str:
    numbers = ", ".join(map(str, one.calls))
    more = one.num_calls - len(one.calls)
    which = f"pass {numbers}" if one.num_calls == 1 else f"passes {numbers}"
    return (
        f"Meanwhile it called {which}{f' and {more:,} more' if more else ''}, which "
        f"took {duration(one.calls_ns)} of that."
    )


def _usual(one: Explanation) -> str:
    assert one.usual_ns is not None
    running = _running(one.usual_ns, one.usual_thread_time_ns)
    return (
        f"The median of {one.num_alike:,} passes of this shape is "
        f"{duration(one.usual_ns)}{running}."
    )


def _running(took_ns: int, ran_ns: int | None) -> str:
    """For how long of it a thread was running, where that was measured."""
    if ran_ns is None or took_ns < SHORT_NS:
        return ""
    return f", {duration(ran_ns)} of it on a processor"


def _absent(one: Explanation) -> str:
    match one.absence:
        case "skipped":
            return f"It did not run: its pass had failed by then ({clean(one.error)})."
        case "failed before":
            return f"It did not run: its pass failed before ({clean(one.error)})."
        case "unfinished":
            return (
                "It did not run as far as the trace goes, which ends inside its pass."
            )
        case _:
            return "It did not run: no gradient came to it, or nobody asked for it."


def _listed(some: Sequence[Mention], more: int = 0) -> str:
    """Names with their nodes, and how many more there are."""
    parts = [_named(one) for one in some] + ([f"{more:,} more"] if more else [])
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _named(one: Mention) -> str:
    return name_text(one.name) + (f" ({one.node})" if one.node >= 0 else "")
