"""Boxes of a film: a name, a number, and chips for leaves.

A film has to be readable from the back of a room, so a box shows no more than that.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from gradviz.analysis.graphs.backward_graph import Graph, GraphNode
from gradviz.render import style
from gradviz.render.graph.chips import leaves_by_user
from gradviz.render.graph.graph_scene import PADDING, Box, Scene
from gradviz.render.words.text import clean, operation, shorten, shorten_front, width

HEAD_HEIGHT: Final = 24.0
CHIP_HEIGHT: Final = 15.0
CHIP_GAP: Final = 4.0
CHIP_SIZE: Final = 9.5
#: More leaves of one box share the last chip.
MAX_CHIPS: Final = 4
MAX_NAME: Final = 28
#: The room of the dots that count gradients.
DOTS_WIDTH: Final = 34.0


class LeafChip(NamedTuple):
    """A leaf, or the last ones of very many.

    Attributes:
        text: Its name, clean but not yet escaped.
        wide: Width in pixels.
        nodes: The ids of the nodes that it stands for.
    """

    text: str
    wide: float
    nodes: tuple[int, ...]


def small_scene(scene: Scene, graph: Graph) -> Scene:
    """Return a scene whose boxes are no larger than a film needs them."""
    scene = scene.with_frames(one for one in scene.frames if len(one.members) > 1)
    leaves = leaves_by_user(graph)
    num_given = Counter(edge.consumer for edge in graph.edges)
    drawn = drawn_nodes(graph)
    first = len(scene.boxes) - len(drawn)  # a box for the pass itself, if any
    boxes = list(scene.boxes)
    for index, at in enumerate(drawn, first):
        node = graph.nodes[at]
        chips = leaf_chips([graph.nodes[leaf] for leaf in leaves.get(at, ())])
        passes = zip(boxes[index].passes, node.nested, strict=True)
        called = tuple(small_scene(one, nested) for one, nested in passes)
        is_counted = num_given[at] > 1 or bool(node.members)
        small = _small_box(boxes[index], node, chips, is_counted=is_counted)
        boxes[index] = small._replace(passes=called)
    return scene._replace(boxes=tuple(boxes))


def drawn_nodes(graph: Graph) -> list[int]:
    """Return the positions in `Graph.nodes` of nodes with a box of their own."""
    folded = {leaf for own in leaves_by_user(graph).values() for leaf in own}
    return [index for index in range(len(graph.nodes)) if index not in folded]


def leaf_chips(leaves: Sequence[GraphNode]) -> list[LeafChip]:
    """Return the chips of a box's leaves; of very many the last stands for the rest."""
    alone = leaves if len(leaves) <= MAX_CHIPS else leaves[: MAX_CHIPS - 1]
    rest = leaves[len(alone) :]
    told = [(_leaf_name(one), node_ids(one)) for one in alone]
    if rest:
        told.append(
            (f"+{len(rest):,}", tuple(id_ for one in rest for id_ in node_ids(one)))
        )
    return [LeafChip(text, width(text, CHIP_SIZE) + 12, nodes) for text, nodes in told]


def node_ids(node: GraphNode) -> tuple[int, ...]:
    """Return the ids of the nodes that a box stands for."""
    return tuple({one.id: None for one in node.members or (node,)})


def _small_box(
    box: Box, node: GraphNode, chips: Sequence[LeafChip], *, is_counted: bool
) -> Box:
    """A box with room for its name, its leaves, and maybe for what is counted."""
    title = _title(box, node)
    dots = DOTS_WIDTH if is_counted else 2.0
    if node.num_nodes > 1:
        dots = width(f"/{node.num_nodes:,}{node.num_nodes:,}", style.SMALL_SIZE) + 8
    wide = width(title, style.TEXT_SIZE) + 2 * PADDING + dots
    across = sum(chip.wide + CHIP_GAP for chip in chips) + 2 * CHIP_GAP
    return box._replace(
        title=title,
        subtitle="",
        chips=(),
        width=math.ceil(box.badge_width + max(wide, across)),
        height=HEAD_HEIGHT + (CHIP_HEIGHT + CHIP_GAP if chips else 0.0),
    )


def _title(box: Box, node: GraphNode) -> str:
    """``Addmm`` for ``AddmmBackward0``, as in a replay."""
    name, title = clean(node.name), box.title.replace("\n", "")
    if node.is_part or not title.startswith(name):
        return shorten_front(title, MAX_NAME)
    return shorten(operation(name), MAX_NAME) + title[len(name) :]


def _leaf_name(leaf: GraphNode) -> str:
    """The parameter without the modules that hold it."""
    name = leaf.parameters[0].rpartition(".")[2] if leaf.parameters else "leaf"
    return shorten(clean(name), MAX_NAME // 2)
