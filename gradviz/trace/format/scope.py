"""Scope: the parts that a recording was asked to keep, from its header.

What is left out on purpose is no loss: a reader knows from the header what cannot be
in a trace, and does not take its absence for an answer.

Steps are chosen by a function from a step's number to an action. The names and the
cycle are PyTorch's, see ``torch.profiler.schedule``.
"""

import enum
import fnmatch
from collections.abc import Iterator
from typing import Final

import msgspec

from gradviz.errors import UserError
from gradviz.trace.events import KINDS, kind_name

#: Values of `Scope.stacks`.
STACKS: Final = ("none", "leaf", "full")


class Action(enum.Enum):
    """Action of a recording during a step; the names are ``ProfilerAction``'s."""

    NONE = "none"
    WARMUP = "warmup"
    RECORD = "record"
    RECORD_AND_SAVE = "record and save"

    @property
    def records(self) -> bool:
        """Return whether the step is in the trace."""
        return self in (Action.RECORD, Action.RECORD_AND_SAVE)


class StepSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """Steps that are recorded; call it with a step's number for the action.

    Attributes:
        wait: Steps at the beginning of each cycle in which nobody listens.
        warmup: Steps after them in which everything is heard and dropped.
        active: Steps after them that are recorded.
        repeat: Cycles; 0 for no end.
        skip_first: Steps before the first cycle in which nobody listens.
    """

    wait: int = 0
    warmup: int = 0
    active: int = 1
    repeat: int = 0
    skip_first: int = 0

    def __call__(self, step: int) -> Action:
        """Return the action of a step.

        Source: torch/profiler/profiler.py, schedule

        Raises:
            UserError: `step` is negative.
        """
        if step < 0:
            raise UserError(f"step is {step}: steps count from 0")
        if step < self.skip_first:
            return Action.NONE
        cycle, place = divmod(
            step - self.skip_first, self.wait + self.warmup + self.active
        )
        if (self.repeat and cycle >= self.repeat) or place < self.wait:
            return Action.NONE
        if place < self.wait + self.warmup:
            return Action.WARMUP
        is_last = place == self.wait + self.warmup + self.active - 1
        return Action.RECORD_AND_SAVE if is_last else Action.RECORD

    def __str__(self) -> str:
        """Schedule, such as ``wait=1 warmup=1 active=3 repeat=0``."""
        numbers = {name: getattr(self, name) for name in self.__struct_fields__}
        if not self.skip_first:
            del numbers["skip_first"]
        return " ".join(f"{name}={number}" for name, number in numbers.items())


def schedule(
    *, wait: int = 0, warmup: int = 0, active: int, repeat: int = 0, skip_first: int = 0
) -> StepSchedule:
    """Say which steps to record, as ``torch.profiler.schedule`` does.

    After `skip_first` steps come cycles: for `wait` steps nobody listens, for `warmup`
    steps everything is heard and dropped, so that what is slow the first time is
    behind, and `active` steps are recorded. After `repeat` cycles nothing is recorded
    any more; 0 stands for no end.

    Differs: one trace holds all cycles, and a `warmup` of 0 is not warned of.

    Raises:
        UserError: A number is negative or no integer, or `active` is 0.
    """
    made = StepSchedule(
        wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first
    )
    for name in made.__struct_fields__:
        number = getattr(made, name)
        least = 1 if name == "active" else 0
        if not isinstance(number, int) or number < least:
            raise UserError(
                f"schedule: {name} is {number!r}, expected an integer, at least {least}"
            )
    return made


class KeptSteps(msgspec.Struct, frozen=True, kw_only=True):
    """Steps that a recording keeps of many, with ``--keep-odd``.

    Attributes:
        keep: Number of steps that are wanted of those farthest from the median
            duration; as many go into a sample of all.
        total: Steps that had ended when the file was written.
        kept: Steps of them that are in the file.
        median_ns: The median duration of a step, without the first; 0 if not known.
    """

    keep: int
    total: int = 0
    kept: int = 0
    median_ns: int = 0

    def __str__(self) -> str:
        """Describe it."""
        choice = f"the {self.keep:,} farthest from the median"
        if self.median_ns:
            choice += f" of {self.median_ns / 1e6:,.3g} ms"
        return (
            f"{self.kept:,} of {self.total:,} steps that ended: {choice}, a sample of "
            f"all, and the first"
        )


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Parts that a recording was asked to keep; by default everything.

    Attributes:
        left_out: Kinds of events that are not recorded.
        only: Patterns of the names or module paths of the nodes to record; none for
            all nodes.
        stacks: Part of the program's stack kept for each new node: ``none``, ``leaf``
            for the line, ``full`` for the lines that led to it too.
        schedule: The steps that are recorded, None for all.
        ring_bytes: Size of the ring that keeps the latest events, 0 for no limit.
        kept_steps: Steps kept besides the last; None if not chosen by duration.
        checks_finite: True if results and gradients were checked for NaN and infinity.
    """

    left_out: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    stacks: str = "leaf"
    schedule: StepSchedule | None = None
    ring_bytes: int = 0
    kept_steps: KeptSteps | None = None
    checks_finite: bool = False

    @property
    def has_whole_passes(self) -> bool:
        """True if all events of each pass in the trace were to be kept."""
        return not (self.left_out or self.only)

    def has_events_of(self, name: str, module: str) -> bool:
        """Return whether events of a node of that name and module were to be kept."""
        return not self.only or any(matches(one, name, module) for one in self.only)

    def in_words(self) -> Iterator[str]:
        """Yield a short text for each part left out on purpose."""
        kept = [
            name for name in map(kind_name, KINDS.values()) if name not in self.left_out
        ]
        if len(kept) < len(self.left_out):
            yield f"only events {', '.join(kept)}"
        elif self.left_out:
            yield f"no events {', '.join(self.left_out)}"
        if self.only:
            yield f"of nodes only {', '.join(self.only)}"
        if self.schedule is not None:
            yield f"only the active steps of {self.schedule}"
        if self.kept_steps is not None:
            yield f"only {self.kept_steps}"
        if self.stacks == "none":
            yield "no lines of the program that made nodes"


def matches(pattern: str, name: str, module: str) -> bool:
    """Return whether `pattern` matches a node by its name or its module.

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
