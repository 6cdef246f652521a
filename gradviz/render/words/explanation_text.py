"""Sentences of when and why a node ran, for `gradviz explain` and the page.

`EXPLANATION` is all that may be said; the facts of a node decide what is. The page gets
the templates with its data, and the same facts from its tables.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from gradviz.analysis.moments.explanation import Ahead, Explanation, Mention, Thread
from gradviz.render.words.hook_text import hook_texts
from gradviz.render.words.rpc_edge_text import RpcEdgeSentence, arrival_of, departure_of
from gradviz.render.words.templates import Facts, Forms, Template, fill, forms_in
from gradviz.render.words.text import MAX_TITLE, clean, count, duration, place, shorten
from gradviz.trace.format.clock import SHORT_NS

_QUEUED: Final = "It was pushed to the queue of {queue:text}[ by {pushed_by:node}]"

#: Heading of `gradviz explain` above the sentences.
HEAD: Final = (
    "{number:order}{name:name}, node {node:id} of pass {pass:id}[ ({called_at:text})]"
    "[, of {parameters:text}][, on {device:text}][, made at {location:text}]"
    "[ ({line_number:number} of {line_count:number} there)][, in {module:text}]"
)

#: All that is said of a node, in the order in which it happened.
EXPLANATION: Final = (
    Template("{came:sentence}"),
    Template("{never_came:sentence}", is_alarm=True),
    Template("{began=root}The pass began with it."),
    Template(
        "It received {num_given:gradient}[, from {only_giver:node}][; the last one "
        "came from {last_giver:node}], {given_after:duration} after the pass began"
        "[, {given_later:duration} after that of {giver_before:node}]"
        "[; it waits for {num_missing:number} more]."
    ),
    Template(
        "{left=popped}"
        + _QUEUED
        + "[, on {pushing_thread:thread},] and waited there for "
        "{lay:duration}[ until {popping_thread:thread} popped it]"
        "[{meanwhile=busy}; {taker:short_thread} ran other nodes for {busy:duration}]"
        "[{meanwhile=slept}; {taker:short_thread} woke up {slept:duration} later]"
        "[{meanwhile=both}; {taker:short_thread} ran other nodes for {busy:duration} "
        "and woke up {slept:duration} later]."
    ),
    Template(
        "{left=never}" + _QUEUED + " after {came_after:duration} and never left it."
    ),
    Template(
        "{left=after the page}"
        + _QUEUED
        + " after {came_after:duration} and was still "
        "there where this page ends."
    ),
    Template("Popped before it: {ahead:overtakers}."),
    Template("Its stream had to wait for the work of {stream_waits:nodes}."),
    Template(
        "{outcome=captured}Its gradient was captured on {thread:thread}; it did not "
        "have to run."
    ),
    Template(
        "{outcome=unfinished}It has run on {thread:thread} since "
        "{began_after:duration} after the pass began: its end is missing."
    ),
    Template(
        "{outcome=failed}It failed on {thread:thread} after {took:duration}: "
        "{error:text}",
        is_alarm=True,
    ),
    Template(
        "{outcome=completed}It ran on {thread:thread} for {took:duration}"
        "[, {on_processor:duration} of it on a processor]."
    ),
    Template(
        "{outcome=skipped}It did not run: its pass had failed by then ({error:text}).",
        is_alarm=True,
    ),
    Template(
        "{outcome=failed before}It did not run: its pass failed before ({error:text}).",
        is_alarm=True,
    ),
    Template(
        "{outcome=after the trace}It had not run when the trace ended, inside its "
        "pass.",
        is_alarm=True,
    ),
    Template(
        "{outcome=after the page}It did not run by then: this page ends inside its "
        "pass.",
        is_alarm=True,
    ),
    Template(
        "{outcome=not reached}It did not run: no gradient reached it, or its gradient "
        "was not requested.",
        is_alarm=True,
    ),
    Template(
        "For {not_running:duration} of that time its thread was not running, and "
        "nothing recorded explains why: another thread had the processor or the "
        "interpreter's lock, or it slept."
    ),
    Template("Its hooks, in the order in which they ran: {hooks:hooks}."),
    Template(
        "Meanwhile it called {calls:passes}, which took {calls_took:duration} of that."
    ),
    Template(
        "The median of {num_alike:pass} of this shape is {usual:duration}"
        "[, {usual_on_processor:duration} of it on a processor]."
    ),
    Template("{went:sentence}"),
    Template("It sent the last missing gradient to {let_start:nodes}."),
    Template(
        "It accounts for {on_path:duration} of the critical path[ ({share:percent})]."
    ),
    Template(
        "If it took no time, the pass would take {if_free:duration} instead of "
        "{pass_took:duration}."
    ),
    Template(
        "It is not on the critical path: it could take {slack:duration} longer without "
        "delaying the pass."
    ),
)

#: Reasons why another task left a queue first; "none" stands for no reason of the
#: order.
REASONS: Final = {
    "wake-up": "a wake-up goes first",
    "deeper": "pass {pass:id} is nested deeper",
    "made later": "made later by the forward",
    "equal": "equal priority, and on top of the heap",
    "none": "not in PyTorch's order",
}


class Listed(NamedTuple):
    """The first things of a list, and how many more there are."""

    some: Sequence[object]
    more: int


class Overtakers(NamedTuple):
    """Nodes whose tasks went first for one of `REASONS`, and the pass of each."""

    why: str
    nodes: tuple[Mention, ...]
    tasks: tuple[int, ...]


def explanation_lines(one: Explanation) -> Iterator[Template]:
    """Fill the head and then each template that the facts suffice for."""
    facts = explanation_facts(one)
    for template in (Template(HEAD), *EXPLANATION):
        said = fill(template.text, facts, _FORMS)
        if said is not None:
            yield Template(said, template.is_alarm)


def explanation_facts(one: Explanation) -> Facts:
    """Return what is known of a node, under the names that the templates have."""
    facts = {
        "number": one.index,
        "name": one.name,
        "node": one.node,
        "pass": one.task,
        "called_at": _text(place(one.called_at)),
        "parameters": _text(" = ".join(one.parameters)),
        "device": _text(one.device),
        "location": _text(place(one.location)),
        "line_number": None if one.of_line is None else one.of_line.number,
        "line_count": None if one.of_line is None else one.of_line.count,
        "module": _text(one.module),
        **_beginning(one),
        **_gradients(one),
        **(_wait(one) if one.pushed_ns is not None else {}),
        "ahead": _ahead(one) if one.ahead else None,
        "hooks": _listed(one.hooks, one.num_hooks),
        "stream_waits": Listed(one.stream_waits, 0) if one.stream_waits else None,
        **(_absence(one) if one.status is None else _run(one)),
        "let_start": _listed(one.let_start, one.num_let_start),
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def _beginning(one: Explanation) -> Facts:
    """Return the facts about other workers, and the start of the pass."""
    arrival = None if one.crossing is None else arrival_of(one.crossing)
    departure = None if one.crossing is None else departure_of(one.crossing)
    return {
        "came": arrival if arrival and arrival.has_come else None,
        "never_came": arrival if arrival and not arrival.has_come else None,
        "began": "root" if one.is_root and arrival is None else None,
        "went": departure,
    }


def _gradients(one: Explanation) -> Facts:
    if not one.num_arrivals:
        return {}
    last = one.arrivals[-1]
    facts = {
        "num_given": one.num_arrivals,
        "given_after": last.after_ns,
        "num_missing": last.remaining or None,
    }
    if one.num_arrivals == 1:
        return {**facts, "only_giver": last.producer}
    if last.remaining:
        return {**facts, "last_giver": last.producer}
    before = one.arrivals[-2]
    return {
        **facts,
        "last_giver": last.producer,
        "giver_before": before.producer,
        "given_later": last.after_ns - before.after_ns,
    }


def _wait(one: Explanation) -> Facts:
    """Return the time in its queue, and the doings of the thread that took it."""
    assert one.pushed_ns is not None
    facts = {"queue": clean(one.queue or "?"), "pushed_by": one.pushed_by}
    if one.popped_ns is None:
        return {**facts, "left": "never", "came_after": one.pushed_ns}
    is_handed_over = one.pushed_on != one.popped_on
    did = {"busy": one.busy_ns or None, "slept": one.slept_ns or None}
    known = [name for name, ns in did.items() if ns]
    return {
        **facts,
        **did,
        "left": "popped",
        "lay": one.popped_ns - one.pushed_ns,
        "pushing_thread": one.pushed_on if is_handed_over else None,
        "popping_thread": one.popped_on if is_handed_over else None,
        "taker": Thread(one.thread, one.thread_name) if known else None,
        "meanwhile": "both" if len(known) > 1 else next(iter(known), None),
    }


def _ahead(one: Explanation) -> Listed:
    """Group the tasks that went first by their reasons."""
    reasons: dict[tuple[str, int], list[Ahead]] = {}
    for other in one.ahead:
        task = other.task if other.why == "deeper" else -1
        reasons.setdefault((other.why or "none", task), []).append(other)
    some = [
        Overtakers(
            why,
            tuple(Mention(it.node, it.name, it.index) for it in others),
            tuple(it.task for it in others),
        )
        for (why, _), others in reasons.items()
    ]
    return Listed(some, one.num_ahead - len(one.ahead))


def _run(one: Explanation) -> Facts:
    """Return the facts of its run, and of its usual one."""
    assert one.started_ns is not None
    took = None if one.ended_ns is None else one.ended_ns - one.started_ns
    return {
        "outcome": one.status if took is not None else "unfinished",
        "thread": Thread(one.thread, one.thread_name),
        "began_after": one.started_ns,
        "took": took,
        "error": clean(one.error) if one.status == "failed" else None,
        "on_processor": _if_long(took, one.thread_time_ns),
        "not_running": one.processor_wait_ns or None,
        "calls": _listed(one.calls, one.num_calls),
        "calls_took": one.calls_ns,
        **(_usual(one) if one.num_alike > 1 else {}),
    }


def _usual(one: Explanation) -> Facts:
    return {
        "num_alike": one.num_alike,
        "usual": one.usual_ns,
        "usual_on_processor": _if_long(one.usual_ns, one.usual_thread_time_ns),
    }


def _absence(one: Explanation) -> Facts:
    outcome = "after the trace" if one.absence == "unfinished" else one.absence
    return {"outcome": outcome, "error": clean(one.error)}


def _if_long(took_ns: int | None, ran_ns: int | None) -> int | None:
    """Return how long a thread ran; None where it took too little to be measured."""
    return None if took_ns is None or took_ns < SHORT_NS else ran_ns


def _listed(some: Sequence[object], total: int) -> Listed | None:
    return Listed(some, total - len(some)) if total else None


def _text(text: str) -> str | None:
    return clean(text) or None


def _order(index: int) -> str:
    """Return ``#5`` and a space, its number in all views; nothing if it did not run."""
    return f"#{index} " if index >= 0 else ""


