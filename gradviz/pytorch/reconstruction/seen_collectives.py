"""Collectives that ran during backward passes, and the gradients they reduce.

PyTorch's profiler tells when a collective ran, and on which thread. Its process group,
bucket and node are inferred: a reducer launches the all-reduce of a bucket as soon as
the last gradient of it, and of the buckets before it, has been accumulated.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gradviz.pytorch.nodes.data_parallel import BucketPlan, ProcessGroup
from gradviz.pytorch.nodes.seen_node import SeenNode
from gradviz.pytorch.reconstruction.inferred_rows import FlatRows
from gradviz.pytorch.reconstruction.seen_queues import ReplayedPass, SeenThread
from gradviz.pytorch.reconstruction.tasks import ends_of_functions
from gradviz.trace.events import CollectiveBegan, CollectiveEnded, GradientBucketed
from gradviz.trace.reporting.ids import next_collective_id

#: Backends that run a collective on a thread of this machine, so that the times of
#: their records are those of the collective itself.
_BACKENDS: Final = ("gloo:", "mpi:")
_ALL_REDUCE: Final = ":all_reduce"

#: The profiler's time of a launch may be wrong by so much.
_TOLERANCE_NS: Final = 20_000


class SeenCollective(NamedTuple):
    """A collective that was seen to run, on the profiler's clock.

    Attributes:
        begin_ns: Time at which a thread of the backend began it.
        end_ns: Time of its end on this rank.
        name: Of the backend and the operation.
        thread: The operating system's number of that thread.
    """

    begin_ns: int
    end_ns: int
    name: str
    thread: int


class _Ran(NamedTuple):
    """A node that accumulated a gradient, and when: before the hooks after that."""

    end_ns: int
    replay: ReplayedPass
    thread: SeenThread
    node: SeenNode


class _Launch(NamedTuple):
    """A collective that a reducer must have launched; without bucket one of usage."""

    at_ns: int
    plan: BucketPlan
    bucket: int
    last: _Ran | None
    gradients: Sequence[_Ran]
    size_bytes: int


class _Place(NamedTuple):
    """The pass, node and launch of a collective."""

    task: int
    node: int
    launch: _Launch | None


def collectives_of(events: Iterable[Any]) -> list[SeenCollective]:
    """Return the collectives among records of the profiler, in the order they began."""
    return sorted(
        SeenCollective(
            one.start_ns(), one.end_ns(), one.name(), one.device_resource_id()
        )
        for one in events
        if one.name().startswith(_BACKENDS) and one.end_ns() >= one.start_ns()
    )


def tell_collectives(
    replays: Sequence[ReplayedPass],
    seen: Sequence[SeenCollective],
    offset_ns: int,
    plans: Sequence[BucketPlan],
    everybody: ProcessGroup,
) -> None:
    """Tell the listeners of passes which collectives ran meanwhile.

    Args:
        replays: The passes. What is told of their nodes is added to their rows.
        seen: Of the backend's threads, in the order in which they began.
        offset_ns: From the clock of `seen` to that of events.
        plans: The buckets of all data-parallel models, as far as they are known.
        everybody: The place of this process among all ranks.
    """
    moved = [
        one._replace(begin_ns=one.begin_ns + offset_ns, end_ns=one.end_ns + offset_ns)
        for one in seen
    ]
    outermost = [one for one in replays if one.about.parent is None]
    for replay in outermost:
        about = replay.about
        own = [
            one for one in moved if about.called_ns <= one.begin_ns < about.returned_ns
        ]
        if not own:
            continue
        family = [one for one in replays if _outermost(one) is about]
        places = _places(replay, family, own, plans, is_alone=len(outermost) == 1)
        for thread, rows in _rows(own, places, everybody).items():
            about.listener.rows_reported(thread, own[0].name.split(":")[0], rows)
        moved = [one for one in moved if one not in own]


def _outermost(replay: ReplayedPass) -> object:
    about = replay.about
    while about.parent is not None:
        about = about.parent
    return about


def _places(
    outermost: ReplayedPass,
    family: Sequence[ReplayedPass],
    own: Sequence[SeenCollective],
    plans: Sequence[BucketPlan],
    *,
    is_alone: bool,
) -> list[_Place]:
    """Return the facts on each collective of a pass and its nested ones."""
    ran = _gradients(family)
    launches = sorted(
        (one for plan in plans for one in _launches(plan, ran)),
        key=lambda one: one.at_ns,
    )
    reduces = [index for index, one in enumerate(own) if one.name.endswith(_ALL_REDUCE)]
    matched: dict[int, _Launch] = {}
    is_each_known = is_alone and len(reduces) == len(launches)
    pairs = list(zip(reduces, launches, strict=False))
    if is_each_known and all(
        own[index].begin_ns >= one.at_ns - _TOLERANCE_NS for index, one in pairs
    ):
        matched = dict(pairs)
        for one in launches:
            _note_gradients(one)
    started = _started(family)
    return [
        _place(matched.get(index), one, outermost, started)
        for index, one in enumerate(own)
    ]


def _place(
    launch: _Launch | None,
    collective: SeenCollective,
    outermost: ReplayedPass,
    started: Sequence[tuple[int, int, int]],
) -> _Place:
    """Return which node launched a collective: unless known, the last to begin."""
    if launch is not None:
        if launch.last is None:
            return _Place(outermost.about.task, -1, launch)
        last = launch.last
        return _Place(last.replay.about.task, last.node.id, launch)
    before = [one for one in started if one[0] <= collective.begin_ns]
    if not before:
        return _Place(outermost.about.task, -1, None)
    _, task, node = max(before)
    return _Place(task, node, None)


def _gradients(family: Iterable[ReplayedPass]) -> dict[int, _Ran]:
    """Return the nodes that accumulated gradients, by the ids of parameters."""
    found = {}
    for replay in family:
        nodes = {node.id: node for node in replay.ran if node.variable is not None}
        for thread, rows in replay.rows.items():
            ends = ends_of_functions(replay, rows)
            numbers = iter(rows.completed)
            for end_ns, _, node, _ in zip(*[numbers] * 4, strict=True):
                one = nodes.get(node)
                if one is not None and one.variable is not None:
                    ran = _Ran(ends.get(node, int(end_ns)), replay, thread, one)
                    found[id(one.variable())] = ran
    return found


def _started(family: Iterable[ReplayedPass]) -> list[tuple[int, int, int]]:
    """Return when nodes began, their pass and their id."""
    return [
        one
        for replay in family
        for rows in replay.rows.values()
        for one in zip(*[iter(rows.started)] * 3, strict=True)
    ]


def _launches(plan: BucketPlan, ran: Mapping[int, _Ran]) -> list[_Launch]:
    """Return a reducer's launches, if gradients of its model were accumulated."""
    found: list[_Launch] = []
    latest: _Ran | None = None
    for number, bucket in enumerate(plan.buckets):
        gradients = [ran[id(one)] for one in bucket if id(one) in ran]
        gradients.sort(key=lambda one: one.end_ns)
        ends = [one for one in (latest, *gradients) if one is not None]
        latest = max(ends, key=lambda one: one.end_ns, default=None)
        at_ns = latest.end_ns if latest is not None else 0
        size = sum(one.numel() * one.element_size() for one in bucket)
        size = size if plan.sends_gradients else -1
        found.append(_Launch(at_ns, plan, number, latest, gradients, size))
    if latest is None:
        return []
    if plan.reduces_usage:
        found.append(_Launch(latest.end_ns, plan, -1, latest, (), -1))
    return found


