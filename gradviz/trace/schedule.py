"""Which steps of a program are recorded: a function from a step's number to an action.

The names and the cycle are PyTorch's, see ``torch.profiler.schedule``.
"""

import enum

import msgspec

from gradviz.errors import UserError


class Action(enum.Enum):
    """What a recording does during a step; the names are ``ProfilerAction``'s."""

    NONE = "none"
    WARMUP = "warmup"
    RECORD = "record"
    RECORD_AND_SAVE = "record and save"

    @property
    def records(self) -> bool:
        """Whether what happens in the step is in the trace."""
        return self in (Action.RECORD, Action.RECORD_AND_SAVE)


class StepSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """Which steps are recorded; call it with a step's number for the action.

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
        """What is done during a step.

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
        """Such as ``wait=1 warmup=1 active=3 repeat=0``."""
        numbers = {name: getattr(self, name) for name in self.__struct_fields__}
        if not self.skip_first:
            del numbers["skip_first"]
        return " ".join(f"{name}={number}" for name, number in numbers.items())


def schedule(
    *, wait: int = 0, warmup: int = 0, active: int, repeat: int = 0, skip_first: int = 0
) -> StepSchedule:
    """Which steps `record` shall record, as ``torch.profiler.schedule`` says it.

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
