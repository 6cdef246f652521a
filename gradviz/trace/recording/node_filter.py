"""The nodes to record, for a recording of only some."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from gradviz.trace.events import INFERRED, KINDS
from gradviz.trace.format.columns import Part
from gradviz.trace.format.kept_events import ABOUT_A_NODE, layouts_of
from gradviz.trace.format.row_layouts import Inferred
from gradviz.trace.format.scope import Scope
from gradviz.trace.node_like import NodeLike

#: Maximum number of nodes known before those of earlier passes are forgotten.
_MAX_KNOWN: Final = 200_000

#: Index of an event's node among its columns.
_NODE: Final = 2


class NodeFilter:
    """Hears of nodes before their events are written, and picks the events.

    Any thread offers nodes, the writer picks. It takes no lock: a set only grows, by
    single calls into C, until another one takes its place.

    Args:
        scope: Says which nodes are wanted.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._layouts = layouts_of(scope)
        self._answers: dict[tuple[str, str], bool] = {}
        self._wanted: set[int] = set()
        self._wanted_before: set[int] = set()

    def offer(self, nodes: Iterable[NodeLike]) -> None:
        """Look at nodes that are made, or take part in a pass that begins."""
        # Here and not below, so that all nodes of one pass are known together.
        if len(self._wanted) > _MAX_KNOWN:
            self._wanted_before, self._wanted = self._wanted, set()
        for node in nodes:
            if self._wants(node):
                self._wanted.add(node.id)

    def pick(self, rows: Mapping[Hashable, list[int]]) -> dict[Hashable, list[int]]:
        """The rows about a wanted node, or about none; each of a single event."""
        picked: dict[Hashable, list[int]] = {}
        for key in rows:  # see Note [Items without memory] in `buffer`
            layout = self._layouts[key]
            for part in layout.parts:
                kind = KINDS[part.code & ~INFERRED]
                one = Inferred(kind) if part.code & INFERRED else kind
                if kind in ABOUT_A_NODE:
                    picked.setdefault(one, []).extend(
                        self._events(rows[key], layout.width, part)
                    )
                else:
                    picked[one] = rows[key]
        return {kind: picked[kind] for kind in picked if picked[kind]}

    def _events(self, numbers: list[int], width: int, part: Part) -> Iterable[int]:
        wanted, before = self._wanted, self._wanted_before
        nodes = numbers[part.places[_NODE] :: width]
        for row, node in enumerate(nodes):
            if node < 0 or node in wanted or node in before:
                begin = row * width
                yield numbers[begin] + part.delay_ns
                for place in part.places[1:]:
                    yield numbers[begin + place]

    def _wants(self, node: NodeLike) -> bool:
        try:
            names = str(type(node).name(node)), node.module_path
        except Exception:  # noqa: BLE001 - its name may be code that fails
            return False
        answer = self._answers.get(names)
        if answer is None:
            if len(self._answers) > _MAX_KNOWN:
                self._answers.clear()
            answer = self._answers[names] = self._scope.has_events_of(*names)
        return answer