def _note_gradients(launch: _Launch) -> None:
    """Report the gradients of a bucket in their passes."""
    for one in launch.gradients:
        variable = None if one.node.variable is None else one.node.variable()
        size = -1 if variable is None else variable.numel() * variable.element_size()
        rows = one.replay.rows_of(one.thread).inferred(GradientBucketed)
        task, node = one.replay.about.task, one.node.id
        rows.extend((one.end_ns, task, node, launch.plan.model, launch.bucket, size))


def _rows(
    own: Iterable[SeenCollective], places: Iterable[_Place], everybody: ProcessGroup
) -> Mapping[int, Mapping[Any, FlatRows]]:
    """Return the rows of collectives by the thread that ran them."""
    found: dict[int, dict[Any, FlatRows]] = defaultdict(
        lambda: {CollectiveBegan: [], CollectiveEnded: []}
    )
    for one, (task, node, launch) in zip(own, places, strict=True):
        group, model, size, bucket = everybody, "", -1, -1
        begin_ns = one.begin_ns
        if launch is not None:
            # Nothing runs before its launch, whatever the two clocks say.
            begin_ns = min(max(begin_ns, launch.at_ns), one.end_ns)
            group, model = launch.plan.group, launch.plan.model
            size, bucket = launch.size_bytes, launch.bucket
        number = next_collective_id()
        rows = found[one.thread]
        rows[CollectiveBegan] += begin_ns, task, node, number, one.name
        rows[CollectiveBegan] += group.name, group.rank, group.world_size
        rows[CollectiveBegan] += size, model, bucket
        rows[CollectiveEnded] += one.end_ns, task, node, number
    return found
