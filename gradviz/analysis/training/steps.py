"""Steps of a training: which passes belong together, and where each step's time went.

Note [What a step is]
~~~~~~~~~~~~~~~~~~~~~
Where the program says so, by `step_begun`, a step goes on until the next one begins.
The last one, and one after which steps were not recorded, ends with what it did last.

Else steps are found by the passes that a thread called, those nested in others aside.
If their shapes repeat after every so many passes, as those of a generator and of a
discriminator do by turns, so many are one step; else each pass is a step, as it is of
sequences whose lengths differ, and of several passes that accumulate gradients. Passes
inside of one call of an optimizer are never apart. A step goes on until its last pass
has ended, or the last call of an optimizer that ended before the next step's first
pass; what follows, loading data and the forward, is the next step's. So steps leave no
gaps.

A step has one thread: what others did meanwhile is not looked at.

Note [Which part]
~~~~~~~~~~~~~~~~~
What a step took is told in four parts that sum up to it. Backward is the time in which
a backward pass went on; forward, of the rest, that in which a module was called;
optimizer, of the rest, that in which an optimizer was. So a forward that a checkpoint
runs again counts as backward, and the closure of an optimizer as forward and backward.
Operations outside of any module are among the others.

Note [Odd steps]
~~~~~~~~~~~~~~~~
A step is slow, or fast, if its duration differs from the median by more than five times
the median deviation, and by more than a tenth of the median. The median deviation is
the median of how far all are from the median; unlike a standard deviation it does not
grow with the very steps that are looked for. Fewer than five steps have no odd ones
among them.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from gradviz.analysis.tables.calls import (
    MAX_THREADS,
    Calls,
    calls,
    covered,
    last_moment,
)
from gradviz.analysis.tables.outcomes import outcomes
from gradviz.analysis.tables.passes import MAX_PASSES, Pass, Status, passes
from gradviz.analysis.training.pass_shapes import shapes
from gradviz.errors import UserError
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column

#: A step that is found by shapes has no more passes, and so many of them come again.
MAX_PATTERN: Final = 16
REPEATED: Final = 0.8

#: See Note [Odd steps].
FEW: Final = 5
DEVIATIONS: Final = 5
LEAST_PART: Final = 10

#: Reason why a step is odd.
Oddness: TypeAlias = Literal["slow", "fast", "failed", "unfinished"]


class NoSuchStepError(UserError):
    """Error for a step that is not in the trace: wrong usage."""

    exit_code = 2


class StepParts(msgspec.Struct, frozen=True, kw_only=True):
    """Duration of a step, and its parts; see Note [Which part]."""

    duration_ns: int
    forward_ns: int
    backward_ns: int
    optimizer_ns: int
    other_ns: int


class TrainingStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a training.

    Attributes:
        number: Number that the program gives it, or its place on its thread, from 0.
        thread: The thread that made it.
        begin_ns: Time of its start, on the trace's clock.
        parts: Its duration and its parts.
        tasks: The passes that it called, those inside of others left out.
        status: Failed if one of these has, unfinished if the trace does not have all.
    """

    number: int
    thread: int
    begin_ns: int
    parts: StepParts
    tasks: tuple[int, ...]
    status: Status

    @property
    def end_ns(self) -> int:
        """End, on the trace's clock."""
        return self.begin_ns + self.parts.duration_ns


