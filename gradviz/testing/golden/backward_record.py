"""Record of a backward: the part that depends only on the program.

A record has no times, ids, threads or addresses in memory, so two runs of one program
have equal records.

Note [Order without timing]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
Which of two devices is faster, and so what lies in a queue when its thread takes the
next node, differs from run to run. So nodes are in the order in which they would run on
one thread, which follows from the graph. A queue that left this order for a reason
other than timing, such as another schedule, has its own order there.

Passes of other threads come after those of the thread that records. Each thread's own
are in their order, and threads are in the order of what they ran.

Note [Addresses]
~~~~~~~~~~~~~~~~
Nodes are called by the part of the model that made them and their name,
``Net.fc1/AddmmBackward0``, leaves by their parameter, ``Net.fc1.weight``. The second
node of that name there, in the order of the forward, ends in ``#2``. So a node that is
new changes no address outside of its module. The name of a model is numbered among the
models of the record alone: others of the process say nothing of it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from gradviz.analysis.changes.node_facts import THE_PASS, NodeFacts, node_facts
from gradviz.analysis.graphs.forward_order import order_by_sequence
from gradviz.analysis.nodes.predicted_order import PredictedOrder, predicted_orders
from gradviz.analysis.tables.executions import (
    STATUSES,
    definition,
    execution_columns,
)
from gradviz.analysis.tables.passes import Pass, passes
from gradviz.errors import UserError
from gradviz.trace.events import MAX_SEQUENCE_NR
from gradviz.trace.format.model import InputDefinition, NodeDefinition, Trace

#: Stands for an edge that leads nowhere, and for bytes that nobody knows.
NOWHERE: Final = "-"
UNKNOWN: Final = "?"

#: Reasons why a queue leaves the predicted order that say nothing of the program.
_TIMING: Final = frozenset({"late", "early", "crossed", "shared", "tied"})
_CUT_SHORT: Final = frozenset({"failed", "unfinished", "not run"})

#: Characters with a meaning in addresses.
_RESERVED: Final = frozenset("%/#:;=~")


class GoldenNode(NamedTuple):
    """A node of a record; all texts are without spaces.

    Attributes:
        address: See Note [Addresses].
        inputs: The dtype and shape of each input.
        device: Device that it runs on.
        saved: Number of bytes that it saved; `UNKNOWN` if nobody knows.
        hooks: Hooks that ran at it, in their order.
        waits: Waits of the host and of streams at it.
        end: Outcome of its run; empty if it completed.
        line: The line that made it; empty if lines are not recorded.
        edges: Receiver of each of its gradients: an address, `NOWHERE` for nobody, and
            ``:N`` where it is not the first input.
    """

    address: str
    inputs: tuple[str, ...] = ()
    device: str = "cpu"
    saved: str = "0"
    hooks: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    end: str = ""
    line: str = ""
    edges: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of its class."""
        _, slash, name = self.address.rpartition("/")
        return name.partition("#")[0] if slash else "AccumulateGrad"


class GoldenPass(NamedTuple):
    """A pass of a record.

    Attributes:
        marks: Unusual properties of it, such as ``failed`` or ``create_graph``.
        nodes: Its nodes; see Note [Order without timing].
    """

    marks: tuple[str, ...]
    nodes: tuple[GoldenNode, ...]


class NothingRecordedError(UserError):
    """A block ran no backward pass, or none with recorded nodes."""


def backward_record(
    trace: Trace, thread: int, *, with_lines: bool = False
) -> tuple[GoldenPass, ...]:
    """Return the record of all passes of a trace.

    Args:
        trace: The trace.
        thread: The thread whose passes come first.
        with_lines: True if the lines that made the nodes are to be recorded.

    Raises:
        NothingRecordedError: There are no passes, or nodes of one were not seen.
    """
    every = passes(trace, limit=None)
    if not every:
        raise NothingRecordedError("no backward pass ran")
    known = {one.task: _Described(trace, one, with_lines=with_lines) for one in every}
    inner: dict[int, list[_Described]] = defaultdict(list)
    by_thread: dict[int, list[GoldenPass]] = defaultdict(list)
    for one in known.values():
        inner[one.about.parent].append(one)
    for one in inner[-1]:
        marks = () if one.about.thread == thread else ("on-another-thread",)
        by_thread[one.about.thread] += _with_inner(one, marks, inner)
    first = by_thread.pop(thread, [])
    others = sorted(by_thread.values())
    return tuple(first + [one for group in others for one in group])


