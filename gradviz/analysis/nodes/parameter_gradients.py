"""Parameters of a step: which got a gradient, how, and why the others did not."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from gradviz.analysis.nodes.missing_gradients import (
    ForwardCalls,
    MissingGradient,
    forward_calls,
)
from gradviz.analysis.nodes.parameters import (
    KnownParameter,
    every_parameter,
    names_in,
    passes_that_reached,
)
from gradviz.analysis.tables.executions import MAX_NAMES, MAX_TEXT, NodeNumbers
from gradviz.analysis.tables.gradient_norms import gradient_norms
from gradviz.analysis.tables.worker_parts import with_parts, worker_parts
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened

SCHEMA: Final = "gradviz.parameters"
VERSION: Final = 1

#: The name of the nodes that accumulate gradients of leaves.
LEAF: Final = "AccumulateGrad"

#: No more parameters are looked at.
MAX_PARAMETERS: Final = 20_000


class ParameterUse(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter on one rank, or on several where it fared alike.

    Attributes:
        names: Its names; none of a leaf that belongs to no module that is known.
        ranks: The ranks, or the places of processes that have none; empty if there is
            only one process.
        shape: Its shape; None if unknown.
        dtype: Its dtype, None if unknown.
        optimizers: The optimizers that hold it; None if none made a step.
        has_gradient: True if a chosen pass brought it a gradient.
        num_uses: Number of gradients that came to it, one for each use in the graph.
        num_accumulated: Number of times that a gradient went into its ``.grad``.
        task: The last chosen pass that brought it one, or did not.
        node: Its AccumulateGrad, on the first of the ranks; None without one.
        number: The number of that node in the pass, as ``gradviz explain`` takes it.
        missing: Reason that it has none; None if it has one.
        num_other_passes: Number of other passes of the trace that reached it.
        gradient_norm: The Euclidean norm of its ``.grad`` after `task`, as `repr`
            writes a float; None if it was not measured, as it is where values were
            checked while the program was recorded.
    """

    names: tuple[str, ...]
    ranks: tuple[int, ...]
    shape: tuple[int, ...] | None
    dtype: str | None
    optimizers: tuple[str, ...] | None
    has_gradient: bool
    num_uses: int
    num_accumulated: int
    task: int
    node: int | None
    number: int | None
    missing: MissingGradient | None
    num_other_passes: int
    gradient_norm: str | None = None


