"""Options of a recording, as words: on the command line, in the environment."""

import os
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, Self

from gradviz.capture.flight_recorder import REASONS, reasons_of
from gradviz.errors import UserError
from gradviz.trace.format.kept_events import scope_of
from gradviz.trace.format.scope import Scope, StepSchedule, schedule

#: Prefix of variables that hold the options of ``gradviz run``, for ``GRADVIZ_TRACE``
#: too.
_PREFIX: Final = "GRADVIZ_RUN_"


class RecordingOptions(NamedTuple):
    """Options of `gradviz.record`, as texts; an empty one is not set.

    Attributes:
        schedule: Such as ``wait=1,warmup=1,active=3,repeat=2``.
        events: Patterns with commas between them.
        only: Patterns with commas between them.
        stacks: ``none``, ``leaf`` or ``full``.
        ring: A size, such as ``64MB``.
        dump_on: Reasons with commas between them.
        keep_odd: A number of steps.
        check_finite: ``1``, or empty.
    """

    schedule: str = ""
    events: str = ""
    only: str = ""
    stacks: str = ""
    ring: str = ""
    dump_on: str = ""
    keep_odd: str = ""
    check_finite: str = ""

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the options that environment variables set."""
        return cls(
            *(environment.get(f"{_PREFIX}{one.upper()}", "") for one in cls._fields)
        )

    def variables(self) -> Iterator[tuple[str, str]]:
        """The variables that ask another process for the same."""
        for name, text in zip(self._fields, self, strict=True):
            if text:
                yield f"{_PREFIX}{name.upper()}", text

    def scope(self) -> Scope:
        """Return the scope of the recording.

        Raises:
            UserError: It makes no sense.
        """
        return scope_of(
            schedule=_schedule(self.schedule) if self.schedule else None,
            events=_split(self.events),
            only=_split(self.only),
            stacks=self.stacks or "leaf",
            ring=self.ring or None,
            keep_odd=_number(self.keep_odd) if self.keep_odd else None,
            check_finite=self.check_finite not in {"", "0"},
        )

    def reasons(self) -> frozenset[str]:
        """Return the reasons for writing a ring.

        Raises:
            UserError: There is no ring, or no such reason.
        """
        if self.dump_on and not (self.ring or self.keep_odd):
            raise UserError("only a ring is dumped: say how large it is, --ring 64MB")
        return reasons_of(_split(self.dump_on) or REASONS)


def _split(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(","))))


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UserError(f"keep_odd is {text!r}, expected a number of steps") from None


def _schedule(text: str) -> StepSchedule:
    numbers = {}
    for part in _split(text):
        name, _, number = part.partition("=")
        if name not in StepSchedule.__struct_fields__ or not number.isdecimal():
            raise UserError(
                f"{part!r} is no part of a schedule such as "
                f"wait=1,warmup=1,active=3,repeat=2"
            )
        numbers[name] = int(number[:18])
    if "active" not in numbers:
        raise UserError(f"schedule {text!r} does not say how many steps are active")
    return schedule(**numbers)