class OddStep(msgspec.Struct, frozen=True):
    """A step that is not like the others: its place in `Steps.steps`, and why."""

    place: int
    why: Oddness


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of a trace.

    Attributes:
        found_by: Source of their starts: the program, or the shapes of passes.
        steps: All, thread by thread, in the order of their start.
        median: Usual times: the median of each part over the completed ones; None if
            there is none.
        slowest: Index in `steps` of the completed one that took longest, -1 for none.
        odd: Those that are not like the others; see Note [Odd steps].
        num_outside: Passes that belong to none of them.
        num_unseen: Passes beyond the first `MAX_PASSES`, which alone are looked at.
    """

    found_by: Literal["step_begun", "shape"]
    steps: tuple[TrainingStep, ...]
    median: StepParts | None
    slowest: int
    odd: tuple[OddStep, ...]
    num_outside: int
    num_unseen: int = 0


def find_steps(trace: Trace) -> Steps:
    """Return the steps of a trace; see Note [What a step is]."""
    every = passes(trace, limit=MAX_PASSES)
    num_unseen = len(outcomes(trace).task) - len(every)
    outer = [one for one in every if one.parent < 0]
    told = trace.columns["step_begun"]
    forward, optimizer = calls(trace, "forward"), calls(trace, "optimizer")
    by_thread: dict[int, list[Pass]] = {
        thread: [] for thread in told["thread"].tolist()
    }
    for one in outer:
        if not told.num_rows or one.thread in by_thread:
            by_thread.setdefault(one.thread, []).append(one)
    # One pass alone is like no other one.
    keys = {} if told.num_rows or len(outer) == 1 else _keys(trace, outer)
    found: list[TrainingStep] = []
    for thread in sorted(by_thread)[:MAX_THREADS]:
        own = _ThreadWork(
            thread,
            by_thread[thread],
            forward.at(np.flatnonzero(forward.thread == thread)),
            optimizer.at(np.flatnonzero(optimizer.thread == thread)),
            last_moment(trace),
        )
        if told.num_rows:
            mine = told.at(told.narrow("thread") == thread)
            windows = _told_windows(own, mine["step"].tolist(), mine["t_ns"].tolist())
        else:
            windows = _found_windows(own, keys, _first_moment(trace, thread))
        if num_unseen:  # a step may have had passes that nobody looked at
            windows = [one for one in windows if one.end_ns <= every[-1].begin_ns]
        found += _steps(
            own, windows, trace.losses.closed and not trace.losses.truncated
        )
    return _with_usual_times(
        found,
        found_by="step_begun" if told.num_rows else "shape",
        num_outside=len(outer) - sum(len(one.tasks) for one in found),
        num_unseen=num_unseen,
    )


def select_step(trace: Trace, which: str) -> TrainingStep:
    """The step that `which` means: its number, ``last`` or ``slowest``.

    Raises:
        NoSuchStepError: There are steps, but none that is meant.
        UserError: The trace has no steps.
    """
    found = find_steps(trace)
    if not found.steps:
        raise UserError(
            "the trace holds no step: record a program that calls backward()"
        )
    if which in {"last", "slowest"} and found.num_unseen:
        raise UserError(
            f"the {which} step is not known: {_unseen(found)}; name a step by its "
            f"number, or a pass with --pass"
        )
    if which == "slowest":
        if found.slowest >= 0:
            return found.steps[found.slowest]
        return max(found.steps, key=lambda one: one.parts.duration_ns)
    if which == "last":
        return max(found.steps, key=lambda one: one.begin_ns)
    meant = [one for one in found.steps if str(one.number) == which.strip()]
    if not meant:
        numbers = sorted({one.number for one in found.steps})
        raise NoSuchStepError(
            f"the trace holds no step {which!r}; there are {len(numbers):,}, from "
            f"{numbers[0]} to {numbers[-1]}; "
            + (_unseen(found) or "'last' and 'slowest' work too")
        )
    return meant[0]


def _unseen(found: Steps) -> str:
    """Say which passes were not looked at; empty if all were."""
    if not found.num_unseen:
        return ""
    return (
        f"steps are looked for in the first {MAX_PASSES:,} passes, and "
        f"{found.num_unseen:,} more follow"
    )


def select_steps(trace: Trace, which: str) -> tuple[TrainingStep, ...]:
    """The steps that `which` means: those of `select_step`, ``N-M``, or ``all``.

    Raises:
        NoSuchStepError: There are steps, but none that is meant.
        UserError: The trace has no steps.
    """
    if which == "all":  # of none the sentence about it is that of any other word
        return find_steps(trace).steps or (select_step(trace, which),)
    low, dash, high = which.partition("-")
    if not (dash and low.strip().isdecimal() and high.strip().isdecimal()):
        return (select_step(trace, which),)
    meant = tuple(
        one for one in find_steps(trace).steps if int(low) <= one.number <= int(high)
    )
    return meant or (select_step(trace, which),)  # which says what there is


class _ThreadWork(NamedTuple):
    """Work of one thread: its passes, its calls; and the end of the trace."""

    number: int
    passes: Sequence[Pass]
    forward: Calls
    optimizer: Calls
    last_ns: int

    def end_of(self, one: Pass) -> int:
        return self.last_ns if one.end_ns is None else one.end_ns


class _Window(NamedTuple):
    """Period of a step."""

    number: int
    begin_ns: int
    end_ns: int


def _keys(trace: Trace, outer: Sequence[Pass]) -> dict[int, bytes]:
    """The shape of each pass; those in which nothing ran have none."""
    found = shapes(trace, [one.task for one in outer])
    return dict(zip(found.tasks.tolist(), found.keys, strict=True))


def _told_windows(
    own: _ThreadWork, numbers: Sequence[int], begins: Sequence[int]
) -> list[_Window]:
    did = np.concatenate(
        (
            np.array([own.end_of(one) for one in own.passes], np.int64),
            own.forward.end_ns,
            own.optimizer.end_ns,
        )
    )
    did.sort()
    windows = []
    following = [*zip(numbers, begins, strict=True), (None, own.last_ns + 1)]
    for (number, begin), (next_number, next_begin) in itertools.pairwise(following):
        assert number is not None
        end = next_begin
        if next_number != number + 1:
            last = int(np.searchsorted(did, next_begin)) - 1
            end = max(int(did[last]) if last >= 0 else begin, begin)
        windows.append(_Window(number, begin, end))
    return windows


def _found_windows(
    own: _ThreadWork, keys: dict[int, bytes], first_ns: int
) -> list[_Window]:
    optimizers = own.optimizer
    around = np.searchsorted(
        optimizers.begin_ns, [one.begin_ns for one in own.passes], side="right"
    )
    shapes_of = [keys.get(one.task, b"") for one in own.passes]
    pattern = _pattern(shapes_of)
    groups: list[list[Pass]] = []
    size = 0
    inside = -1
    for one, key, number in zip(
        own.passes, shapes_of, (around - 1).tolist(), strict=True
    ):
        is_inside = number >= 0 and optimizers.end_ns[number] >= one.begin_ns
        # One that is out of place begins a step if that is what steps begin with.
        is_next = size < len(pattern) and (key == pattern[size] or key != pattern[0])
        if groups and (is_next or (is_inside and number == inside)):
            groups[-1].append(one)
        else:
            groups.append([one])
            size = 0
        size += 1
        inside = number if is_inside else -1
    ends = np.sort(optimizers.end_ns)
    windows = []
    begin = first_ns
    for number, group in enumerate(groups):
        end = max(map(own.end_of, group))
        is_last = number == len(groups) - 1
        until = own.last_ns if is_last else groups[number + 1][0].begin_ns
        last = int(np.searchsorted(ends, until, side="right")) - 1
        end = max(end, int(ends[last]) if last >= 0 else end, begin)
        windows.append(_Window(number, begin, end))
        begin = end
    return windows


def _pattern(keys: Sequence[bytes]) -> Sequence[bytes]:
    """Return the pass shapes of one step, at least one; see Note [What a step is]."""
    numbers: dict[bytes, int] = {}
    shape = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    for size in range(1, min(MAX_PATTERN, len(keys) // 2) + 1):
        is_again = shape[:-size] == shape[size:]
        if is_again.mean() >= REPEATED:
            begin = int(is_again.argmax())
            return keys[begin : begin + size]
    return keys[:1]


def _first_moment(trace: Trace, thread: int) -> int:
    """Return the time of a thread's first event that belongs to a training."""
    kinds = ("node_created", "forward_begun", "optimizer_begun", "task_begun")
    moments = []
    for kind in kinds:
        table = trace.columns[kind]
        mine = np.flatnonzero(table.narrow("thread") == thread)
        if len(mine):
            moments.append(int(table.narrow("t_ns")[mine[0]]))
    return min(moments, default=0)


