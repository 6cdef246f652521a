"""One thread of a simulation, with its wait and its possible ends."""

import traceback
from types import FrameType
from typing import Any, Protocol

from gradviz.errors import GradvizError


class ScheduleError(GradvizError, AssertionError):
    """Under this schedule the program goes wrong."""


class Deadlock(ScheduleError):  # noqa: N818 - the name of the thing
    """Threads wait, and no thread is left to wake them."""


class Livelock(ScheduleError):  # noqa: N818 - the name of the thing
    """The run does not come to an end."""


class ThreadDied(ScheduleError):  # noqa: N818 - the name of the thing
    """An exception left a thread's function."""


class Waitable(Protocol):
    """An object that a thread can wait for.

    Attributes:
        waiters: Waiting threads, in order of arrival.
    """

    waiters: "list[Fiber]"

    def describe(self) -> str:
        """Describe it and its owner, for the table of a deadlock."""


class Fiber:
    """One thread of the simulation.

    Attributes:
        number: 0, 1, 2... in order of creation.
        name: For messages.
        is_daemon: True if a run may end while it waits.
        waits_for: Object that it waits for, None while it can run.
        deadline_ns: Time until which it waits; None is forever.
        interruption: Exception to raise in it at its next turn.
        greenlet: Greenlet that it runs in.
    """

    __slots__ = (
        "deadline_ns",
        "greenlet",
        "interruption",
        "is_daemon",
        "name",
        "number",
        "waits_for",
    )

    def __init__(self, number: int, name: str, *, is_daemon: bool) -> None:
        self.number = number
        self.name = name
        self.is_daemon = is_daemon
        self.greenlet: Any = None
        self.waits_for: Waitable | None = None
        self.deadline_ns: int | None = None
        self.interruption: BaseException | None = None

    def __repr__(self) -> str:
        return f"<Fiber {self.number} {self.name}>"

    def describe(self) -> str:
        """Describe its current call, as a line of the table of a deadlock."""
        if self.waits_for is None:
            state = "can run"
        else:
            state = f"waits for {self.waits_for.describe()}"
        return f"{self.name:<20} {state:<44} {self._place()}"

    def _place(self) -> str:
        """The innermost frames outside of this package, innermost first."""
        frame: FrameType | None = self.greenlet.gr_frame
        summary = traceback.StackSummary.extract(
            traceback.walk_stack(frame), limit=12, lookup_lines=False
        )
        here = __name__.rpartition(".")[0].replace(".", "/")
        places = [
            f"{one.name} ({one.filename.rpartition('/')[2]}:{one.lineno})"
            for one in summary
            if here not in one.filename
        ]
        return " < ".join(places[:4])