def _name(name: str) -> str:
    return shorten(clean(name), MAX_TITLE)


def _node(one: Mention) -> str:
    if one.node < 0:
        return _name(one.name)
    return f"{_order(one.index)}{_name(one.name)} ({one.node})"


def _joined(texts: Sequence[str], more: int) -> str:
    parts = [*texts, *([f"{more:,} more"] if more else [])]
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _nodes(listed: Listed) -> str:
    return _joined(
        [_node(one) for one in listed.some if isinstance(one, Mention)], listed.more
    )


def _passes(listed: Listed) -> str:
    noun = "pass" if len(listed.some) + listed.more == 1 else "passes"
    return f"{noun} {_joined([*map(str, listed.some)], listed.more)}"


def _overtakers(listed: Listed) -> str:
    parts = [
        f"{_joined(list(map(_node, one.nodes)), 0)} "
        f"({fill(REASONS[one.why], {'pass': one.tasks[0]}, _FORMS)})"
        for one in listed.some
        if isinstance(one, Overtakers)
    ]
    rest = [f"and {listed.more:,} more"] if listed.more else []
    return "; ".join((*parts, *rest))


def _short_thread(thread: Thread) -> str:
    return f"thread {thread.number}"


def _thread(thread: Thread) -> str:
    return f"{_short_thread(thread)} {_name(thread.name)}".rstrip()


def _sentence(said: RpcEdgeSentence) -> str:
    return said.text


_FORMS: Final[Forms] = {
    "duration": duration,
    "gradient": partial(count, noun="gradient"),
    "hooks": lambda listed: "; ".join(hook_texts(listed.some, listed.more)),
    "id": str,
    "name": _name,
    "node": _node,
    "nodes": _nodes,
    "number": lambda number: f"{number:,}",
    "order": _order,
    "overtakers": _overtakers,
    "pass": partial(count, noun="pass"),
    "passes": _passes,
    "percent": lambda share: f"{share:.1f} %",
    "sentence": _sentence,
    "short_thread": _short_thread,
    "text": str,
    "thread": _thread,
}

_asked: Final = {*forms_in(HEAD)}.union(
    *(forms_in(one.text) for one in EXPLANATION), *map(forms_in, REASONS.values())
)
if _unknown := _asked - set(_FORMS):
    raise TypeError(
        f"templates of explanations ask for forms {_unknown}: give them one"
    )
