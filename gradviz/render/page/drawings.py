"""Drawings: graphs of passes laid out for a page, part by part.

Note [Parts of a drawing]
~~~~~~~~~~~~~~~~~~~~~~~~~
A reader opens parts of a model one by one, in place. So each part is laid out by
itself, with the parts in it as closed boxes. Where one is opened, the page puts what is
inside of it in the place of its box, and moves what stands beside and below it: for
that no layout is needed, however many ways there are to open some and not others.

A way from one part into another is drawn in pieces: one from box to box, in the part
that holds both, and in each that is opened one from its border on. The borders are
`OUTSIDE`: in a layout a box of no size, above all others for ways that come in, and
below them for ways that go out.

The graph of a pass that a node called is a part inside of that node's box, with no ways
across its border. Of several passes that one node called, that is the first.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from gradviz.analysis.graphs.backward_graph import (
    Graph,
    GraphEdge,
    GraphNode,
    build_graph,
)
from gradviz.analysis.graphs.parts import GraphPart, divide, nodes_of
from gradviz.analysis.graphs.simplification import as_one
from gradviz.render.graph.chips import leaves_by_user, num_uses
from gradviz.render.graph.graph_scene import Scene, build_scene
from gradviz.render.layout.placed_graph import BoxLayout
from gradviz.render.layout.placed_graph import place as lay_out
from gradviz.render.layout.routing import Point
from gradviz.render.page.columns import RowPlaces, TextTable
from gradviz.render.page.tables import (
    BoxTable,
    ChipTable,
    MemberTable,
    PartTable,
    StopTable,
    WayTable,
)
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column

#: All drawings of a page together have no more boxes; what lies deeper stays closed.
MAX_BOXES: Final = 20_000

#: The graph of a pass has no more nodes: those that ran first.
MAX_NODES: Final = 40_000

#: Maximum number of passes with drawings.
MAX_DRAWN: Final = 8

#: More ways across the borders of a part do not all go between its boxes.
MAX_CROSSING: Final = 8
LANE_GAP: Final = 14.0

#: Maximum number of layouts kept for parts that are alike.
MAX_ALIKE: Final = 64

#: The border of a part, as an end of ways.
OUTSIDE: Final = -1


class Drawings(NamedTuple):
    """The graphs of some passes; see Note [Parts of a drawing]."""

    parts: PartTable
    boxes: BoxTable
    chips: ChipTable
    members: MemberTable
    ways: WayTable
    stops: StopTable


def draw_passes(
    trace: Trace, tasks: Mapping[int, int], nodes: RowPlaces, texts: TextTable
) -> Drawings:
    """The graphs of the first `MAX_DRAWN` passes, the coarsest parts of each first.

    Args:
        trace: The trace.
        tasks: Passes, and the place of each.
        nodes: The places of nodes.
        texts: Gets those of the boxes.
    """
    rows = _Drawn(texts)
    waiting = {
        task: _Pass(build_graph(trace, task, MAX_NODES, has_others=False), number)
        for task, number in list(tasks.items())[:MAX_DRAWN]
    }
    called = {
        task
        for pass_ in waiting.values()
        for node in pass_.graph.nodes
        for task in node.calls[:1]
    }
    outer = [waiting.pop(task) for task in [*waiting] if task not in called]
    _draw_all(outer, waiting, rows)
    _draw_all([*waiting.values()], {}, rows)  # whose callers have no boxes
    return rows.packed(nodes)


def _draw_all(
    passes: Iterable["_Pass"], called: dict[int, "_Pass"], rows: "_Drawn"
) -> None:
    """Draw passes as far as there is room, and take from `called` what is in them."""
    pending = deque(_whole(pass_) for pass_ in passes)
    while pending:
        interior = pending.popleft()
        if rows.num_boxes + len(interior.part.inside) <= MAX_BOXES:
            pending += _draw(interior, called, rows)
        elif interior.box >= 0:
            rows.contain(interior.box, interior.pass_.all_of(interior.part))


def left_out(ran: Column, tasks: Mapping[int, int]) -> list[str]:
    """Say of which passes the graph does not have all nodes, a sentence each.

    Args:
        ran: The pass of each node that ran.
        tasks: Passes, and the place of each, as for `draw_passes`.
    """
    passes, num_nodes = np.unique(ran, return_counts=True)
    many = dict(zip(passes.tolist(), num_nodes.tolist(), strict=True))
    return [
        f"the graph of pass {task} has the first {MAX_NODES:,} of {many[task]:,} nodes"
        for task in [*tasks][:MAX_DRAWN]
        if many[task] > MAX_NODES
    ]


class _Pass:
    """The graph of a pass, and where its leaves are.

    Attributes:
        graph: The graph.
        task: The place of the pass.
        leaves: Of each node those leaves that are drawn as chips in its box.
        chips: All of these.
        owned: Of each node those of them that are its own: of several who lead to a
            leaf it is that of the last to run.
        uses: Number of chips that stand for a leaf, by its id.
    """

    def __init__(self, graph: Graph, task: int) -> None:
        self.graph = graph
        self.task = task
        self.leaves = leaves_by_user(graph)
        owners: dict[int, int] = {}
        for user in sorted(
            self.leaves, key=lambda index: -graph.nodes[index].forward_nr
        ):
            owners |= dict.fromkeys(self.leaves[user], user)
        self.chips = frozenset(owners)
        self.owned: dict[int, list[int]] = {}
        for leaf, user in owners.items():
            self.owned.setdefault(user, []).append(leaf)
        self.uses = num_uses(graph, self.leaves)

    def leaves_of(self, inside: GraphPart | int) -> Sequence[int]:
        """The leaves that are chips in a box: none of one that is opened."""
        return self.leaves.get(inside, ()) if isinstance(inside, int) else ()

    def all_of(self, part: GraphPart | int) -> list[GraphNode]:
        """The nodes of a part and their leaves."""
        own = nodes_of(part)
        used = {leaf for index in own for leaf in self.leaves.get(index, ())}
        return [self.graph.nodes[index] for index in (*own, *sorted(used))]

    def as_node(self, part: GraphPart | int, outer: str) -> GraphNode:
        """Return the closed box of a part of the module `outer`."""
        if isinstance(part, int):
            return self.graph.nodes[part]
        own = nodes_of(part)
        counted = [*own, *(leaf for one in own for leaf in self.owned.get(one, ()))]
        used = {leaf for one in own for leaf in self.leaves.get(one, ())}
        nodes = self.graph.nodes
        return as_one(
            [nodes[index] for index in sorted(counted)],
            name=part.name.removeprefix(f"{outer}."),
            module=part.module,
            leaves=[nodes[leaf] for leaf in sorted(used)],
        )


class _Interior(NamedTuple):
    """The inside of a part, to be laid out.

    Attributes:
        pass_: Its pass.
        box: The closed box that stands for it, -1 for the whole graph.
        part: The part itself.
        edges: Those that begin or end in it, leaves aside.
        omitted: Number of nodes of the graph that are left out, if it is a whole one.
    """

    pass_: _Pass
    box: int
    part: GraphPart
    edges: Sequence[GraphEdge]
    omitted: int = 0


def _whole(pass_: _Pass, box: int = OUTSIDE) -> _Interior:
    graph = pass_.graph
    drawn = (index for index in range(len(graph.nodes)) if index not in pass_.chips)
    edges = [edge for edge in graph.edges if edge.consumer not in pass_.chips]
    return _Interior(pass_, box, divide(graph, drawn), edges, graph.omitted)


def _draw(
    interior: _Interior, called: dict[int, _Pass], rows: "_Drawn"
) -> list[_Interior]:
    """Lay out the inside of a part; return the parts in it."""
    pass_, _, part, edges, _ = interior
    home = {
        index: at for at, inside in enumerate(part.inside) for index in nodes_of(inside)
    }
    inner: dict[GraphEdge, None] = {}
    borders: dict[tuple[int, int], None] = {}
    deeper: list[list[GraphEdge]] = [[] for _ in part.inside]
    for edge in edges:
        one, other = home.get(edge.producer, OUTSIDE), home.get(edge.consumer, OUTSIDE)
        for end in {one, other} - {OUTSIDE}:
            deeper[end].append(edge)
        if OUTSIDE in {one, other}:
            borders[one, other] = None
        elif one != other:
            is_single = isinstance(part.inside[other], int)
            inner[GraphEdge(one, other, edge.input_nr if is_single else 0)] = None
    nodes = [pass_.as_node(inside, part.module) for inside in part.inside]
    scene = _scene(pass_, part, nodes, inner)
    ways = [*scene.edges, *borders]
    layout = _lay_out(_sizes(scene), tuple((one[0], one[1]) for one in ways))
    first = rows.add(interior, nodes, scene, ways, layout)
    found = []
    for at, inside in enumerate(part.inside):
        if isinstance(inside, int):
            rows.contain(first + at, pass_.all_of(inside))
            calls = pass_.graph.nodes[inside].calls[:1]
            if calls and calls[0] in called:
                found.append(_whole(called.pop(calls[0]), first + at))
        else:
            found.append(_Interior(pass_, first + at, inside, deeper[at]))
    return found


def _scene(
    pass_: _Pass,
    part: GraphPart,
    nodes: Sequence[GraphNode],
    edges: Iterable[GraphEdge],
) -> Scene:
    """Return the inside of a part: closed boxes, leaves as chips of nodes."""
    leaves: list[GraphNode] = []
    chips: dict[int, tuple[int, ...]] = {}
    for at, inside in enumerate(part.inside):
        own = [pass_.graph.nodes[leaf] for leaf in pass_.leaves_of(inside)]
        if own:
            first = len(nodes) + len(leaves)
            chips[at] = tuple(range(first, first + len(own)))
            leaves += own
    to_leaves = [GraphEdge(at, leaf, 0) for at, own in chips.items() for leaf in own]
    graph = Graph(
        task=pass_.graph.task,
        nodes=(*nodes, *leaves),
        edges=tuple(sorted((*edges, *to_leaves), key=lambda edge: edge.producer)),
        is_finished=pass_.graph.is_finished,
    )
    # The page has colors and tooltips of its own; those by device are made quickest.
    return build_scene(graph, "device", pass_.uses, chips, for_page=True)


def _sizes(scene: Scene) -> tuple[tuple[float, float], ...]:
    return tuple((box.width, box.height) for box in scene.boxes)


@lru_cache(maxsize=MAX_ALIKE)
def _lay_out(
    sizes: tuple[tuple[float, float], ...], ways: tuple[tuple[int, int], ...]
) -> BoxLayout:
    """A layout of boxes; the borders are two more, the first and the last.

    Parts that are alike are laid out once: the passes of a loop, the layers of a model.

    What no way leaves stands above the lower border none the less. Of many ways across
    the borders those that say where a box stands go down between the others; the rest
    share one line on the right of all.
    """
    end = len(sizes) + 1
    if not any(OUTSIDE in way for way in ways):
        return lay_out(sizes, ways)
    inner = [way for way in ways if OUTSIDE not in way]
    reached = {other for _, other in inner}
    left = {one for one, _ in inner}
    is_many = len(ways) - len(inner) > MAX_CROSSING
    aside = {
        way: None
        for way in (ways if is_many else ())
        if (way[0] == OUTSIDE and way[1] in reached)
        or (way[1] == OUTSIDE and way[0] in left)
    }
    drawn = [
        (one + 1, end if other == OUTSIDE else other + 1)  # OUTSIDE + 1: the first
        for one, other in ways
        if (one, other) not in aside
    ]
    leave = {one for one, _ in drawn}
    unseen = [(box, end) for box in range(1, end) if box not in leave]
    found = lay_out([(0.0, 0.0), *sizes, (0.0, 0.0)], [*drawn, *unseen])
    led = iter(found.routes)
    beside = _BesideAll(found, sizes)
    return found._replace(
        centers=found.centers[1:-1],
        routes=tuple(beside.route(*way) if way in aside else next(led) for way in ways),
        width=found.width + (LANE_GAP if aside else 0.0),
    )


class _BesideAll:
    """Routes from the borders of a part to its boxes, on the right of all of them.

    Args:
        layout: Of the boxes; the borders are two more, the first and the last.
        sizes: Of the boxes.
    """

    def __init__(self, layout: BoxLayout, sizes: Sequence[tuple[float, float]]) -> None:
        (self._from, _), *self._centers, (self._to, _) = layout.centers
        self._sizes = sizes
        self._height = layout.height
        self._lane = layout.width + LANE_GAP
        self._halves: dict[float, float] = {}
        for (_, y), (_, height) in zip(self._centers, sizes, strict=True):
            self._halves[y] = max(self._halves.get(y, 0.0), height / 2)
        self._rows = sorted(self._halves)

    def route(self, producer: int, consumer: int) -> tuple[Point, ...]:
        """From a border down the line as far as the row of the box, or the reverse."""
        is_entry = producer == OUTSIDE
        box, side = (consumer, -1) if is_entry else (producer, 1)
        (x, y), (width, height) = self._centers[box], self._sizes[box]
        port = x + 0.3 * width
        stops = [(self._from, 0.0) if is_entry else (self._to, self._height)]
        outer = self._rows[0 if is_entry else -1]
        if y != outer:
            near = self._rows[self._rows.index(y) + side]
            stops.append((self._lane, outer + side * self._halves[outer]))
            stops.append((self._lane, near - side * self._halves[near]))
        stops.append((port, y + side * self._halves[y]))
        stops.append((port, y + side * height / 2))
        if not is_entry:
            stops.reverse()
        return (stops[0], *(point for stop in stops[1:] for point in (stop,) * 3))


class _Drawn:
    """The rows of the tables, as numbers.

    Args:
        texts: Gets the texts of boxes.
    """

    def __init__(self, texts: TextTable) -> None:
        self._texts = texts
        self._parts: list[tuple[int, ...]] = []
        self._boxes: list[tuple[int, ...]] = []
        self._chips: list[tuple[int, ...]] = []
        self._members: list[tuple[int, ...]] = []
        self._ways: list[tuple[int, ...]] = []
        self._stops: list[tuple[int, ...]] = []

    @property
    def num_boxes(self) -> int:
        """Number of boxes."""
        return len(self._boxes)

    def add(
        self,
        interior: _Interior,
        nodes: Sequence[GraphNode],
        scene: Scene,
        ways: Sequence[tuple[int, int]],
        layout: BoxLayout,
    ) -> int:
        """Add the inside of a part; returns the place of its first box."""
        pass_, box, part, _, omitted = interior
        graph, place = pass_.graph, self._texts.place
        number, first = len(self._parts), len(self._boxes)
        self._parts.append(
            (pass_.task, box, round(layout.width), round(layout.height), omitted)
        )
        for at, (inside, look) in enumerate(zip(part.inside, scene.boxes, strict=True)):
            node, (x, y) = nodes[at], layout.centers[at]
            self._boxes.append(
                (
                    number,
                    node.id,
                    round(x),
                    round(y),
                    round(look.width),
                    round(look.height),
                    place(look.badge),
                    round(look.badge_width),
                    place(look.title),
                    place(look.subtitle),
                    node.num_nodes,
                )
            )
            # Of many leaves the last chip stands for several: it selects the first.
            self._chips += [
                (first + at, graph.nodes[leaf].id, place(chip.text))
                for leaf, chip in zip(pass_.leaves_of(inside), look.chips, strict=False)
            ]
        for (one, other), route in zip(ways, layout.routes, strict=True):
            self._stops += [(round(x), round(y)) for x, y in route[::3]]
            ends = [end if end == OUTSIDE else first + end for end in (one, other)]
            self._ways.append((number, *ends, len(self._stops)))
        return first

    def contain(self, box: int, nodes: Iterable[GraphNode]) -> None:
        """Say which nodes a box stands for that is not opened."""
        self._members += [(box, node.id) for node in nodes]

    def packed(self, nodes: RowPlaces) -> Drawings:
        """The tables."""
        boxes = BoxTable(*_columns(self._boxes, len(BoxTable._fields)))
        chips = ChipTable(*_columns(self._chips, len(ChipTable._fields)))
        members = MemberTable(*_columns(self._members, len(MemberTable._fields)))
        return Drawings(
            parts=PartTable(*_columns(self._parts, len(PartTable._fields))),
            boxes=boxes._replace(node=nodes.of(boxes.node)),
            chips=chips._replace(node=nodes.of(chips.node)),
            members=members._replace(node=nodes.of(members.node)),
            ways=WayTable(*_columns(self._ways, len(WayTable._fields))),
            stops=StopTable(*_columns(self._stops, len(StopTable._fields))),
        )


def _columns(rows: Sequence[tuple[int, ...]], num: int) -> Iterable[Column]:
    return np.array(rows, np.int64).reshape(-1, num).T
