"""Calls of hooks: function, target, order, and duration."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from gradviz.analysis.tables.executions import MAX_TEXT
from gradviz.analysis.tables.spans import NEVER, spans, times
from gradviz.trace.events import label
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.probe import Hook

#: Stands for a hook whose function is not known.
UNKNOWN: Final = "?"

_KEY: Final = ("thread", "task", "node", "hook", "index")

_TOLD: Final = ("seq", "thread", "task", "node", "t_ns", "hook", "index", "inferred")
_TEXTS: Final = ("function", "defined_at", "registered_at", "target")


class HookCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call of a hook.

    Attributes:
        kind: Its kind: a `Hook` in small letters.
        index: Its place among the hooks of this kind.
        function: Qualified name of the hook, empty if unknown.
        defined_at: The line of its definition, empty if unknown.
        registered_at: The line that registered it, empty if unknown.
        target: The module that it was registered on, if it was one.
        task: The pass.
        node: The node that was evaluated.
        thread: The thread that called it.
        began_ns: The time of the call, on the trace's clock. Where several hooks were
            called with nothing seen between them, that of the first.
        took_ns: Duration of the call; None if that is not known.
        together_ns: Duration of such hooks together; None of others.
        inferred: True if the call was not seen, but follows from what was.
    """

    kind: str
    index: int
    function: str
    defined_at: str
    registered_at: str
    target: str
    task: int
    node: int
    thread: int
    began_ns: int
    took_ns: int | None
    together_ns: int | None = None
    inferred: bool = False

    @property
    def end_ns(self) -> int | None:
        """The time at which it, or the last of several, returned; None if unknown."""
        took_ns = self.took_ns if self.together_ns is None else self.together_ns
        return None if took_ns is None else self.began_ns + took_ns


def hook_calls(
    trace: Trace, tasks: Sequence[int] | None = None, node: int | None = None
) -> list[HookCall]:
    """Return the calls of hooks in the order in which they were made.

    Those that retain gradients are PyTorch's and gradviz's own, and not among them.

    Args:
        trace: The trace.
        tasks: Of these passes; None for all.
        node: While this node was evaluated; None for all.
    """
    called = trace.columns["hook_called"]
    if not called.num_rows:
        return []
    is_meant = called.narrow("hook") != Hook.RETAINS_GRAD
    if tasks is not None:
        is_meant &= np.isin(called.narrow("task"), tasks)
    if node is not None:
        is_meant &= called.narrow("node") == node
    called = called.at(is_meant)
    ends = spans(called, trace.columns["hook_returned"], _KEY).end
    t_ns = times(trace)
    texts = [_texts(trace, called.narrow(name).tolist()) for name in _TEXTS]
    calls = [
        HookCall(
            kind=label(Hook(hook)),
            index=index,
            function=function,
            defined_at=defined_at,
            registered_at=registered_at,
            target=target,
            task=task,
            node=of,
            thread=thread,
            began_ns=at_ns,
            took_ns=None if end == NEVER else int(t_ns[end]) - at_ns,
            inferred=bool(inferred),
        )
        for (_, thread, task, of, at_ns, hook, index, inferred), end, *names in zip(
            called.rows(*_TOLD), ends.tolist(), *texts, strict=True
        )
        for function, defined_at, registered_at, target in (names,)
    ]
    return list(_grouped(calls))


class HookStretch(NamedTuple):
    """A time in which a hook ran, or several of which no single times are known.

    Attributes:
        thread: The thread that ran it.
        task: The pass.
        node: The node that was evaluated.
        begin_ns: From a given origin.
        end_ns: From there, too.
        functions: Names, with a comma between them.
    """

    thread: int
    task: int
    node: int
    begin_ns: int
    end_ns: int
    functions: str


def hook_stretches(
    trace: Trace, tasks: Sequence[int], origin_ns: int
) -> list[HookStretch]:
    """Return the times in which hooks of some passes ran, in order."""
    found: dict[tuple[int, int, int, int, int], list[str]] = {}
    for one in hook_calls(trace, tasks):
        if one.end_ns is not None:
            begin_ns, end_ns = one.began_ns - origin_ns, one.end_ns - origin_ns
            where = one.thread, one.task, one.node, begin_ns, end_ns
            found.setdefault(where, []).append(one.function or UNKNOWN)
    return [
        HookStretch(*where, shortened(", ".join(names), MAX_TEXT))
        for where, names in found.items()
    ]


def _texts(trace: Trace, places: Sequence[int]) -> list[str]:
    known = {place: shortened(trace.strings[place], MAX_TEXT) for place in set(places)}
    return [known[place] for place in places]


def _grouped(calls: Sequence[HookCall]) -> Iterator[HookCall]:
    """Take back the times of inferred hooks that are only known together.

    Of these all are called, and the last one returns.
    """
    open_ones: list[HookCall] = []
    for one in calls:
        if open_ones and not _is_beside(open_ones[-1], one):
            yield from open_ones
            open_ones = []
        if one.took_ns is not None and open_ones:
            began_ns = open_ones[0].began_ns
            together_ns = one.began_ns + one.took_ns - began_ns
            for member in (*open_ones, one):
                yield msgspec.structs.replace(
                    member, began_ns=began_ns, took_ns=None, together_ns=together_ns
                )
            open_ones = []
        elif one.took_ns is None and one.inferred:
            open_ones.append(one)
        else:
            yield one
    yield from open_ones


def _is_beside(one: HookCall, other: HookCall) -> bool:
    where = (one.thread, one.task, one.inferred)
    return where == (other.thread, other.task, other.inferred)
