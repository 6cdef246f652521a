"""The backward passes of a trace: when each ran, how it ended, which one is meant."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
import numpy as np

from gradviz.analysis.tables.outcomes import FAILED, outcomes
from gradviz.analysis.tables.worker_parts import (
    numbers_of,
    whole_of,
    wholes_of,
    with_parts,
    worker_parts,
)
from gradviz.errors import UserError
from gradviz.trace.format.model import LOST_TEXT, Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Table

Status: TypeAlias = Literal["completed", "failed", "unfinished"]

LISTED: Final = 8

#: Ids are 64-bit numbers; more digits than those have are no id.
_RANGE: Final = re.compile(r"([0-9]{1,19})(?:-([0-9]{1,19}))?")

#: No view tells of more passes than this.
MAX_PASSES: Final = 60_000

#: Longer errors are cut in all views, and longer lines of programs.
MAX_ERROR: Final = 300


class _Run(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a program ran by a call, and its outcome.

    Attributes:
        task: The id of its GraphTask, or of its first.
        parent: The one from inside which it was called, -1 for none.
        depth: Number of runs that it is nested in.
        thread: The thread that called it.
        begin_ns: Start time, on the trace's clock.
        end_ns: End time; None if the trace does not say.
        status: Its outcome.
        error: Error that it failed with, empty if it did not.
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
        """Duration; None if the trace does not say when it ended."""
        return None if self.end_ns is None else self.end_ns - self.begin_ns


class PassPart(_Run, frozen=True, kw_only=True):
    """One worker's part of a backward pass: a GraphTask.

    Of a pass that was not distributed there is one, which is all of it.

    Attributes:
        whole: The number of the pass; see Note [One pass, several workers].
        worker: Worker that ran it; None if the pass was not distributed.
    """

    whole: int
    worker: int | None


class Pass(_Run, frozen=True, kw_only=True):
    """One backward pass, on all workers.

    It begins with the first of its parts and ends with the last. Its number is the id
    of the GraphTask that the program called for.

    Attributes:
        parts: The ids of its parts, that of the pass first.
    """

    parts: tuple[int, ...] = ()


class NoSuchPassError(UserError):
    """Error for a pass that is not in the trace: wrong usage."""

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
        limit: Of more than so many the first; None for no limit.
        tasks: Only these of them; a part means its pass.
    """
    wanted = None if tasks is None else [*with_parts(trace, tasks)]
    begun = _of(trace.columns["task_begun"], wanted)["task"]
    if limit is not None and len(begun) > limit:
        wholes = wholes_of(trace, begun)
        numbers, place = np.unique(wholes, return_index=True)
        first = numbers[np.argsort(place)[:limit]]
        wanted = begun[np.isin(wholes, first)].tolist()
    members: dict[int, list[PassPart]] = {}
    for part in pass_parts(trace, tasks=wanted):
        members.setdefault(part.whole, []).append(part)
    return tuple(_joined(trace, parts) for parts in members.values())


def the_pass(trace: Trace, task: int) -> Pass:
    """The pass that a number means, which may be that of one of its parts."""
    return passes(trace, tasks=[task])[0]


def _joined(trace: Trace, parts: Sequence[PassPart]) -> Pass:
    """A pass of its parts; see Note [One pass, several workers]."""
    root = next(one for one in parts if one.task == one.whole)
    ends = [one.end_ns for one in parts if one.end_ns is not None]
    statuses = [one.status for one in parts]
    status: Status = "completed"
    if "failed" in statuses:
        status = "failed"
    elif "unfinished" in statuses:
        status = "unfinished"
    # A pass that failed does not wait for a worker that is gone.
    has_ended = root.end_ns is not None and status != "unfinished"
    return Pass(
        task=root.task,
        parent=whole_of(trace, root.parent),
        depth=root.depth,
        thread=root.thread,
        begin_ns=min(one.begin_ns for one in parts),
        end_ns=max(ends) if has_ended else None,
        status=status,
        error=root.error or next((one.error for one in parts if one.error), ""),
        location=root.location,
        parts=(root.task, *(one.task for one in parts if one is not root)),
    )


