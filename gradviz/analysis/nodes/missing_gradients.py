"""Reasons why a backward pass brought a parameter no gradient.

Note [Reasons from calls]
~~~~~~~~~~~~~~~~~~~~~~~~~
A pass is recorded with the graph below its roots, so of a parameter that it did not
reach there is no node. But the calls of modules between this pass and the one before it
in the process were recorded, and of each whether its arguments and results required a
gradient. So the search goes from the module of the parameter outwards:

* it was not called: nothing used the parameter, as far as modules tell;
* its result required no gradient although the parameter did: gradients end inside it,
  or were disabled around it;
* its result required one, and that of a module around it did not: they end in between;
* the results of all did: then the pass either has nodes of its module, which did not
  use this parameter, or it did not go through the result.

Each of these is what was seen. The operation that cuts a graph makes no node, so its
line is known only where each function of PyTorch's is heard (``--check-finite``), and
of gradviz's tensors where it is a ``detach`` or the like.
"""

import bisect
import enum
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import msgspec
import numpy as np

from gradviz.analysis.tables.calls import MAX_CALLS
from gradviz.analysis.tables.executions import MAX_TEXT
from gradviz.analysis.tables.spans import NEVER, spans
from gradviz.trace.format.model import ParameterDefinition, Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import different
from gradviz.trace.probe import Tracking

#: Maximum number of calls told that may lie behind the end of a gradient.
MAX_CLUES: Final = 3

#: In the path of a module that is a part of what `torch.compile` has made of one.
COMPILED_PART: Final = "._orig_mod"

_CUT: Final = frozenset({Tracking.INTEGERS, Tracking.UNTRACKED})


class NoGradient(enum.StrEnum):
    """Reason why a parameter has no gradient of a pass."""

    FROZEN = "frozen"
    NOT_ASKED = "not asked"
    MODULE_NOT_CALLED = "module not called"
    COMPILED = "part of a compiled module"
    NO_GRAD = "no_grad"
    CUT_IN_MODULE = "cut in module"
    CUT_AFTER_MODULE = "cut after module"
    NOT_USED = "not used by its module"
    RESULT_NOT_USED = "result not used"
    UNDEFINED = "undefined"
    PASS_FAILED = "pass failed"
    UNKNOWN = "unknown"


