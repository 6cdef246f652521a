"""Drawings: graphs of passes laid out for a page, whole and with modules collapsed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from gradviz.analysis.graph import Graph, build_graph
from gradviz.analysis.modules import collapse_modules, max_depth, num_boxes
from gradviz.analysis.simplification import inner_nodes, limit_nodes
from gradviz.render.chips import leaves_by_user
from gradviz.render.layout import place as lay_out
from gradviz.render.page.columns import RowPlaces, TextTable
from gradviz.render.page.tables import (
    BoxTable,
    ChipTable,
    MemberTable,
    PointTable,
    WayTable,
)
from gradviz.render.scene import build_scene
from gradviz.trace.model import Trace
from gradviz.trace.table import Column

#: A drawing has no more boxes, all drawings of a page together no more than `MAX_ALL`.
MAX_BOXES: Final = 8_000
MAX_ALL: Final = 24_000

#: So many passes have drawings.
MAX_DRAWN: Final = 8


class DrawingHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What a drawing is.

    Attributes:
        task: The place of its pass.
        depth: How many names of a module below the model's own have boxes; None where
            every node has one.
        width: In pixels.
        height: In pixels.
        omitted: Nodes that are left out, because there are too many.
    """

    task: int
    depth: int | None
    width: int
    height: int
    omitted: int


class Drawing(NamedTuple):
    """A graph, laid out."""

    header: DrawingHeader
    boxes: BoxTable
    chips: ChipTable
    members: MemberTable
    ways: WayTable
    points: PointTable


def draw_passes(
    trace: Trace, tasks: Mapping[int, int], nodes: RowPlaces, texts: TextTable
) -> tuple[Drawing, ...]:
    """The graph of each pass: whole, and at each depth at which it has fewer boxes.

    Args:
        trace: The trace.
        tasks: Passes, and the place of each; the first `MAX_DRAWN` are drawn, while
            there are no more than `MAX_ALL` boxes.
        nodes: The places of nodes.
        texts: Gets those of the boxes.
    """
    found: list[Drawing] = []
    left = MAX_ALL
    for task, number in list(tasks.items())[:MAX_DRAWN]:
        for depth, graph in levels(build_graph(trace, task)):
            if len(graph.nodes) <= left:
                left -= len(graph.nodes)
                found.append(_draw(graph, number, depth, nodes, texts))
    return tuple(found)


def levels(graph: Graph) -> Iterator[tuple[int | None, Graph]]:
    """The depths at which a graph is worth drawing, from the coarsest; None: whole.

    Of a graph that is too big at every depth some of the nodes.
    """
    num_inner = len(inner_nodes(graph))
    before = 0
    for depth in range(max_depth(graph) + 1):
        num = num_boxes(graph, depth)
        if before < num < num_inner and num <= MAX_BOXES:
            before = num
            yield depth, collapse_modules(graph, depth)
    if not before or len(graph.nodes) <= MAX_BOXES:
        yield None, limit_nodes(graph, MAX_BOXES)


def _draw(
    graph: Graph, number: int, depth: int | None, nodes: RowPlaces, texts: TextTable
) -> Drawing:
    leaves = leaves_by_user(graph)
    chips = {leaf for own in leaves.values() for leaf in own}
    drawn = [place for place in range(len(graph.nodes)) if place not in chips]
    scene = build_scene(graph)
    sizes = [(box.width, box.height) for box in scene.boxes]
    layout = lay_out(sizes, scene.edges)
    x, y = _pixels(layout.centres)
    width, height = _pixels(sizes)
    box_of, member = _pairs(
        [
            (box, one.id)
            for box, place in enumerate(drawn)
            for whole in (place, *leaves.get(place, ()))
            for one in graph.nodes[whole].members or (graph.nodes[whole],)
        ],
    )
    # Of very many leaves the last chip stands for several: it selects the first.
    shown = [
        (box, graph.nodes[leaf].id, chip.text)
        for box, place in enumerate(drawn)
        for leaf, chip in zip(
            leaves.get(place, ()), scene.boxes[box].chips, strict=False
        )
    ]
    chip_box, chip_node = _pairs([(box, id_) for box, id_, _ in shown])
    producer, consumer = _pairs(scene.edges)
    return Drawing(
        header=DrawingHeader(
            task=number,
            depth=depth,
            width=round(layout.width),
            height=round(layout.height),
            omitted=graph.omitted,
        ),
        boxes=BoxTable(
            node=nodes.of(np.array([graph.nodes[one].id for one in drawn], np.int64)),
            x=x,
            y=y,
            width=width,
            height=height,
            badge=texts.places([box.badge for box in scene.boxes]),
            badge_width=_pixels([(box.badge_width, 0.0) for box in scene.boxes])[0],
            title=texts.places([box.title for box in scene.boxes]),
            subtitle=texts.places([box.subtitle for box in scene.boxes]),
            num_nodes=np.array([graph.nodes[one].num_nodes for one in drawn], np.int64),
        ),
        chips=ChipTable(
            chip_box, nodes.of(chip_node), texts.places([text for *_, text in shown])
        ),
        members=MemberTable(box_of, nodes.of(member)),
        ways=WayTable(
            producer,
            consumer,
            np.cumsum([len(route) for route in layout.routes], dtype=np.int64),
        ),
        points=PointTable(
            *_pixels([point for route in layout.routes for point in route])
        ),
    )


def _pixels(points: Sequence[tuple[float, float]]) -> tuple[Column, Column]:
    x, y = np.array(points, np.float64).reshape(-1, 2).T.round().astype(np.int64)
    return x, y


def _pairs(pairs: Sequence[tuple[int, int]]) -> tuple[Column, Column]:
    one, other = np.array(pairs, np.int64).reshape(-1, 2).T
    return one, other
