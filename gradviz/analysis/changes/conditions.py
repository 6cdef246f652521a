"""Conditions of a gate: differences that two passes must not have.

``order,memory:5%,time:20%`` are three conditions. Of what may grow, such as time, the
second pass fails that grew by more than the limit; of all else any difference fails.

Note [Noise and missing data]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Time is the median over the passes of the compared one's shape, in each trace. A median
of few passes, or of passes that vary, may be off by chance, so a condition on time
fails only where the medians differ by more than both the limit and the noise. That is
five standard errors, and no less than the passes deviate from their medians: what else
the machine does is not independent from pass to pass, so many passes do not make it
vanish. With fewer than three passes on either side nothing is known of
the noise: the condition is *undecided*, which fails nothing.

What a trace does not tell cannot have changed unnoticed, or so it would seem. So it is
*unknown*, which is no failure either but must not pass for "nothing changed".
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from gradviz.analysis.changes.pass_comparison import (
    ChangedNode,
    Comparison,
    FieldDifference,
    PlacedNode,
    TimeDifference,
)
from gradviz.analysis.memory.memory_use import HeldMemory, build_memory
from gradviz.analysis.memory.saved_shares import unknown_nodes
from gradviz.analysis.tables.passes import the_pass
from gradviz.analysis.tables.worker_parts import numbers_of
from gradviz.analysis.training.usual_times import MIN_CHANGE, MIN_PASSES, noise_ns
from gradviz.errors import UserError
from gradviz.trace.format.model import Trace

ConditionState: TypeAlias = Literal["passed", "failed", "undecided", "unknown"]

#: Unit of a number in a verdict.
Unit: TypeAlias = Literal["nodes", "passes", "bytes", "ns"]

#: A verdict names so many nodes.
MAX_EXAMPLES: Final = 3

#: A condition on a node's field, and the field of `Comparison.num_by_field`.
_FIELDS: Final = MappingProxyType(
    {
        "edges": "gradient",
        "shapes": "inputs",
        "devices": "device",
        "ends": "end",
        "hooks": "hooks",
        "saved": "saved bytes",
        "sync": "waits",
        "modules": "module",
        "parameters": "parameter",
        "lines": "line",
    }
)

#: Conditions that take a limit, and the limit of those that need one.
_LIMITS: Final = MappingProxyType({"memory": 0.0, "saved": None, "time": MIN_CHANGE})

CONDITIONS: Final = ("order", "nodes", *_FIELDS, "passes", "memory", "time")

#: Kinds of events without which a condition says nothing.
_NEEDS: Final = MappingProxyType(
    {
        "order": ("task_pushed", "task_popped"),
        "hooks": ("hook_called",),
        "saved": ("tensor_saved",),
        "sync": (
            "stream_synchronized",
            "device_synchronized",
            "event_synchronized",
            "stream_waited",
        ),
        "memory": ("tensor_saved", "gradient_buffered", "buffer_freed"),
    }
)

_CONDITION: Final = re.compile(r"([a-z]+)(?::(\d{1,9}(?:\.\d{1,9})?)%)?")


class BadConditionError(UserError):
    """A condition does not exist, or its limit is none: wrong usage."""

    exit_code = 2


class Condition(NamedTuple):
    """Something that must not change.

    Attributes:
        text: As it was written.
        name: One of `CONDITIONS`.
        limit: Part by which it may grow; None if it must not differ at all.
    """

    text: str
    name: str
    limit: float | None


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A node in which two passes differ.

    Attributes:
        before: The node in the first pass; None if only the second has it.
        after: The node in the second pass; None if only the first has it.
        was: Value in the first pass, if the node changed in a field; of a time
            nanoseconds.
        now: Value in the second pass.
    """

    before: PlacedNode | None
    after: PlacedNode | None
    was: str | int = ""
    now: str | int = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a condition.

    Attributes:
        condition: The condition, as it was written.
        name: Its name.
        limit: Part by which something may grow; None if it must not differ.
        state: See Note [Noise and missing data].
        reason: Reason that it is undecided or unknown; empty otherwise.
        unit: Unit of `before` and `after`.
        before: Figure of the first pass; None if unknown.
        after: Figure of the second pass; of a condition on nodes, how many differ.
        noise: Amount by which the figures may differ by chance; None if that is
            unknown, or there is no noise.
        examples: Some of the nodes in which the passes differ.
    """

    condition: str
    name: str
    limit: float | None
    state: ConditionState
    reason: str = ""
    unit: Unit = "nodes"
    before: int | None = None
    after: int | None = None
    noise: int | None = None
    examples: tuple[Example, ...] = ()


def parse_conditions(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Return the conditions of some texts, each with commas between its conditions.

    Raises:
        BadConditionError: One is unknown, is there twice, or has no such limit.
    """
    found: dict[str, Condition] = {}
    for text in (part.strip() for one in texts for part in one.split(",")):
        name = text.partition(":")[0]
        if name not in CONDITIONS:
            raise BadConditionError(
                f"there is no condition {name!r}, expected some of "
                f"{', '.join(CONDITIONS)}, with commas between them"
            )
        parsed = _CONDITION.fullmatch(text)
        if name not in _LIMITS and text != name:
            raise BadConditionError(
                f"got {text!r}, but {name} takes no limit: any difference fails it; "
                f"{', '.join(sorted(_LIMITS))} take one, such as time:20%"
            )
        if parsed is None:
            raise BadConditionError(
                f"got {text!r}, expected a limit in percent, such as {name}:5%"
            )
        if name in found:
            raise BadConditionError(f"the condition {name} is there twice: leave one")
        limit = _LIMITS.get(name) if parsed[2] is None else float(parsed[2]) / 100
        found[name] = Condition(text, name, limit)
    return tuple(found.values())