def escaped(text: str) -> str:
    """Return a text of the program as a word without reserved characters."""
    if text.isprintable() and " " not in text and _RESERVED.isdisjoint(text):
        return text
    return "".join(
        _percent(c) if c in _RESERVED or c == " " or not c.isprintable() else c
        for c in text
    )


def _percent(character: str) -> str:
    data = character.encode("utf-8", "surrogatepass")
    return "".join(f"%{byte:02X}" for byte in data)


def _with_inner(
    one: "_Described",
    marks: tuple[str, ...],
    inner: Mapping[int, Sequence["_Described"]],
) -> Iterator[GoldenPass]:
    """Yield a pass, then the passes inside of it in the order of their nodes."""
    yield GoldenPass((*marks, *one.marks), one.nodes)
    calls = [(one.place_of_call(call.about), call) for call in inner[one.about.task]]
    for place, call in sorted(calls, key=lambda pair: pair[0]):
        inside = one.nodes[place].address if place < len(one.nodes) else UNKNOWN
        yield from _with_inner(call, (f"inside={inside}",), inner)


class _Described:
    """A pass and its nodes, described.

    Attributes:
        about: The pass.
        marks: See `GoldenPass`.
        nodes: See `GoldenPass`.
    """

    def __init__(self, trace: Trace, about: Pass, *, with_lines: bool) -> None:
        self.about = about
        self._trace = trace
        orders = [*predicted_orders(trace, [about.task])]
        self._ids = [node for order in orders for node in _in_run_order(order)]
        if not any(order.num_ran for order in orders) or not self._ids:
            raise NothingRecordedError(_unseen(trace, about, orders))
        definitions = [definition(trace, node) for node in self._ids]
        facts = node_facts(trace, about.parts, self._ids)
        addresses = _addresses(definitions)
        ends = _ends(trace, about.parts)
        self.marks = tuple(_marks(trace, about, facts))
        self.nodes = tuple(
            GoldenNode(
                address=addresses[one.id],
                inputs=tuple(map(_input, one.inputs)),
                device=_with_colons(one.device),
                saved=_saved(facts, one.id),
                hooks=tuple(map(_hook, (facts.hooks or {}).get(one.id, ()))),
                waits=tuple(_words((facts.waits or {}).get(one.id, ()))),
                end=ends.get(one.id, "not-run"),
                line=_file_and_line(one) if with_lines else "",
                edges=tuple(_edges(one, addresses)),
            )
            for one in definitions
        )

    def place_of_call(self, call: Pass) -> int:
        """Return which of the nodes a pass was called from; their number if none."""
        runs = execution_columns(self._trace, self.about.parts)
        own = runs.at(np.flatnonzero(runs.thread == call.thread))
        last = int(np.searchsorted(own.start_ns, call.begin_ns)) - 1
        caller = int(own.node[last]) if last >= 0 else -1
        return self._ids.index(caller) if caller in self._ids else len(self._ids)


def _unseen(trace: Trace, about: Pass, orders: Sequence[PredictedOrder]) -> str:
    if any(order.is_too_large for order in orders):
        return "a backward pass has too many nodes to be recorded"
    told = trace.columns["unexplained"].having("task", about.parts)
    reasons = [trace.strings[place] for place in told["text"].tolist()[:1]]
    return ": ".join(["no node of a backward pass was seen to run", *reasons])


def _in_run_order(order: PredictedOrder) -> list[int]:
    """Return the nodes in their order; see Note [Order without timing]."""
    chosen = {
        one.queue
        for one in order.divergences
        if one.why not in _TIMING and one.why not in _CUT_SHORT
    }
    if not chosen:
        return [row.node for row in order.rows]
    last = len(order.rows)
    as_run = {
        queue: iter(
            sorted(
                (row for row in order.rows if row.queue == queue),
                key=lambda row: last if row.ran is None else row.ran,
            )
        )
        for queue in chosen
    }
    return [
        next(as_run[row.queue]).node if row.queue in chosen else row.node
        for row in order.rows
    ]