class Clue(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was given nothing through which a gradient could leave it.

    Attributes:
        module: The module.
        location: The line that called it; empty if unknown.
        arguments: The arguments, as `Tracking` tells them, in small letters.
    """

    module: str
    location: str
    arguments: str


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """An operation whose result has no gradient, and which was given one.

    Attributes:
        operation: Its name.
        location: The line that called it; empty if unknown.
    """

    operation: str
    location: str


class MissingGradient(msgspec.Struct, frozen=True, kw_only=True):
    """A reason, and where the gradient ended.

    Attributes:
        reason: The reason.
        module: The module that the reason is about; None if it is about none.
        inside: The module around it whose result required no gradient; of a module that
            was not called, the one around it that was.
        location: The line that called the module; empty if unknown.
        num_calls: Number of calls of the module for the pass.
        clues: Calls after that of the module whose arguments required no gradient, the
            first ones: what they were given may have been made of its result.
        cuts: Operations where the gradient may have ended, the first ones. All such
            are known where values were checked; else only some, of gradviz's tensors.
    """

    reason: NoGradient
    module: str | None = None
    inside: str | None = None
    location: str = ""
    num_calls: int = 0
    clues: tuple[Clue, ...] = ()
    cuts: tuple[Cut, ...] = ()


class ModuleCall(NamedTuple):
    """A call of a module, with the part of its arguments and results in a graph."""

    module: str
    thread: int
    begin_ns: int
    end_ns: float
    arguments: Tracking
    results: Tracking
    location: str


class _Forward(NamedTuple):
    """The calls of modules for a pass, in the order in which they began."""

    calls: Sequence[ModuleCall]
    by_module: dict[str, list[int]]
    #: Modules of nodes that the pass has.
    modules: frozenset[str]
    #: Operations that ended gradients before the pass, and when.
    cuts: Sequence[tuple[int, Cut]]
    begin_ns: int

    def cuts_between(self, begin_ns: float, end_ns: float) -> tuple[Cut, ...]:
        """Return the first operations of some time that ended gradients."""
        some = (one for t_ns, one in self.cuts if begin_ns <= t_ns <= end_ns)
        return tuple(islice(dict.fromkeys(some), MAX_CLUES))


class ForwardCalls:
    """The calls of modules of a trace, as evidence about missing gradients.

    Args:
        trace: The trace.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._process_of = {
            thread: place
            for place, process in enumerate(trace.processes)
            for thread in process.threads
        }
        begun = trace.columns["task_begun"]
        self._passes: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._begun: dict[int, tuple[int, int, int]] = {}  # process, begin, outputs
        names = ("task", "thread", "t_ns", "parent", "num_outputs")
        for task, thread, t_ns, parent, num_outputs in begun.rows(*names):
            process = self._process_of.get(thread, 0)
            self._begun[task] = process, t_ns, num_outputs
            if parent < 0:
                self._passes[process].append((t_ns, task))
        self._ends = {
            task: t_ns
            for kind in ("task_completed", "task_failed")
            for task, t_ns in trace.columns[kind].rows("task", "t_ns")
        }
        self._failed = set(trace.columns["task_failed"].narrow("task").tolist())
        self._tables = {process: self._calls(process) for process in self._passes}
        self._known: dict[int, _Forward] = {}
        self._required = self._changes()
        self._cuts = self._cuts_by_process()

    def why(
        self, task: int, names: Sequence[str], definition: ParameterDefinition | None
    ) -> MissingGradient:
        """Return why a pass did not reach a parameter.

        Args:
            task: The pass.
            names: The names of the parameter.
            definition: Its definition, if the trace has one.
        """
        num_outputs = self._begun[task][2]
        if self.is_frozen(task, names, definition):
            return MissingGradient(reason=NoGradient.FROZEN)
        if num_outputs:
            return MissingGradient(reason=NoGradient.NOT_ASKED)
        forward = self._known.get(task)
        if forward is None:
            forward = self._known[task] = self._forward(task)
        if not forward.modules and not forward.calls:
            return MissingGradient(reason=NoGradient.UNKNOWN)
        if not any(one.results for one in forward.calls):
            return MissingGradient(reason=NoGradient.UNKNOWN)
        owners = list(dict.fromkeys(name.rpartition(".")[0] for name in names))
        return _reason(forward, owners)

    def is_frozen(
        self, task: int, names: Iterable[str], definition: ParameterDefinition | None
    ) -> bool:
        """Return whether a parameter required no gradient in the forward of a pass."""
        process, begin_ns, _ = self._begun[task]
        return not self._requires_grad(process, names, definition, begin_ns)

    def of_reached(self, task: int) -> MissingGradient:
        """Return why a parameter that a pass reached has no gradient of it."""
        failed = task in self._failed or task not in self._ends
        return MissingGradient(
            reason=NoGradient.PASS_FAILED if failed else NoGradient.UNDEFINED
        )

    def last_pass(self) -> int:
        """Return the last pass that no other is around."""
        return max(one for some in self._passes.values() for one in some)[1]

    def before(self, task: int) -> Sequence["ModuleCall"]:
        """Return the calls between a pass and the one before it."""
        return self._forward(task).calls

    def process_of(self, task: int) -> int:
        """Return the place of a pass's process in the trace."""
        return self._begun[task][0]

    def pass_on(self, process: int, task: int) -> int | None:
        """Return the pass of a process in the place that a pass has in its own."""
        own = [one for _, one in self._passes[self.process_of(task)]]
        others = [one for _, one in self._passes.get(process, ())]
        place = own.index(task) if task in own else len(others)
        return others[place] if place < len(others) else None

    def _requires_grad(
        self,
        process: int,
        names: Iterable[str],
        definition: ParameterDefinition | None,
        until_ns: int,
    ) -> bool:
        """Tell if a parameter required a gradient when its module was last called."""
        changes = [
            change
            for name in names
            for change in self._required.get((process, name), ())
        ]
        before = [now for t_ns, now in sorted(changes) if t_ns <= until_ns]
        if before:
            return before[-1]
        return bool(changes) or definition is None or definition.requires_grad

    def _changes(self) -> dict[tuple[int, str], list[tuple[int, bool]]]:
        found: dict[tuple[int, str], list[tuple[int, bool]]] = defaultdict(list)
        table = self._trace.columns["requires_grad_set"]
        rows = table.rows("thread", "t_ns", "parameter", "requires_grad")
        for thread, t_ns, name, now in rows:
            key = self._process_of.get(thread, 0), self._trace.strings[name]
            found[key].append((t_ns, bool(now)))
        return found

    def _cuts_by_process(self) -> dict[int, list[tuple[int, Cut]]]:
        found: dict[int, list[tuple[int, Cut]]] = defaultdict(list)
        table, strings = self._trace.columns["gradient_cut"], self._trace.strings
        rows = table.rows("thread", "t_ns", "operation", "location")
        for thread, t_ns, operation, line in rows:
            cut = Cut(
                operation=_short(strings[operation]), location=_short(strings[line])
            )
            found[self._process_of.get(thread, 0)].append((t_ns, cut))
        return found

    def _calls(self, process: int) -> list[ModuleCall]:
        """Return the calls of a process, in the order in which they began."""
        trace = self._trace
        begun = trace.columns["forward_begun"].at(slice(MAX_CALLS))
        ended = trace.columns["forward_ended"]
        ends = spans(begun, ended, ["call"]).end
        has_ended = ends != NEVER
        place = np.searchsorted(ended["seq"], np.where(has_ended, ends, 0))
        place[~has_ended] = -1
        end_ns = np.append(ended["t_ns"], NEVER)[place].tolist()
        results = np.append(ended["results"], Tracking.UNKNOWN)[place].tolist()
        names = ("module", "thread", "t_ns", "arguments", "location")
        return [
            ModuleCall(
                trace.strings[module],
                thread,
                t_ns,
                end,
                Tracking(arguments),
                Tracking(result),
                trace.strings[line],
            )
            for (module, thread, t_ns, arguments, line), end, result in zip(
                begun.rows(*names), end_ns, results, strict=True
            )
            if self._process_of.get(thread, 0) == process
        ]

    def _forward(self, task: int) -> _Forward:
        """Return the calls since the pass before, of the process, had ended."""
        process, begin_ns, _ = self._begun[task]
        before = [
            self._ends.get(other, t_ns)
            for t_ns, other in self._passes[process]
            if t_ns < begin_ns
        ]
        calls = self._tables[process]
        first, end = (
            bisect.bisect_left(calls, moment, key=lambda one: one.begin_ns)
            for moment in (max(before, default=0), begin_ns)
        )
        some = calls[first:end]
        by_module: dict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(some):
            by_module[one.module].append(place)
        since = max(before, default=0)
        cuts = [
            one for one in self._cuts.get(process, ()) if since <= one[0] <= begin_ns
        ]
        modules = frozenset(self._modules(task))
        return _Forward(some, by_module, modules, cuts, begin_ns)

    def _modules(self, task: int) -> Iterator[str]:
        trace = self._trace
        started = trace.columns["node_started"].having("task", [task])
        nodes = different(started.narrow("node"))
        texts, _ = trace.nodes.names(nodes, "module")
        yield from texts


#: Of traces that somebody holds.
_found: Final[weakref.WeakKeyDictionary[Trace, ForwardCalls]] = (
    weakref.WeakKeyDictionary()
)


def forward_calls(trace: Trace) -> ForwardCalls:
    """Return the calls of modules of a trace."""
    if trace not in _found:
        _found[trace] = ForwardCalls(trace)
    return _found[trace]


def _reason(forward: _Forward, owners: Sequence[str]) -> MissingGradient:
    """Return the reason that follows from calls; see Note [Reasons from calls]."""
    places = [place for one in owners for place in forward.by_module.get(one, ())]
    if not places:
        compiled = next((one for one in owners if COMPILED_PART in one), None)
        if compiled is not None:
            # Nobody hears of calls inside of what `torch.compile` has compiled.
            whole = compiled.partition(COMPILED_PART)[0]
            return MissingGradient(reason=NoGradient.COMPILED, module=_short(whole))
        return MissingGradient(
            reason=NoGradient.MODULE_NOT_CALLED,
            module=_short(owners[0]),
            inside=_called_around(forward, owners),
        )
    # If one of them had a tracked result, the question is what became of that.
    best = max(places, key=lambda place: forward.calls[place].results == 2)
    call = forward.calls[best]
    around = _around(forward.calls, best)
    found = {
        "module": _short(call.module),
        "num_calls": len(places),
        "location": call.location,
    }
    if call.results is Tracking.DISABLED:
        disabled = [one for one in (call, *around) if one.results is Tracking.DISABLED]
        found["location"] = disabled[-1].location
        found["inside"] = _short(disabled[-1].module)
        return MissingGradient(reason=NoGradient.NO_GRAD, **found)  # type: ignore[arg-type]
    inside = forward.cuts_between(call.begin_ns, call.end_ns)
    if call.results in _CUT:
        reason = NoGradient.CUT_IN_MODULE
        return MissingGradient(reason=reason, cuts=inside, **found)  # type: ignore[arg-type]
    cut = next((one for one in around if one.results in _CUT), None)
    if cut is None and _has_nodes_of(forward, call.module):
        reason = NoGradient.NOT_USED
        return MissingGradient(reason=reason, cuts=inside, **found)  # type: ignore[arg-type]
    reason = NoGradient.RESULT_NOT_USED if cut is None else NoGradient.CUT_AFTER_MODULE
    return MissingGradient(
        reason=reason,
        inside=None if cut is None else _short(cut.module),
        clues=tuple(_clues(forward.calls, best)),
        cuts=forward.cuts_between(
            call.end_ns, forward.begin_ns if cut is None else cut.end_ns
        ),
        **found,  # type: ignore[arg-type]
    )


def _has_nodes_of(forward: _Forward, module: str) -> bool:
    """Return whether the pass has nodes of a module, or of a part of it."""
    return any(f"{one}.".startswith(f"{module}.") for one in forward.modules)


def _short(text: str) -> str:
    return shortened(text, MAX_TEXT)


def _called_around(forward: _Forward, owners: Sequence[str]) -> str | None:
    """Return the innermost module around that of a parameter that was called."""
    for owner in owners:
        path = owner
        while "." in path:
            path = path.rpartition(".")[0]
            if path in forward.by_module:
                return _short(path)
    return None


def _around(calls: Sequence[ModuleCall], place: int) -> list[ModuleCall]:
    """Return the calls inside of which a call was made, the innermost first."""
    inner = calls[place]
    return [
        one
        for one in reversed(calls[:place])
        if one.thread == inner.thread and one.end_ns >= inner.end_ns
    ]


def _clues(calls: Sequence[ModuleCall], place: int) -> Iterator[Clue]:
    """Yield the first calls after another one that were given no way out."""
    end_ns, found = calls[place].end_ns, 0
    for one in calls[place + 1 :]:
        if one.begin_ns < end_ns or one.arguments not in {*_CUT, Tracking.DISABLED}:
            continue
        if not one.location:
            continue  # below a module that was told already
        yield Clue(
            module=_short(one.module),
            location=_short(one.location),
            arguments=one.arguments.name.lower(),
        )
        found += 1
        if found == MAX_CLUES:
            return