def _steps(
    own: _ThreadWork, windows: Sequence[_Window], is_closed: bool
) -> list[TrainingStep]:
    if not windows:
        return []
    begins = np.array([one.begin_ns for one in windows], np.int64)
    ends = np.array([one.end_ns for one in windows], np.int64)
    backward = (
        np.array([one.begin_ns for one in own.passes], np.int64),
        np.array([own.end_of(one) for one in own.passes], np.int64),
    )
    forward = (own.forward.begin_ns, own.forward.end_ns)
    optimizer = (own.optimizer.begin_ns, own.optimizer.end_ns)
    in_backward = covered([backward], begins, ends)
    in_forward = covered([backward, forward], begins, ends)
    in_any = covered([backward, forward, optimizer], begins, ends)
    columns = np.stack(
        (
            ends - begins,
            in_forward - in_backward,
            in_backward,
            in_any - in_forward,
            ends - begins - in_any,
        ),
        axis=1,
    )
    place = np.searchsorted(begins, backward[0], side="right") - 1
    members: list[list[Pass]] = [[] for _ in windows]
    for one, number in zip(own.passes, place.tolist(), strict=True):
        if number >= 0 and one.begin_ns <= windows[number].end_ns:
            members[number].append(one)
    open_calls = np.concatenate(
        [one.begin_ns[~one.has_ended] for one in (own.forward, own.optimizer)]
    )
    has_open = set((np.searchsorted(begins, open_calls, side="right") - 1).tolist())
    if not is_closed:
        has_open.add(len(windows) - 1)
    return [
        TrainingStep(
            number=window.number,
            thread=own.number,
            begin_ns=window.begin_ns,
            parts=StepParts(
                duration_ns=parts[0],
                forward_ns=parts[1],
                backward_ns=parts[2],
                optimizer_ns=parts[3],
                other_ns=parts[4],
            ),
            tasks=tuple(one.task for one in group),
            status=_status(group, number in has_open),
        )
        for number, (window, parts, group) in enumerate(
            zip(windows, columns.tolist(), members, strict=True)
        )
    ]


