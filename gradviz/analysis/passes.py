"""The backward passes of a trace: when each ran, how it ended, which one is meant."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
import numpy as np

from gradviz.analysis.messages import begun_elsewhere, companions, messages
from gradviz.errors import UserError
from gradviz.trace.model import LOST_TEXT, Trace
from gradviz.trace.strings import shortened

Status: TypeAlias = Literal["completed", "failed", "unfinished"]

LISTED: Final = 8

#: Ids are 64-bit numbers; more digits than those have are no id.
_RANGE: Final = re.compile(r"([0-9]{1,19})(?:-([0-9]{1,19}))?")

#: No view tells of more passes than this.
MAX_PASSES: Final = 60_000

#: Longer errors are cut in all views, and longer lines of programs.
MAX_ERROR: Final = 300


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One backward pass.

    Attributes:
        task: Id of its GraphTask.
        parent: The pass from inside which it was called, -1 for none.
        depth: How many passes it is nested in.
        thread: The thread that called it.
        begin_ns: When it began, on the trace's clock.
        end_ns: When it ended; None if the trace does not say.
        status: How it ended.
        error: What it failed with, empty if it did not.
        location: The line of the program that called it, empty if unknown.
    """

    task: int
    parent: int
    depth: int
    thread: int
    begin_ns: int
    end_ns: int | None
    status: Status
    error: str
    location: str

    @property
    def duration_ns(self) -> int | None:
        """How long it took; None if the trace does not say when it ended."""
        return None if self.end_ns is None else self.end_ns - self.begin_ns


class NoSuchPassError(UserError):
    """What was asked for is none of the trace's passes: wrong usage."""

    exit_code = 2


def passes(
    trace: Trace,
    *,
    limit: int | None = MAX_PASSES,
    tasks: Sequence[int] | None = None,
) -> tuple[Pass, ...]:
    """The backward passes of a trace, in the order in which they began.

    Args:
        trace: The trace.
        limit: Of more than so many the first.
        tasks: Only these of them.
    """
    begun = trace.columns["task_begun"].at(slice(limit))
    if tasks is not None:
        begun = begun.at(np.isin(begun.narrow("task"), np.array(tasks, np.int64)))
    completed = _ends(trace, "task_completed")
    failed = _ends(trace, "task_failed")
    errors = _errors(trace)

    def one(
        task: int, parent: int, depth: int, thread: int, begin_ns: int, line: int
    ) -> Pass:
        status: Status = "unfinished"
        if task in failed:
            status = "failed"
        elif task in completed:
            status = "completed"
        return Pass(
            task=task,
            parent=parent,
            depth=depth,
            thread=thread,
            begin_ns=begin_ns,
            end_ns=failed.get(task, completed.get(task)),
            status=status,
            error=errors.get(task, ""),
            location=_line(trace, line),
        )

    names = ("task", "parent", "reentrant_depth", "thread", "t_ns", "location")
    return tuple(map(one, *(begun[name].tolist() for name in names)))


def _line(trace: Trace, place: int) -> str:
    text = trace.strings[place]
    return "" if text == LOST_TEXT else shortened(text, MAX_ERROR)


def select_task(trace: Trace, which: str | int = "last") -> tuple[int, ...]:
    """The GraphTask ids that `which` means.

    Args:
        trace: The trace to look in.
        which: ``"last"`` (the last pass that was not called from inside another, and
            that no other worker had begun), ``"slowest"`` (of those), ``"failed"``
            (each that failed), ``"all"``, or ids: ``"7"``, ``"3-7"``, ``"1,3-7"``.

    Returns:
        At least one id, in the order in which the passes began.

    Raises:
        NoSuchPassError: There are passes, but none that is meant; the text names
            those there are.
        UserError: The trace holds no pass, or none that failed where those are meant.
    """
    known = trace.tasks
    if not known:
        raise UserError(
            "the trace holds no backward pass: record a program that calls backward()"
        )
    every = passes(trace)
    others = begun_elsewhere(trace)
    outermost = [one for one in every if one.parent < 0 and one.task not in others]
    outermost = outermost or [*every]
    if which == "all":
        return known
    if which == "last":
        return (outermost[-1].task,)
    if which == "slowest":
        return (max(outermost, key=lambda one: one.duration_ns or 0).task,)
    if which == "failed":
        failed = tuple(one.task for one in every if one.status == "failed")
        if not failed:
            raise UserError("no backward pass of the trace failed")
        return failed
    ranges = [_RANGE.fullmatch(part.strip()) for part in str(which).split(",")]
    spans = [(int(one[1]), int(one[2] or one[1])) for one in ranges if one]
    found = tuple(
        task for task in known if any(low <= task <= high for low, high in spans)
    )
    if not found or None in ranges:
        raise NoSuchPassError(
            f"the trace holds no backward pass {which!r}; there "
            f"{'is' if len(known) == 1 else 'are'} {_listing(known)}; 'last', "
            f"'slowest', 'failed', 'all' and ranges as 3-7 work too"
        )
    return found


def with_descendants(trace: Trace, tasks: Sequence[int]) -> tuple[int, ...]:
    """`tasks` and every pass called from inside them, in the order of their begin.

    Of a distributed pass also what other workers did for it.
    """
    wanted = companions(messages(trace), tasks)
    begun = trace.columns["task_begun"].at(slice(MAX_PASSES))
    called = begun.at(begun.narrow("parent") >= 0)
    for task, parent in called.rows("task", "parent"):
        if parent in wanted:  # a pass begins after the one it is called from
            wanted.add(task)
    every = trace.columns["task_begun"]["task"]
    return tuple(every[np.isin(every, np.array([*wanted], np.int64))].tolist())


def _ends(trace: Trace, kind: str) -> Mapping[int, int]:
    columns = trace.columns[kind]
    return dict(zip(columns["task"].tolist(), columns["t_ns"].tolist(), strict=True))


def _errors(trace: Trace) -> Mapping[int, str]:
    columns = trace.columns["task_failed"]
    indices = columns["error"].tolist()
    texts = {
        index: shortened(trace.strings[index], MAX_ERROR) for index in set(indices)
    }
    return {
        task: texts[index]
        for task, index in zip(columns["task"].tolist(), indices, strict=True)
    }


def _listing(tasks: Sequence[int]) -> str:
    if len(tasks) <= LISTED:
        return ", ".join(map(str, tasks))
    return f"{len(tasks):,}, from {min(tasks)} to {max(tasks)}"