def judge(
    conditions: Sequence[Condition], comparison: Comparison, before: Trace, after: Trace
) -> tuple[Verdict, ...]:
    """Return the verdict on each condition.

    Args:
        conditions: The conditions.
        comparison: Two passes compared.
        before: The trace of the first pass.
        after: The trace of the second pass.
    """
    case = _Case(comparison, before, after)
    return tuple(_verdict(one, case) for one in conditions)


class _Case(NamedTuple):
    """Two passes, compared, and their traces."""

    comparison: Comparison
    before: Trace
    after: Trace


def _verdict(condition: Condition, case: _Case) -> Verdict:
    blank = Verdict(
        condition=condition.text,
        name=condition.name,
        limit=condition.limit,
        state="passed",
    )
    if not case.comparison.is_related:
        return _with(blank, state="failed", reason="unrelated")
    for trace in (case.before, case.after):
        left_out = trace.header.scope.left_out
        if missing := sorted({*_NEEDS.get(blank.name, ())}.intersection(left_out)):
            reason = f"{_name(trace)} was recorded without {', '.join(missing)}"
            return _with(blank, state="unknown", reason=reason)
    if blank.name == "saved" and blank.limit is not None:
        return _saved_in_all(blank, case)
    return _OF_THEIR_OWN.get(blank.name, _field)(blank, case)


def _nodes(blank: Verdict, case: _Case) -> Verdict:
    found = case.comparison
    gone = [Example(before=one, after=None) for one in found.vanished[:MAX_EXAMPLES]]
    new = [Example(before=None, after=one) for one in found.appeared[:MAX_EXAMPLES]]
    return _counted(blank, found.num_vanished + found.num_appeared, [*gone, *new])


def _order(blank: Verdict, case: _Case) -> Verdict:
    found = case.comparison
    return _counted(
        blank,
        found.num_moved,
        [
            Example(
                before=one.before,
                after=one.after,
                was=f"turn {one.before.place}",
                now=f"turn {one.after.place}",
            )
            for one in found.moved[:MAX_EXAMPLES]
        ],
    )


def _field(blank: Verdict, case: _Case) -> Verdict:
    found = case.comparison
    field = _FIELDS[blank.name]
    whole = [one for one in found.passes_differ if one.field == field]
    examples = [
        *(
            Example(before=None, after=None, was=one.before, now=one.after)
            for one in whole
        ),
        *_in_field(found.changed, field),
    ]
    num_different = found.num_by_field.get(field, 0) + len(whole)
    if blank.name == "saved" and not num_different:
        return _if_saved_is_known(blank, case)
    return _counted(blank, num_different, examples)


def _in_field(changed: Sequence[ChangedNode], field: str) -> list[Example]:
    found: list[Example] = []
    for one in changed:
        parts = [part for part in one.differences if _is_of(part, field)]
        if parts and len(found) < MAX_EXAMPLES:
            found.append(
                Example(
                    before=one.before,
                    after=one.after,
                    was=parts[0].before,
                    now=parts[0].after,
                )
            )
    return found


def _is_of(part: FieldDifference, field: str) -> bool:
    return part.field == field or part.field.startswith(f"{field} ")


