"""Verdicts of a gate in words: a line each, with figures and what to look at."""

import shlex
from typing import Final

from gradviz.analysis.changes.conditions import Example, Verdict
from gradviz.analysis.changes.pass_comparison import ComparedPass, PlacedNode
from gradviz.render.words.text import (
    clean,
    count,
    duration,
    place,
    shorten,
    size,
)

#: A value of a node is cut to so many characters.
_MAX_VALUE: Final = 80

#: The command that shows more of a condition; `gradviz explain` shows a node otherwise.
_VIEWS: Final = {
    "order": "show order",
    "memory": "show memory",
    "saved": "show memory",
    "time": "show critical",
    "passes": "show summary",
}

_FIGURES: Final = {
    "memory": "the pass had a peak of",
    "saved": "its nodes saved",
    "time": "the pass took",
    "passes": "the trace has",
}

_OF_NODES: Final = {
    "order": "in another order",
    "nodes": "appeared or vanished",
    "edges": "with other edges",
    "shapes": "with inputs of other shapes or dtypes",
    "devices": "on another device",
    "ends": "with another end",
    "hooks": "with other hooks",
    "saved": "with other saved bytes",
    "sync": "with other waits",
    "modules": "in another module",
    "parameters": "with another parameter",
    "lines": "made at another line",
}


def verdict_text(verdict: Verdict, after: ComparedPass) -> str:
    """Return the verdict as a line.

    Args:
        verdict: The verdict.
        after: The second of both passes, in which to look.
    """
    if verdict.reason == "unrelated":
        found = "the passes have too little in common, as different programs have"
    elif verdict.state == "unknown":
        found = f"cannot be told: {clean(verdict.reason)}"
    else:
        found = _found(verdict)
        if verdict.reason:
            found = f"{found}; {clean(verdict.reason)}"
    looking = _look_at(verdict, after) if verdict.state == "failed" else ""
    return f"{verdict.condition}: {found}{looking}"


def _found(verdict: Verdict) -> str:
    examples = ", ".join(map(_example, verdict.examples))
    if verdict.unit == "nodes":
        number = verdict.after or 0
        if not number:
            return "no difference"
        more = ", ..." if number > len(verdict.examples) else ""
        return f"{count(number, 'node')} {_OF_NODES[verdict.name]}: {examples}{more}"
    before, after = verdict.before or 0, verdict.after or 0
    change = f" ({(after - before) / before:+.1%})" if before else ""
    text = (
        f"{_FIGURES[verdict.name]} {_figure(verdict, after)}, "
        f"before {_figure(verdict, before)}{change}"
    )
    if verdict.noise is not None and before:
        within = "within" if abs(after - before) <= verdict.noise else "beyond"
        text = f"{text}, {within} the noise of ±{verdict.noise / before:.1%}"
    if verdict.state == "failed" and examples:
        text = f"{text}; most of it {examples}"
    return text


def _figure(verdict: Verdict, number: int) -> str:
    if verdict.unit == "ns":
        return duration(number)
    return size(number) if verdict.unit == "bytes" else count(number, "pass")


def _example(one: Example) -> str:
    node = one.after or one.before
    name = "the pass" if node is None else _node(node)
    if one.before is None and one.after is not None:
        return f"{name} is new"
    if one.after is None and one.before is not None:
        return f"{name} is gone"
    return f"{name} {_value(one.was)} -> {_value(one.now)}"


def _node(node: PlacedNode) -> str:
    where = "" if node.index is None else f" #{node.index}"
    line = place(node.line)
    made = f" ({clean(line)})" if line else ""
    return f"{clean(node.name)}{where}{made}"


def _value(value: str | int) -> str:
    shown = duration(value) if isinstance(value, int) else value
    return shorten(clean(shown), _MAX_VALUE) or "nothing"


def _look_at(verdict: Verdict, after: ComparedPass) -> str:
    """Return the command that shows more; empty if there is no file to show."""
    if not after.trace or verdict.reason:
        return ""
    path = shlex.quote(clean(after.trace))
    if verdict.name == "passes":
        return f". Look at: gradviz show summary {path}"
    if verdict.name in _VIEWS:
        view = _VIEWS[verdict.name]
        return f". Look at: gradviz {view} --pass {after.task} {path}"
    nodes = [one.after for one in verdict.examples if one.after is not None]
    if not nodes:
        return f". Look at: gradviz show order --pass {after.task} {path}"
    return f". Look at: gradviz explain --pass {after.task} {path} {nodes[0].node}"
