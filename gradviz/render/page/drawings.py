"""Drawings: graphs of passes laid out for a page, whole and with modules collapsed."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

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
    trace: Trace, tasks: Sequence[int], nodes: RowPlaces, texts: TextTable
) -> tuple[Drawing, ...]:
    """The graph of each pass: whole, and at each depth at which it has fewer boxes.

    Args:
        trace: The trace.
        tasks: The passes; the first `MAX_DRAWN` are drawn, while there are no more than
            `MAX_ALL` boxes.
        nodes: The places of nodes.
        texts: Gets those of the boxes.
    """
    found: list[Drawing] = []
    left = MAX_ALL
    for number, task in enumerate(tasks[:MAX_DRAWN]):
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
    layout = lay_out([(box.width, box.height) for box in scene.boxes], scene.edges)
    x, y = _columns(2, layout.centres)
    width, height = _columns(2, [(box.width, box.height) for box in scene.boxes])
    box_of, member = _columns(
        2,
        [
            (box, one.id)
            for box, place in enumerate(drawn)
            for whole in (place, *leaves.get(place, ()))
            for one in graph.nodes[whole].members or (graph.nodes[whole],)
        ],
    )
    chip_box, chip_node, chip_text = _columns(
        3,
        [
            (box, graph.nodes[leaf].id, texts.place(chip.text))
            for box, place in enumerate(drawn)
            for leaf, chip in zip(
                leaves.get(place, ()), scene.boxes[box].chips, strict=False
            )  # of very many leaves the last chip stands for several
        ],
    )
    producer, consumer = _columns(2, scene.edges)
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
            title=texts.places([box.title for box in scene.boxes]),
            subtitle=texts.places([box.subtitle for box in scene.boxes]),
            num_nodes=np.array([graph.nodes[one].num_nodes for one in drawn], np.int64),
        ),
        chips=ChipTable(chip_box, nodes.of(chip_node), chip_text),
        members=MemberTable(box_of, nodes.of(member)),
        ways=WayTable(
            producer,
            consumer,
            np.cumsum([len(route) for route in layout.routes], dtype=np.int64),
        ),
        points=PointTable(
            *_columns(2, [point for route in layout.routes for point in route])
        ),
    )


def _columns(number: int, rows: Sequence[tuple[float, ...]]) -> npt.NDArray[np.int64]:
    """So many columns of rows, rounded."""
    return np.array(rows, np.float64).reshape(-1, number).T.round().astype(np.int64)
