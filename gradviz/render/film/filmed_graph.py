"""The graph of a film: the places of its boxes, and the nodes each stands for."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

from gradviz.analysis.graphs.backward_graph import (
    MAX_SIMPLIFIED,
    Graph,
    GraphNode,
    build_graph,
)
from gradviz.analysis.graphs.nested_passes import every_graph, nest_passes
from gradviz.analysis.graphs.overview import levels_of_detail, overview
from gradviz.analysis.graphs.simplification import limit_nodes, split_shared_leaves
from gradviz.analysis.tables.worker_parts import with_parts
from gradviz.render.film.small_boxes import (
    CHIP_GAP,
    CHIP_HEIGHT,
    HEAD_HEIGHT,
    LeafChip,
    drawn_nodes,
    leaf_chips,
    node_ids,
    small_scene,
)
from gradviz.render.graph.chips import leaves_by_user
from gradviz.render.graph.graph_scene import Box, Scene, build_scene
from gradviz.render.graph.module_frames import (
    Rectangle,
    place_frames,
    place_labels,
    rectangles,
    with_room,
)
from gradviz.render.graph.nesting import grown, origin, panels, reach_beyond
from gradviz.render.layout.placed_graph import BoxLayout, place
from gradviz.render.layout.routing import Point
from gradviz.trace.format.model import Trace

#: A graph of more boxes is not drawn: it would be too small to be read.
MAX_BOXES: Final = 80
#: A graph is simplified until it fits at this scale: smaller texts cannot be read.
MIN_SCALE: Final = 0.8
#: Pixels by which layers lie closer to each other than in a picture.
SQUEEZE: Final = 12.0


class FilmedBox(NamedTuple):
    """A box, or a leaf in one, where it stands in the picture.

    Attributes:
        title: Its name, clean but not yet escaped.
        badge: Its place in the order of execution, empty if it did not run.
        badge_width: The part of the width that the badge takes.
        place: Its borders.
        is_chip: True of a leaf that is drawn inside of another box.
        group: Index of its group in `FilmedGraph.groups`.
        nodes: The ids of the nodes that it stands for.
    """

    title: str
    badge: str
    badge_width: float
    place: Rectangle
    is_chip: bool
    group: int
    nodes: tuple[int, ...]


class FilmedEdge(NamedTuple):
    """A way of gradients between two of `FilmedGraph.boxes`, by their positions."""

    producer: int
    consumer: int
    route: tuple[Point, ...]


class FilmedGraph(NamedTuple):
    """Everything of a graph that stands still.

    Attributes:
        graph: Graph that is drawn.
        groups: Of each pass that is drawn its parts, the ids in the trace.
        boxes: Those that hold others come before these.
        edges: The ways between them.
        frames: Parts of the model, and passes inside of nodes: left end of the label,
            label, borders. Those that hold others come before these.
        width: Of all.
        height: Of all.
    """

    graph: Graph
    groups: tuple[tuple[int, ...], ...]
    boxes: tuple[FilmedBox, ...]
    edges: tuple[FilmedEdge, ...]
    frames: tuple[tuple[float, str, Rectangle], ...]
    width: float
    height: float


def filmed_graph(trace: Trace, task: int, room: tuple[float, float]) -> FilmedGraph:
    """Place the graph of a pass in as much detail as can be read in some room.

    Args:
        trace: The trace.
        task: The pass.
        room: Maximum width and height in pixels. What is larger has to be scaled.
    """
    whole = build_graph(trace, task, MAX_SIMPLIFIED)
    best, largest = None, -1.0
    for simpler, are_boxes in product(levels_of_detail(whole), (False, True)):
        if len(drawn_nodes(simpler)) > MAX_BOXES:
            continue
        nested = nest_passes(simpler, trace, overview, MAX_BOXES, are_boxes=are_boxes)
        if are_boxes and len(every_graph(nested)) == 1:
            continue
        found = _placed(nested, trace)
        scale = min(room[0] / found.width, room[1] / found.height)
        if scale > largest:
            best, largest = found, scale
        if scale >= MIN_SCALE:
            break
    return best or _placed(limit_nodes(overview(whole), MAX_BOXES), trace)


def _placed(graph: Graph, trace: Trace) -> FilmedGraph:
    graph = split_shared_leaves(graph)
    scene = build_scene(graph, "device", for_page=True)._replace(carried=())
    scene, layout = grown(small_scene(scene, graph), _laid_out)
    left, right = reach_beyond(scene, layout)
    rows = _GraphRows(trace)
    rows.add(graph, scene, layout, (left, 0.0))
    return FilmedGraph(
        graph=graph,
        groups=tuple(rows.groups),
        boxes=tuple(rows.boxes),
        edges=tuple(rows.edges),
        frames=tuple(rows.frames),
        width=max(layout.width + left + right, 1.0),  # of no node at all
        height=max(layout.height, 1.0),
    )


def _laid_out(scene: Scene) -> tuple[Scene, BoxLayout]:
    """A layout whose layers lie `SQUEEZE` closer to each other than in a picture."""
    sizes = [(wide, high - SQUEEZE) for wide, high in scene.sizes]
    layout = place(sizes, scene.edges, scene.aside)
    half = SQUEEZE / 2
    squeezed = layout._replace(
        centers=tuple((x, y + half) for x, y in layout.centers),
        routes=tuple(map(_from_border_to_border, layout.routes)),
        height=layout.height + SQUEEZE,
    )
    return scene, with_room(scene, squeezed)


def _from_border_to_border(route: tuple[Point, ...]) -> tuple[Point, ...]:
    """A way from a box that was made smaller to another, as the boxes are drawn."""
    (x, y), *between, (to_x, to_y) = route
    inner = ((one, other + SQUEEZE / 2) for one, other in between)
    return ((x, y + SQUEEZE), *inner, (to_x, to_y))


class _GraphRows:
    """Boxes, edges and frames of a graph and of those inside of it.

    Args:
        trace: Trace that they are of.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.groups: list[tuple[int, ...]] = []
        self.boxes: list[FilmedBox] = []
        self.edges: list[FilmedEdge] = []
        self.frames: list[tuple[float, str, Rectangle]] = []

    def add(self, graph: Graph, scene: Scene, layout: BoxLayout, corner: Point) -> None:
        """Add a graph whose left upper corner lies there."""
        group = len(self.groups)
        self.groups.append(tuple(sorted(with_parts(self._trace, [graph.task]))))
        frames = place_frames(scene, layout)
        labels = place_labels(frames, layout.routes)
        for (left, text), (_, border) in zip(labels, frames, strict=True):
            self.frames.append((left + corner[0], text, _moved(border, corner)))
        drawn = drawn_nodes(graph)
        first = len(scene.boxes) - len(drawn)
        nodes = [None] * first + [graph.nodes[at] for at in drawn]
        begin = len(self.boxes)
        place_of = [begin + at for at in range(len(scene.boxes))]
        borders = rectangles(scene, layout)
        for box, node, border in zip(scene.boxes, nodes, borders, strict=True):
            self.boxes.append(_filmed(box, node, group, _moved(border, corner)))
        for (one, other), route in zip(scene.edges, layout.routes, strict=True):
            moved = tuple((x + corner[0], y + corner[1]) for x, y in route)
            self.edges.append(FilmedEdge(place_of[one], place_of[other], moved))
        leaves = leaves_by_user(graph)
        for at, index in enumerate(drawn, first):
            own = [graph.nodes[leaf] for leaf in leaves.get(index, ())]
            self.boxes += _filmed_chips(self.boxes[begin + at], leaf_chips(own))
        for at, index in enumerate(drawn, first):
            if graph.nodes[index].nested:
                called = graph.nodes[index].nested
                inside = layout.inside[at]
                self._add_passes(
                    called, scene.boxes[at], inside, self.boxes[begin + at]
                )

    def _add_passes(
        self,
        called: Sequence[Graph],
        box: Box,
        inside: Sequence[BoxLayout],
        filmed: FilmedBox,
    ) -> None:
        left, top = filmed.place.left, filmed.place.top
        borders = panels(box, inside)
        for graph, scene, layout, border in zip(
            called, box.passes, inside, borders, strict=True
        ):
            panel = _moved(border, (left, top))
            self.frames.append((panel.left, "", panel))
            x, y = origin(scene, layout)
            self.add(graph, scene, layout, (panel.left + x, panel.top + y))


def _filmed(
    box: Box, node: GraphNode | None, group: int, border: Rectangle
) -> FilmedBox:
    """A box; without a node it is that of a pass."""
    return FilmedBox(
        title=box.title,
        badge=box.badge,
        badge_width=box.badge_width,
        place=border,
        is_chip=False,
        group=group,
        nodes=() if node is None else node_ids(node),
    )


def _filmed_chips(box: FilmedBox, chips: Sequence[LeafChip]) -> Iterator[FilmedBox]:
    """The leaves of a box, beside each other below its name."""
    left = box.place.left + box.badge_width + CHIP_GAP
    top = box.place.top + HEAD_HEIGHT - 1
    for chip in chips:
        border = Rectangle(left, top, left + chip.wide, top + CHIP_HEIGHT)
        yield FilmedBox(chip.text, "", 0.0, border, True, box.group, chip.nodes)
        left += chip.wide + CHIP_GAP


def _moved(border: Rectangle, by: Point) -> Rectangle:
    x, y = by
    left, top, right, bottom = border
    return Rectangle(left + x, top + y, right + x, bottom + y)