class ParameterGradients(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a step.

    Attributes:
        tasks: The passes that were looked at, of all ranks.
        rows: The parameters, in the order of their models, or some of them.
        num_rows: Number of rows for all parameters.
        num_with_gradient: Number of all rows with a gradient.
        differing: Names of parameters that have a gradient on some ranks only.
        strangers: Tensors that an optimizer holds and no module that is known has: the
            optimizer and the shape of each.
        num_left_out: Parameters beyond the first `MAX_PARAMETERS`.
    """

    tasks: tuple[int, ...]
    rows: tuple[ParameterUse, ...]
    num_rows: int
    num_with_gradient: int
    differing: tuple[str, ...]
    strangers: tuple[tuple[str, str], ...]
    num_left_out: int


class HeldParameters(NamedTuple):
    """The parameters that optimizers hold.

    Attributes:
        by_name: Name of a parameter -> the optimizers that hold it.
        strangers: Tensors of no module that is known: the optimizer and the shape.
    """

    by_name: Mapping[str, tuple[str, ...]]
    strangers: tuple[tuple[str, str], ...]

    def of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the optimizers that hold a parameter."""
        held = (one for name in names for one in self.by_name.get(name, ()))
        return tuple(dict.fromkeys(held))


class _Lookups(NamedTuple):
    """Facts that the rows of all parameters share."""

    calls: ForwardCalls
    held: HeldParameters | None
    numbers: NodeNumbers


class _RankStep(NamedTuple):
    """The chosen passes of one process.

    Attributes:
        rank: Its number, -1 if there is only one process.
        tasks: The passes that were called for, then those inside of them.
        last: The last of those that were called for.
        uses: Number of gradients that came to each node.
        accumulated: Number of gradients that went into ``.grad`` there.
        captured: Nodes whose gradient became a result.
        ran: The last pass that had to do with each node.
        norms: The norm of the ``.grad`` of each node's leaf, as it was measured last.
    """

    rank: int
    tasks: tuple[int, ...]
    last: int
    uses: Counter[int]
    accumulated: Counter[int]
    captured: frozenset[int]
    ran: Mapping[int, int]
    norms: Mapping[int, str]

    def has_gradient(self, node: int) -> bool:
        """Return whether a gradient was accumulated at a node, or captured."""
        return self.accumulated[node] > 0 or node in self.captured


def find_parameter_gradients(trace: Trace, tasks: Sequence[int]) -> ParameterGradients:
    """Return the outcome for all parameters in some passes.

    Args:
        trace: The trace.
        tasks: The passes. Those in the same places on other ranks count too.
    """
    calls, held, every = (
        forward_calls(trace),
        held_parameters(trace),
        every_parameter(trace),
    )
    steps = [_step(trace, *one) for one in _by_rank(trace, calls, tasks)]
    numbers = NodeNumbers(trace, [task for step in steps for task in step.tasks])
    lookups = _Lookups(calls, held, numbers)
    rows: list[ParameterUse] = []
    for one in every[:MAX_PARAMETERS]:
        rows += _united([_row(trace, lookups, step, one) for step in steps])
    unnamed = [row for step in steps for row in _unnamed(trace, lookups, step)]
    has = {(one.names, one.has_gradient) for one in rows}
    differing = [names[0] for names, yes in has if yes and (names, False) in has]
    rows += unnamed
    return ParameterGradients(
        tasks=tuple(task for step in steps for task in step.tasks),
        rows=tuple(rows),
        num_rows=len(rows),
        num_with_gradient=sum(one.has_gradient for one in rows),
        differing=tuple(sorted(differing)),
        strangers=held.strangers if held else (),
        num_left_out=max(0, len(every) - MAX_PARAMETERS),
    )


def document_of(found: ParameterGradients) -> dict[str, Any]:
    """Return the output of ``gradviz show parameters --json``."""
    return {"schema": SCHEMA, "version": VERSION, **msgspec.to_builtins(found)}


def _by_rank(
    trace: Trace, calls: ForwardCalls, tasks: Sequence[int]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield each rank with its passes among those that were chosen."""
    found: dict[int, list[int]] = defaultdict(list)
    for task in tasks:
        if len(trace.processes) == 1 or worker_parts(trace):
            found[0] += sorted(with_parts(trace, [task]))
            continue
        for process in range(len(trace.processes)):
            own = calls.pass_on(process, task)
            if own is not None:
                found[process].append(own)
    for process, some in sorted(found.items()):
        rank = trace.processes[process].rank if len(found) > 1 else -1
        own = rank if rank >= 0 else process
        yield (own if len(found) > 1 else -1), tuple(dict.fromkeys(some))


def _step(trace: Trace, rank: int, tasks: tuple[int, ...]) -> _RankStep:
    """Return the outcome of passes, nested ones included."""
    begun = trace.columns["task_begun"]
    parents: dict[int, int] = dict(begun.rows("task", "parent"))  # type: ignore[arg-type]
    inside = set(tasks)
    for task in trace.tasks:  # in the order in which they began
        if parents.get(task) in inside:
            inside.add(task)
    some = [*tasks, *sorted(inside.difference(tasks))]
    uses, accumulated, captured = (
        trace.columns[kind].having("task", some)
        for kind in ("gradient_buffered", "gradient_accumulated", "capture_taken")
    )
    started = trace.columns["node_started"].having("task", some)
    ran = {
        node: task
        for table in (started, captured)
        for node, task in table.rows("node", "task")
    }
    return _RankStep(
        rank,
        tuple(some),
        tasks[-1],
        Counter(uses.narrow("node").tolist()),
        Counter(accumulated.narrow("node").tolist()),
        frozenset(captured.narrow("node").tolist()),
        ran,
        gradient_norms(trace, some),
    )


def _row(
    trace: Trace,
    found: "_Lookups",
    step: _RankStep,
    one: KnownParameter,
) -> ParameterUse:
    """Return a parameter on one rank."""
    mine = [node for node in one.nodes if node in step.ran]
    gave = [node for node in mine if step.has_gradient(node)]
    node = next(iter(gave or mine), None)
    task = step.last if node is None else step.ran[node]
    missing, others = None, 0
    if not gave:
        of_calls = found.calls
        missing = (
            of_calls.of_reached(task)
            if mine
            else of_calls.why(task, one.names, one.definition)
        )
        others = len(set(passes_that_reached(trace, one)).difference(step.tasks))
    definition = one.definition
    shape, dtype = _kind_of(trace, node)
    if definition is not None:
        shape, dtype = definition.shape, shortened(definition.dtype, MAX_TEXT)
    return ParameterUse(
        names=one.names[:MAX_NAMES],
        ranks=() if step.rank < 0 else (step.rank,),
        shape=shape,
        dtype=dtype,
        optimizers=None if found.held is None else found.held.of(one.names),
        has_gradient=bool(gave),
        num_uses=sum(step.uses[each] for each in mine),
        num_accumulated=sum(step.accumulated[each] for each in mine),
        task=task,
        node=node,
        number=None if node is None else found.numbers.of(task, node),
        missing=missing,
        num_other_passes=others,
        gradient_norm=None if node is None else step.norms.get(node),
    )


def _unnamed(
    trace: Trace, found: "_Lookups", step: _RankStep
) -> Iterator[ParameterUse]:
    """Yield the leaves that belong to no module that is known."""
    leaves = sorted({*step.accumulated, *step.captured})
    texts, which = trace.nodes.names(np.array(leaves, np.int64), "parameter")
    names, kinds = trace.nodes.names(np.array(leaves, np.int64))
    for node, place, kind in zip(leaves, which.tolist(), kinds.tolist(), strict=True):
        if names_in(texts[place]) or names[kind] != LEAF:
            continue
        shape, dtype = _kind_of(trace, node)
        yield ParameterUse(
            names=(),
            ranks=() if step.rank < 0 else (step.rank,),
            shape=shape,
            dtype=dtype,
            optimizers=None,
            has_gradient=True,
            num_uses=step.uses[node],
            num_accumulated=step.accumulated[node],
            task=step.ran.get(node, step.last),
            node=node,
            number=found.numbers.of(step.ran.get(node, step.last), node),
            missing=None,
            num_other_passes=0,
            gradient_norm=step.norms.get(node),
        )


def _united(rows: Sequence[ParameterUse]) -> Iterator[ParameterUse]:
    """Yield a parameter once for all ranks on which it fared alike."""
    alike: dict[object, list[ParameterUse]] = defaultdict(list)
    for row in rows:
        why = None if row.missing is None else row.missing.reason
        alike[row.has_gradient, row.num_uses, row.num_accumulated, why].append(row)
    for some in alike.values():
        ranks = tuple(rank for row in some for rank in row.ranks)
        yield msgspec.structs.replace(some[0], ranks=ranks)


def _kind_of(
    trace: Trace, node: int | None
) -> tuple[tuple[int, ...] | None, str | None]:
    """Return the shape and dtype of a leaf, as far as its node has them."""
    known = None if node is None else trace.nodes.get(node)
    about = known.inputs[0] if known is not None and known.inputs else None
    if about is None:
        return None, None
    return about.shape, shortened(about.dtype, MAX_TEXT)


def held_parameters(trace: Trace) -> HeldParameters | None:
    """Return the parameters held by optimizers; None if none has made a step."""
    table, strings = trace.columns["parameter_held"], trace.strings
    if not table.num_rows:
        return None
    by_name: dict[str, tuple[str, ...]] = {}
    strangers: list[tuple[str, str]] = []
    for optimizer, name, shape in table.rows("optimizer", "parameter", "shape"):
        called = shortened(strings[optimizer], MAX_TEXT)
        if strings[name]:
            known = by_name.get(strings[name], ())
            by_name[strings[name]] = tuple(dict.fromkeys((*known, called)))
        elif len(strangers) < MAX_PARAMETERS:
            strangers.append((called, shortened(strings[shape], MAX_TEXT)))
    return HeldParameters(by_name, tuple(strangers))
