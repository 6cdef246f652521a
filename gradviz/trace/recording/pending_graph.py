"""Nodes and queues that were reported and wait to be written.

A node is read on the thread that reports it, at once: afterwards the graph may change
or go away, and a trace must keep no tensor alive. What is kept is numbers, texts and
the metadata of its inputs, which hold no data. Turning them into definitions is the
writer's work.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from gradviz.trace.events import MAX_SEQUENCE_NR
from gradviz.trace.format.definitions import InputRow, NodeRow, QueueRow
from gradviz.trace.format.strings import Strings, one_a_line
from gradviz.trace.node_like import NUM_BEFORE_EDGES, MetadataLike, NodeLike
from gradviz.trace.probe import NO_LINES
from gradviz.trace.recording.pending_models import PendingModels

#: Ids of nodes already defined are forgotten at this many, and so are texts and inputs
#: that nodes share, which take ten times as much memory each. What is defined again
#: takes a few bytes and says the same.
_MAX_KNOWN: Final = 1 << 16
_MAX_SHARED: Final = 1 << 13

#: Maximum number of chunks of definitions that wait for a writer that has fallen
#: behind; more are left out.
_MAX_PENDING: Final = 10_000

#: A chunk that has so much of nodes, some hundred of them, is complete.
_CHUNK: Final = 1_000

#: Shape, dtype and device of what each input expects, None for anything.
_Inputs: TypeAlias = tuple[tuple[Sequence[int], object, object] | None, ...]

#: Indices of the id, and of the names of its leaf, in the layout of a node's numbers;
#: see `NUM_BEFORE_EDGES`.
_NUMBER: Final = 1
_LEAF: Final = 7

# when compiled: integer
_NO_EDGES = NUM_BEFORE_EDGES


class PendingGraph:
    """Filled by any thread, emptied by the writer; takes no lock (see `Strings`).

    Args:
        strings: Table that keeps texts.
        defines_again: True if every pass defines its nodes, those too that an earlier
            one has defined.

    Attributes:
        models: The models that were reported.
    """

    __slots__ = (
        "_chunks",
        "_defines_again",
        "_inputs",
        "_known_queues",
        "_leaves",
        "_new_inputs",
        "_newest",
        "_num_inputs",
        "_older",
        "_queues",
        "_recent",
        "_shared",
        "_strings",
        "models",
    )

    def __init__(self, strings: Strings, *, defines_again: bool = False) -> None:
        self._strings = strings
        self._defines_again = defines_again
        #: Numbers of nodes that are defined; see Note [Nodes of one pass].
        self._older: set[int] = set()
        self._recent: list[int] = []
        self._newest = -1
        #: For a node without edges, the names of its leaf, by which it may have to be
        #: defined anew.
        self._leaves: dict[int, str] = {}
        #: Numbers of several nodes each, one after the other (see Note [Nothing for the
        #: collector]), and the lines that made nodes, by id.
        self._chunks: list[tuple[list[Any], Mapping[int, str]]] = []
        self._known_queues: set[int] = set()
        self._queues: list[QueueRow] = []
        # The writer's own:
        self._shared: dict[Hashable, tuple[int, int, int, int, tuple[int, ...]]] = {}
        self._inputs: dict[Hashable, int] = {}
        self._num_inputs = 0
        self._new_inputs: list[InputRow] = []
        self.models: Final = PendingModels(strings)

    def define_nodes(
        self, nodes: Iterable[NodeLike], made_at: Mapping[int, str] = NO_LINES
    ) -> None:
        """Read those of `nodes` that are not defined yet. Any thread.

        A node whose leaf has other names by now is defined again: a model was changed.
        A node whose own code fails is left out. For `made_at` see
        `Probe.nodes_defined`.
        """
        if self._defines_again or self._num_defined() > _MAX_KNOWN:
            self._forget()
        newest, enough = self._newest, _CHUNK
        read, kind = definition_of, None
        chunk: list[Any] = []
        for node in nodes:
            begin = len(chunk)
            try:
                if type(node) is not kind:
                    # A class that knows where its fields are reads itself faster.
                    read = getattr(type(node), "trace_definition", definition_of)
                    kind = type(node)
                read(node, chunk)
                # See Note [Nodes of one pass].
                size, number = chunk[begin], chunk[begin + _NUMBER]
                is_new = number > newest and size > _NO_EDGES
                if not is_new and self._is_defined(chunk, begin):
                    del chunk[begin:]
            except Exception:
                # Its name, say, may be a program's code that fails.
                if getattr(type(node), "runs_no_code_of_programs", False):
                    raise
                del chunk[begin:]
            if len(chunk) >= enough:
                self._keep(chunk, made_at, newest)
                chunk = []
        if chunk:
            self._keep(chunk, made_at, newest)

    def define_anew(
        self, nodes: Sequence[NodeLike], made_at: Mapping[int, str] = NO_LINES
    ) -> None:
        """Define `nodes` again, after they have changed. Any thread."""
        self._list_recent()
        for node in nodes:
            self._older.discard(node.id)
            self._leaves.pop(node.id, None)
        self.define_nodes(nodes, made_at)

    def _keep(self, chunk: list[Any], made_at: Mapping[int, str], newest: int) -> None:
        """Have definitions wait for the writer, and their nodes count as defined."""
        if len(self._chunks) >= _MAX_PENDING:
            return  # they do not count, so a later pass may define them
        # First: an event may refer to a node that counts.
        self._chunks.append((chunk, made_at))
        recent, latest = self._recent, self._newest
        begin = 0
        while begin < len(chunk):
            size, number = chunk[begin], chunk[begin + _NUMBER]
            place = number  # when compiled: typed
            if size == _NO_EDGES:
                self._leaves[number] = chunk[begin + _LEAF]
            elif place > newest:
                recent.append(number)
                latest = max(latest, place)
            else:
                self._older.add(number)
            begin += size
        self._newest = max(self._newest, latest)

    def _is_defined(self, chunk: list[Any], begin: int) -> bool:
        """Return whether the node of a definition is already defined, identically.

        Note [Nodes of one pass]
        ~~~~~~~~~~~~~~~~~~~~~~~~
        Most nodes have edges, are in one pass only and newer than any node of an
        earlier pass, so they need not be searched for. So their numbers are merely
        listed, which takes a tenth of the time and memory of a set, until another node
        requires the search.
        """
        number: int = chunk[begin + _NUMBER]
        if chunk[begin] == _NO_EDGES:
            return bool(self._leaves.get(number) == chunk[begin + _LEAF])
        self._list_recent()
        return number in self._older

    def _list_recent(self) -> None:
        if self._recent:
            self._older.update(self._recent)
            del self._recent[:]  # what another thread adds in between is defined twice

    def _num_defined(self) -> int:
        return len(self._leaves) + len(self._recent) + len(self._older)

    def _forget(self) -> None:
        self._older.clear()
        del self._recent[:]
        self._leaves.clear()
        self._newest = -1

    def define_queue(self, queue: int, name: str, device: int) -> None:
        """Note a queue, the first time. Any thread."""
        if queue not in self._known_queues:
            # In this order: whoever finds it known may refer to it at once.
            self._queues.append(QueueRow(queue, name, device))
            self._known_queues.add(queue)

    def known(self) -> tuple[set[int], set[int]]:
        """Texts and inputs that nodes may refer to again without a definition."""
        texts = {text for *several, _ in self._shared.values() for text in several}
        return texts, set(self._inputs.values())

    def take(self) -> tuple[list[NodeRow], list[InputRow], list[QueueRow]]:
        """The definitions since the last call. The writer's thread only.

        Note [Nothing for the collector]
        ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        Thousands of nodes wait here for the writer, and then in its hands. A
        garbage-collected object for each would live long enough to become old, and when
        a quarter of all objects are newly old, the collector inspects all of them: 60
        ms each time, a third of the cost of a long recording. So definitions have no
        objects of their own but stand in lists, a hundred of them in each (a longer one
        is copied again and again as it grows), and the writer turns them into objects
        that the collector ignores: it soon untracks tuples of integers, but not lists.
        """
        chunks = self._chunks[:]
        del self._chunks[: len(chunks)]  # See Note [Taking rows] in `buffer`.
        queues = self._queues[:]
        del self._queues[: len(queues)]
        rows = []
        for chunk, made_at in chunks:
            for node in _each(chunk):
                try:
                    rows.append(self._row(node, made_at))
                except Exception:  # noqa: BLE001 - likewise, a dtype without a text
                    continue
        inputs, self._new_inputs = self._new_inputs, []
        return rows, inputs, queues

    def _row(self, node: list[Any], made_at: Mapping[int, str]) -> NodeRow:
        _, number, sequence_nr, topological_nr = node[:4]
        text, runs_on, path, leaf, inputs = node[4:NUM_BEFORE_EDGES]
        edges = tuple(node[NUM_BEFORE_EDGES:])
        shared = text, runs_on, path, leaf, _all_expected(inputs)
        indices = self._shared.get(shared)
        if indices is None:
            indices = self._index(*shared)
            if len(self._shared) >= _MAX_SHARED:
                self._shared.clear()
            self._shared[shared] = indices
        name, device, module, parameter, expected = indices
        if sequence_nr == MAX_SEQUENCE_NR:
            sequence_nr = -1
        line = made_at.get(number, "") if made_at else ""
        return NodeRow(
            number,
            name,
            sequence_nr,
            topological_nr,
            device,
            edges,
            expected,
            module,
            parameter,
            self._strings.define(line) if line else -1,
        )

    def _index(
        self, name: str, device: object, module: str, parameter: str, inputs: _Inputs
    ) -> tuple[int, int, int, int, tuple[int, ...]]:
        define = self._strings.define
        indices = tuple(
            [-1 if one is None else self._index_input(one) for one in inputs]
        )
        return (
            define(name),
            define(str(device)),
            define(module) if module else -1,
            define(parameter) if parameter else -1,
            indices,
        )

    def _index_input(self, expected: tuple[Sequence[int], object, object]) -> int:
        shape, dtype, device = expected
        key = (tuple(shape), dtype, device)
        index = self._inputs.get(key)
        if index is None:
            define = self._strings.define
            index = self._num_inputs
            self._num_inputs += 1
            row = InputRow(index, key[0], define(str(dtype)), define(str(device)))
            self._new_inputs.append(row)
            if len(self._inputs) >= _MAX_SHARED:
                self._inputs.clear()
            self._inputs[key] = index
        return index


def definition_of(node: NodeLike, chunk: list[Any]) -> None:
    """Append a node's definition to a list."""
    edges: list[int] = []
    for edge in node.next_edges:
        after = edge.node
        edges += (-1 if after is None else after.id, edge.input_nr)
    chunk.extend(
        (
            NUM_BEFORE_EDGES + len(edges),
            node.id,
            node.sequence_nr,
            node.topological_nr,
            str(type(node).name(node)),  # a user may have a `name` on the node itself
            node.runs_on,
            node.module_path,
            _leaf_names(node) if node.sequence_nr == MAX_SEQUENCE_NR else "",
            tuple(node.input_metadata),
            *edges,
        )
    )


def _each(chunk: list[Any]) -> Iterator[list[Any]]:
    """Yield the data read of each node."""
    begin = 0
    while begin < len(chunk):
        end = begin + chunk[begin]
        yield chunk[begin:end]
        begin = end


def _all_expected(inputs: tuple[MetadataLike | None, ...]) -> _Inputs:
    if len(inputs) == 1:  # nearly always
        return (_expected(inputs[0]),)
    return tuple([_expected(one) for one in inputs])


def _expected(
    metadata: MetadataLike | None,
) -> tuple[Sequence[int], object, object] | None:
    if metadata is None:
        return None
    return metadata.shape, metadata.dtype, metadata.device


def _leaf_names(node: NodeLike) -> str:
    """The names of the parameter into which an AccumulateGrad adds."""
    tell = getattr(type(node), "leaf_names", None)
    return "" if tell is None else one_a_line(tell(node))