def pass_parts(
    trace: Trace,
    *,
    tasks: Sequence[int] | None = None,
) -> tuple[PassPart, ...]:
    """Per-worker parts of the backward passes, in the order in which they began.

    Args:
        trace: The trace.
        tasks: Only these of them.
    """
    begun = _once(_of(trace.columns["task_begun"], tasks))
    completed = _ends(_of(trace.columns["task_completed"], tasks))
    failures = _of(trace.columns["task_failed"], tasks)
    failed, errors = _ends(failures), _errors(trace, failures)
    parts = worker_parts(trace)

    def one(
        task: int, parent: int, depth: int, thread: int, begin_ns: int, line: int
    ) -> PassPart:
        status: Status = "unfinished"
        if task in failed:
            status = "failed"
        elif task in completed:
            status = "completed"
        return PassPart(
            task=task,
            whole=parts[task].whole if task in parts else task,
            worker=parts[task].worker if task in parts else None,
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
    """The numbers of the passes that `which` means.

    Args:
        trace: The trace to look in.
        which: ``"last"`` (the last pass that was not called from inside another),
            ``"slowest"`` (of those), ``"failed"`` (each that failed), ``"all"``, or
            numbers: ``"7"``, ``"3-7"``, ``"1,3-7"``; that of a part means its pass.

    Returns:
        At least one number, in the order in which the passes began.

    Raises:
        NoSuchPassError: There are passes, but none that is meant; the text names
            those there are.
        UserError: The trace holds no pass, or none that failed where those are meant.
    """
    if not trace.tasks:
        raise UserError(
            "the trace holds no backward pass: record a program that calls backward()"
        )
    known = numbers_of(trace, trace.tasks)
    if which == "all":
        return known
    if which in {"last", "slowest"}:
        every = outcomes(trace)
        outer = np.flatnonzero(every.is_outermost)
        outer = outer if len(outer) else np.arange(len(every.task))
        slowest = every.duration_ns[outer].argmax()
        return (int(every.task[outer[-1 if which == "last" else slowest]]),)
    if which == "failed":
        every = outcomes(trace)
        failed = tuple(every.task[every.status == FAILED].tolist())
        if not failed:
            raise UserError("no backward pass of the trace failed")
        return failed
    ranges = [_RANGE.fullmatch(part.strip()) for part in str(which).split(",")]
    spans = [(int(one[1]), int(one[2] or one[1])) for one in ranges if one]
    meant = {
        whole_of(trace, task)
        for task in trace.tasks
        if any(low <= task <= high for low, high in spans)
    }
    if not meant or None in ranges:
        raise NoSuchPassError(
            f"the trace holds no backward pass {which!r}; there "
            f"{'is' if len(known) == 1 else 'are'} {_listing(known)}; 'last', "
            f"'slowest', 'failed', 'all' and ranges as 3-7 work too"
        )
    return tuple(task for task in known if task in meant)


def with_descendants(trace: Trace, tasks: Sequence[int]) -> tuple[int, ...]:
    """The parts of passes, and of all passes called from inside of these.

    Args:
        trace: The trace.
        tasks: The passes; a part means its pass.

    Returns:
        The ids of GraphTasks, in the order of their start.
    """
    wanted: set[int] = set()
    new = with_parts(trace, tasks)
    begun = trace.columns["task_begun"]
    while not new <= wanted:
        wanted |= new
        called = begun.having("parent", [task for task in new if task >= 0])
        new = with_parts(trace, called["task"].tolist())
    return tuple(begun.having("task", [*wanted])["task"].tolist())


def _of(table: Table, tasks: Sequence[int] | None) -> Table:
    """The rows that belong to some GraphTasks; all of None."""
    if tasks is None:
        return table
    return table.having("task", tasks)


def _once(begun: Table) -> Table:
    """Return the first start of each GraphTask: a damaged trace may have several."""
    tasks, first = np.unique(begun.narrow("task"), return_index=True)
    return begun if len(tasks) == begun.num_rows else begun.at(np.sort(first))


def _ends(table: Table) -> Mapping[int, int]:
    return dict(zip(table["task"].tolist(), table["t_ns"].tolist(), strict=True))


def _errors(trace: Trace, failures: Table) -> Mapping[int, str]:
    indices = failures["error"].tolist()
    texts = {
        index: shortened(trace.strings[index], MAX_ERROR) for index in set(indices)
    }
    return {
        task: texts[index]
        for task, index in zip(failures["task"].tolist(), indices, strict=True)
    }


def _listing(tasks: Sequence[int]) -> str:
    if len(tasks) <= LISTED:
        return ", ".join(map(str, tasks))
    return f"{len(tasks):,}, from {min(tasks)} to {max(tasks)}"
