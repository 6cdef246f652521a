"""Kept events: the kinds and the nodes of which a recording keeps events.

A user names what to keep by patterns and sizes, which become a `Scope`.
"""

import difflib
import fnmatch
import re
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Final

from gradviz.errors import UserError
from gradviz.trace.events import (
    INFERRED,
    KINDS,
    DependenciesCounted,
    DeviceSynchronized,
    Event,
    HandedOver,
    HandoversHeard,
    Mark,
    NodeCreated,
    ProgramThreadBegun,
    ProgramThreadEntered,
    ProgramThreadLeft,
    SavedElsewhere,
    StackTaken,
    StepBegun,
    StreamSynchronized,
    TakenOver,
    TaskBegun,
    TaskCompleted,
    TaskFailed,
    TensorSaved,
    kind_name,
)
from gradviz.trace.format.columns import RowLayout
from gradviz.trace.format.row_layouts import LAYOUTS
from gradviz.trace.format.scope import STACKS, KeptSteps, Scope, StepSchedule
from gradviz.trace.rules import RULES

#: Kinds that no recording leaves out: without the first no event has a pass, and the
#: last two are what the program says itself.
_ALWAYS_KEPT: Final[tuple[type[Event], ...]] = (
    TaskBegun,
    DependenciesCounted,
    TaskCompleted,
    TaskFailed,
    Mark,
    StepBegun,
)
ALWAYS_KEPT: Final = frozenset(map(kind_name, _ALWAYS_KEPT))

#: Kinds that are about one node, of which `only` decides.
ABOUT_A_NODE: Final[frozenset[type[Event]]] = frozenset(
    {
        NodeCreated,
        SavedElsewhere,
        StackTaken,
        TensorSaved,
        *(kind for kind, rule in RULES.items() if rule.node),
    }
)

#: Kinds from which the order of work on streams is known.
_ABOUT_STREAMS: Final[tuple[type[Event], ...]] = (
    *(kind for kind, rule in RULES.items() if rule.things),
    StreamSynchronized,
    DeviceSynchronized,
    HandoversHeard,
    ProgramThreadBegun,
    ProgramThreadEntered,
    ProgramThreadLeft,
    HandedOver,
    TakenOver,
)
ABOUT_STREAMS: Final = frozenset(map(kind_name, _ABOUT_STREAMS))

#: The names of all kinds.
_NAMES: Final = tuple(map(kind_name, KINDS.values()))

_SIZE: Final = re.compile(
    r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([kmg]i?b|b|)", re.IGNORECASE
)
_UNITS: Final = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
}

#: The space for odd steps if nobody says how much, and how many there may be.
_ODD_RING: Final = "256 MB"
_MOST_ODD: Final = 1000

#: Prefix of a pattern of kinds that are left out.
_NOT: Final = "!"


def scope_of(
    *,
    events: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
    stacks: str = "leaf",
    schedule: StepSchedule | None = None,
    ring: int | str | None = None,
    keep_odd: int | None = None,
    check_finite: bool = False,
) -> Scope:
    """Return the scope that `gradviz.record` was asked for.

    Raises:
        UserError: It makes no sense.
    """
    if stacks not in STACKS:
        raise UserError(f"stacks is {stacks!r}, expected one of {', '.join(STACKS)}")
    if schedule is not None and not isinstance(schedule, StepSchedule):
        raise UserError(
            f"schedule is {schedule!r}, expected what gv.schedule(active=...) returns"
        )
    if keep_odd is not None and schedule is not None:
        raise UserError(
            "keep_odd compares all steps, and a schedule leaves some out: leave one of "
            "the two"
        )
    if ring is None and keep_odd is not None:
        ring = _ODD_RING
    patterns = _texts("events", events)
    return Scope(
        left_out=left_out_kinds(patterns) if patterns else (),
        only=_texts("only", only),
        stacks=stacks,
        schedule=schedule,
        ring_bytes=0 if ring is None else bytes_of(ring),
        kept_steps=None if keep_odd is None else _kept_steps(keep_odd),
        checks_finite=bool(check_finite),
    )


def _kept_steps(keep: int) -> KeptSteps:
    is_number = isinstance(keep, int) and not isinstance(keep, bool)
    if not is_number or not 1 <= keep <= _MOST_ODD:
        raise UserError(
            f"keep_odd is {keep!r}, expected how many steps, 1 to {_MOST_ODD:,}"
        )
    return KeptSteps(keep=keep)


def bytes_of(size: int | str) -> int:
    """Return the bytes of a size that is written with its unit, as ``64 MB``.

    Raises:
        UserError: It is no such size, or is 0.
    """
    found = _SIZE.fullmatch(str(size).strip())
    number = round(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if not number:
        raise UserError(
            f"{size!r} is not a size in bytes such as 64MB, 512 KiB or 1000000"
        )
    return number


def left_out_kinds(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the kinds of events left out by a recording that keeps `patterns`.

    Args:
        patterns: Names of kinds, ``*`` and ``?`` as in file names: what is kept. One
            that begins with ``!`` takes away from those before it, or from all kinds
            if it is the first. The beginning and end of a pass are always kept.

    Raises:
        UserError: No kind has such a name.
    """
    kept: set[str] = set()
    for place, pattern in enumerate(patterns):
        wanted = pattern.removeprefix(_NOT)
        found = fnmatch.filter(_NAMES, wanted)
        if not found:
            raise _no_such_kind(wanted)
        if pattern.startswith(_NOT):
            kept = (kept if place else set(_NAMES)).difference(found)
        else:
            kept.update(found)
    return tuple(name for name in _NAMES if name not in kept | ALWAYS_KEPT)


def _no_such_kind(wanted: str) -> UserError:
    near = difflib.get_close_matches(wanted, _NAMES, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return UserError(
        f"no kind of event is called {wanted!r}{hint} (docs/trace-events.md lists them)"
    )


def _texts(name: str, given: str | Iterable[str]) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else tuple(given)
    wrong = [text for text in texts if not isinstance(text, str) or not text]
    if wrong:
        raise UserError(f"{name} has {wrong[0]!r}, expected patterns such as 'node_*'")
    return texts


def layouts_of(scope: Scope) -> Mapping[Hashable, RowLayout]:
    """Of the rows that a thread may report, those of which something is kept."""
    return _layouts_without(frozenset(scope.left_out))


# A millisecond, three times at the start of each recording.
@lru_cache(maxsize=16)
def _layouts_without(left_out: frozenset[str]) -> Mapping[Hashable, RowLayout]:
    codes = {code for code, kind in KINDS.items() if kind_name(kind) not in left_out}
    kept = {}
    for key, layout in LAYOUTS.items():
        parts = tuple(one for one in layout.parts if one.code & ~INFERRED in codes)
        if parts:
            kept[key] = RowLayout(layout.width, parts)
    return kept


def keeps_all_of_streams(scope: Scope) -> bool:
    """Return True if all that orders work on streams was to be kept."""
    has_gaps = scope.schedule is not None or scope.kept_steps is not None
    return not has_gaps and ABOUT_STREAMS.isdisjoint(scope.left_out)