def _addresses(definitions: Sequence[NodeDefinition]) -> Mapping[int, str]:
    """Return the address of each node; see Note [Addresses]."""
    place = {one.id: number for number, one in enumerate(definitions)}
    forward = order_by_sequence(
        [one.sequence_nr for one in definitions],
        [-number for number in range(len(definitions))],
        [
            (place[one.id], place[to])
            for one in definitions
            for to, _ in one.edges
            if to in place
        ],
    )
    made = [
        one for _, one in sorted(zip(forward, definitions, strict=True), key=_first)
    ]
    roots = _root_names(made)
    seen: Counter[str] = Counter()
    found = {}
    for one in made:
        called = _called(one, roots)
        seen[called] += 1
        found[one.id] = called if seen[called] == 1 else f"{called}#{seen[called]}"
    return found


def _first(pair: tuple[int, NodeDefinition]) -> int:
    return pair[0]


def _root_names(made: Iterable[NodeDefinition]) -> Mapping[str, str]:
    """Number the models of a pass that have one name, whatever they are called."""
    found: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for one in made:
        for path in (*one.parameters, one.module):
            root = path.partition(".")[0]
            if root and root not in found:
                name, _, number = root.rpartition("#")
                name = name if name and number.isdecimal() else root
                seen[name] += 1
                own = escaped(name)
                found[root] = own if seen[name] == 1 else f"{own}({seen[name]})"
    return found


def _called(one: NodeDefinition, roots: Mapping[str, str]) -> str:
    """Return the address of a node without a number."""
    if one.sequence_nr == MAX_SEQUENCE_NR and one.parameters:
        return min(_path(path, roots) for path in one.parameters)
    return f"{_path(one.module, roots)}/{escaped(one.name)}"


def _path(path: str, roots: Mapping[str, str]) -> str:
    root, dot, rest = path.partition(".")
    return f"{roots.get(root, '')}{dot}{escaped(rest)}"


def _input(one: InputDefinition | None) -> str:
    if one is None:
        return "any"
    return f"{escaped(one.dtype)}[{','.join(map(str, one.shape))}]"


def _saved(facts: NodeFacts, node: int) -> str:
    size_bytes = facts.saved[node]
    return UNKNOWN if size_bytes is None else str(size_bytes)


def _words(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield escaped(text.replace(" ", "_"))


def _hook(text: str) -> str:
    kind, _, function = text.partition(" ")
    return f"{kind}:{escaped(function)}"


def _file_and_line(one: NodeDefinition) -> str:
    return _with_colons(one.location.replace("\\", "/").rpartition("/")[2])


def _with_colons(text: str) -> str:
    """Return a text as a word that is no part of an address."""
    return escaped(text).replace("%3A", ":")


def _edges(one: NodeDefinition, addresses: Mapping[int, str]) -> Iterator[str]:
    for to, input_nr in one.edges:
        if to not in addresses:
            yield NOWHERE
        else:
            yield addresses[to] + (f":{input_nr}" if input_nr else "")


def _ends(trace: Trace, parts: Sequence[int]) -> Mapping[int, str]:
    """Return how each node that ran ended; nothing for those that completed."""
    runs = execution_columns(trace, parts)
    return {
        node: "" if STATUSES[status] == "completed" else STATUSES[status]
        for node, status in zip(runs.node.tolist(), runs.status.tolist(), strict=True)
    }


def _marks(trace: Trace, about: Pass, facts: NodeFacts) -> Iterator[str]:
    """Yield the unusual facts of a pass."""
    if about.status != "completed":
        yield about.status
    begun = trace.columns["task_begun"].having("task", [about.task])
    for flag, word in (("keep_graph", "retain_graph"), ("create_graph",) * 2):
        if begun[flag].any():
            yield word
    waits = (facts.waits or {}).get(THE_PASS, ())
    if waits:
        yield f"waits={';'.join(_words(waits))}"