def _counted(blank: Verdict, number: int, examples: Sequence[Example]) -> Verdict:
    return _with(
        blank,
        state="failed" if number else "passed",
        after=number,
        examples=tuple(examples[:MAX_EXAMPLES]),
    )


def _if_saved_is_known(blank: Verdict, case: _Case) -> Verdict:
    """Pass a case without differences, unless some nodes' saved bytes are unknown."""
    for trace, task in _sides(case):
        parts = the_pass(trace, task).parts
        if num_unknown := len(unknown_nodes(trace, parts)):
            reason = (
                f"{_name(trace)} does not tell how much {num_unknown:,} nodes saved"
            )
            return _with(blank, state="unknown", reason=reason)
    return _with(blank, after=0)


def _saved_in_all(blank: Verdict, case: _Case) -> Verdict:
    return _grown_memory(
        blank, case, lambda one: None if one.saved is None else one.saved.size_bytes
    )


def _memory(blank: Verdict, case: _Case) -> Verdict:
    return _grown_memory(blank, case, lambda one: one.peak.use.total)


def _grown_memory(
    blank: Verdict, case: _Case, bytes_of: Callable[[HeldMemory], int | None]
) -> Verdict:
    figures = []
    for trace, task in _sides(case):
        memory = build_memory(trace, [task], has_savings=False)
        if (num_bytes := bytes_of(memory)) is None:
            reason = f"{_name(trace)} does not tell how much memory was held"
            return _with(blank, state="unknown", reason=reason)
        figures.append(num_bytes)
    before, after = figures
    has_grown = after > before * (1 + (blank.limit or 0))
    return _with(
        blank,
        state="failed" if has_grown else "passed",
        unit="bytes",
        before=before,
        after=after,
    )


def _passes(blank: Verdict, case: _Case) -> Verdict:
    before, after = (
        len(numbers_of(trace, trace.tasks)) for trace in (case.before, case.after)
    )
    return _with(
        blank,
        state="passed" if before == after else "failed",
        unit="passes",
        before=before,
        after=after,
    )


def _time(blank: Verdict, case: _Case) -> Verdict:
    """Judge how long the passes took; see Note [Noise and missing data]."""
    found = case.comparison
    for side in (found.before, found.after):
        if side.status != "completed" or found.duration is None:
            reason = f"pass {side.task} of {side.trace or 'a recording'} {side.status}"
            return _with(blank, state="unknown", reason=reason)
    assert found.duration is not None
    one, other = found.duration.usual_before, found.duration.usual_after
    verdict = _with(
        blank,
        unit="ns",
        before=one.median_ns,
        after=other.median_ns,
        examples=_slower(found.times),
    )
    if min(one.passes, other.passes) < MIN_PASSES:
        reason = (
            f"too little data: {one.passes:,} and {other.passes:,} passes alike, and "
            f"{MIN_PASSES} of each are needed to tell a change from noise"
        )
        return _with(verdict, state="undecided", reason=reason)
    deviation = math.hypot(one.deviation_ns, other.deviation_ns)
    noise = max(noise_ns(one, other), deviation)
    grew = other.median_ns - one.median_ns
    is_slower = grew > noise and grew > (blank.limit or 0) * one.median_ns
    return _with(verdict, state="failed" if is_slower else "passed", noise=round(noise))


def _slower(times: Sequence[TimeDifference]) -> tuple[Example, ...]:
    """Return the nodes with the largest increase of their times."""

    def grew_ns(one: TimeDifference) -> int:
        return one.usual_after.median_ns - one.usual_before.median_ns

    slower = sorted((one for one in times if grew_ns(one) > 0), key=grew_ns)
    return tuple(
        Example(
            before=one.before,
            after=one.after,
            was=one.usual_before.median_ns,
            now=one.usual_after.median_ns,
        )
        for one in reversed(slower[-MAX_EXAMPLES:])
    )


def _sides(case: _Case) -> tuple[tuple[Trace, int], tuple[Trace, int]]:
    return (
        (case.before, case.comparison.before.task),
        (case.after, case.comparison.after.task),
    )


def _name(trace: Trace) -> str:
    return str(trace.path or "a recording")


def _with(verdict: Verdict, **fields: object) -> Verdict:
    return msgspec.structs.replace(verdict, **fields)


#: Conditions that are judged by more than a field of nodes.
_OF_THEIR_OWN: Final[Mapping[str, Callable[[Verdict, _Case], Verdict]]] = (
    MappingProxyType(
        {
            "memory": _memory,
            "nodes": _nodes,
            "order": _order,
            "passes": _passes,
            "time": _time,
        }
    )
)