def _status(group: Iterable[Pass], has_open: bool) -> Status:
    statuses = {one.status for one in group}
    if "failed" in statuses:
        return "failed"
    return "unfinished" if has_open or "unfinished" in statuses else "completed"


def _with_usual_times(
    found: Sequence[TrainingStep],
    *,
    found_by: Literal["step_begun", "shape"],
    num_outside: int,
    num_unseen: int,
) -> Steps:
    done = [place for place, one in enumerate(found) if one.status == "completed"]
    took = np.array([found[place].parts.duration_ns for place in done], np.int64)
    odd = [
        OddStep(place, one.status)
        for place, one in enumerate(found)
        if one.status != "completed"
    ]
    if len(done) >= FEW:
        usual = median_of(took)
        far = np.abs(took - usual)
        least = np.maximum(DEVIATIONS * median_of(far), usual / LEAST_PART)
        odd += [
            OddStep(done[place], "slow" if took[place] > usual else "fast")
            for place in np.flatnonzero(far > least).tolist()
        ]
    median = None
    if done:
        names = StepParts.__struct_fields__
        median = StepParts(
            **{
                name: median_of(
                    np.array([getattr(found[place].parts, name) for place in done])
                )
                for name in names
            }
        )
    return Steps(
        found_by=found_by,
        steps=tuple(found),
        median=median,
        slowest=done[int(took.argmax())] if done else -1,
        odd=tuple(sorted(odd, key=lambda one: one.place)),
        num_outside=num_outside,
        num_unseen=num_unseen,
    )


def median_of(numbers: Column) -> int:
    """The middle one, or the mean of the middle two rounded down."""
    ordered = np.sort(numbers)
    middle = ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]
    return int(middle) // 2
