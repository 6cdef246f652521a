"""Scope: what a recording was asked to keep, said in its header.

What is left out on purpose is no loss: a reader knows from the header what cannot be
in a trace, and does not take its absence for an answer.
"""

import difflib
import fnmatch
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from gradviz.errors import UserError
from gradviz.trace.columns import RowLayout
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
from gradviz.trace.joined import LAYOUTS
from gradviz.trace.rules import RULES
from gradviz.trace.schedule import StepSchedule

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

#: What `Scope.stacks` may be.
STACKS: Final = ("none", "leaf", "full")

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

#: What begins a pattern of kinds that are left out.
_NOT: Final = "!"


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What a recording was asked to keep; by default everything.

    Attributes:
        left_out: Kinds of events that are not recorded.
        only: Patterns of the names or module paths of those nodes whose events are;
            none for all nodes.
        stacks: What is kept of the program's stack when a node is made: ``none``,
            ``leaf`` for the line, ``full`` for the lines that led to it too.
        schedule: The steps that are recorded, None for all.
        ring_bytes: How much is kept of what was recorded last, 0 for all of it.
    """

    left_out: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    stacks: str = "leaf"
    schedule: StepSchedule | None = None
    ring_bytes: int = 0

    @property
    def has_whole_passes(self) -> bool:
        """Whether all events of each pass in the trace were to be kept."""
        return not (self.left_out or self.only)

    @property
    def has_all_of_streams(self) -> bool:
        """Whether whatever orders work on streams was to be kept."""
        return self.schedule is None and ABOUT_STREAMS.isdisjoint(self.left_out)

    def has_events_of(self, name: str, module: str) -> bool:
        """Whether events of a node of that name and module were to be kept."""
        return not self.only or any(matches(one, name, module) for one in self.only)

    def in_words(self) -> Iterator[str]:
        """What was left out on purpose, a few words each."""
        kept = [name for name in _NAMES if name not in self.left_out]
        if len(kept) < len(self.left_out):
            yield f"only events {', '.join(kept)}"
        elif self.left_out:
            yield f"no events {', '.join(self.left_out)}"
        if self.only:
            yield f"of nodes only {', '.join(self.only)}"
        if self.schedule is not None:
            yield f"only the active steps of {self.schedule}"
        if self.stacks == "none":
            yield "no lines of the program that made nodes"


def scope_of(
    *,
    events: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
    stacks: str = "leaf",
    schedule: StepSchedule | None = None,
    ring: int | str | None = None,
) -> Scope:
    """What `gradviz.record` was asked for.

    Raises:
        UserError: It makes no sense.
    """
    if stacks not in STACKS:
        raise UserError(f"stacks is {stacks!r}, expected one of {', '.join(STACKS)}")
    if schedule is not None and not isinstance(schedule, StepSchedule):
        raise UserError(
            f"schedule is {schedule!r}, expected what gv.schedule(active=...) returns"
        )
    patterns = _texts("events", events)
    return Scope(
        left_out=left_out_kinds(patterns) if patterns else (),
        only=_texts("only", only),
        stacks=stacks,
        schedule=schedule,
        ring_bytes=0 if ring is None else bytes_of(ring),
    )


def bytes_of(size: int | str) -> int:
    """How many bytes a size is that is written with its unit, as ``64 MB``.

    Raises:
        UserError: It is no such size, or is 0.
    """
    found = _SIZE.fullmatch(str(size).strip())
    number = round(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if not number:
        raise UserError(
            f"{size!r} is no size in bytes such as 64MB, 512 KiB or 1000000"
        )
    return number


def left_out_kinds(patterns: Iterable[str]) -> tuple[str, ...]:
    """The kinds of events that a recording leaves out that shall keep `patterns`.

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
        f"no kind of event is called {wanted!r}{hint} (docs/trace-format.md lists them)"
    )


def _texts(name: str, given: str | Iterable[str]) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else tuple(given)
    wrong = [text for text in texts if not isinstance(text, str) or not text]
    if wrong:
        raise UserError(f"{name} has {wrong[0]!r}, expected patterns such as 'node_*'")
    return texts


def layouts_of(scope: Scope) -> Mapping[Hashable, RowLayout]:
    """Of the rows that a thread may report, those of which something is kept."""
    left_out = set(scope.left_out)
    codes = {code for code, kind in KINDS.items() if kind_name(kind) not in left_out}
    kept = {}
    for key, layout in LAYOUTS.items():
        parts = tuple(one for one in layout.parts if one.code & ~INFERRED in codes)
        if parts:
            kept[key] = RowLayout(layout.width, parts)
    return kept


def matches(pattern: str, name: str, module: str) -> bool:
    """Whether `pattern` is that of a node: of its name, or of its module.

    A module's pattern may leave out the root of its path, and covers what is inside.
    """
    if fnmatch.fnmatchcase(name, pattern):
        return True
    paths = (module, module.partition(".")[2])
    return any(
        fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(path, f"{pattern}.*")
        for path in paths
        if path
    )
