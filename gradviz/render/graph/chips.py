"""Leaves as chips: a leaf is drawn in the boxes that lead to it, not as one of its own.

Nearly half of the nodes of a model's graph are leaves, and each does the same: it adds
up the gradient of one parameter. As boxes they would push the nodes that compute apart,
and a shared one would drag edges through the whole picture.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from gradviz.analysis.graphs.backward_graph import LEAF, Graph, GraphNode
from gradviz.render import style
from gradviz.render.graph.box_titles import without_shared
from gradviz.render.words.text import clean, count, shape, shorten_front, width

#: A box shows so many of its leaves, the last chip says how many more there are.
MAX_CHIPS: Final = 6
CHIP_HEIGHT: Final = 16.0
#: A chip is one line; of a longer name it has the end.
MAX_NAME: Final = 88
CHIP_GAP: Final = 3.0
#: Between a chip's text and its round ends.
CHIP_PADDING: Final = 7.0
TIMES: Final = "\N{MULTIPLICATION SIGN}"


class Chip(NamedTuple):
    """A leaf, as it is drawn in a box that leads to it. Texts are not yet escaped.

    Attributes:
        text: Its parameter, how large it is, and its number in the execution order.
        tooltip: All that is known, a line each.
        color: Of the border.
        fill: Of the rest.
        outline: The border's kind; see `gradviz.render.graph.graph_scene.Box`.
    """

    text: str
    tooltip: str
    color: str
    fill: str
    outline: style.Outline


def leaves_by_user(graph: Graph) -> dict[int, tuple[int, ...]]:
    """Of each node that leads to leaves, which: positions in `Graph.nodes`.

    A leaf that nothing leads to, as where a pass begins at it, is in none.
    """
    inner = {edge.producer for edge in graph.edges}
    leaves: dict[int, list[int]] = defaultdict(list)
    for edge in graph.edges:
        if edge.consumer not in inner and _is_leaf(graph.nodes[edge.consumer]):
            leaves[edge.producer].append(edge.consumer)
    return {user: tuple(dict.fromkeys(own)) for user, own in leaves.items()}


def num_uses(graph: Graph, leaves: Mapping[int, tuple[int, ...]]) -> Counter[int]:
    """By the id of a leaf, how many chips stand for it."""
    return Counter(graph.nodes[leaf].id for own in leaves.values() for leaf in own)


def chip_text(leaf: GraphNode, uses: int, module: str = "", *, value: str = "") -> str:
    """Text such as ``weight (48, 192) · 14``, or with a value instead of its shape.

    Args:
        leaf: The leaf.
        uses: Number of chips that stand for it.
        module: The module of the node that leads to it, which its name leaves out.
        value: Text to show instead of its shape.
    """
    size = next((shape(one.shape) for one in leaf.inputs if one is not None), "")
    size = value or size
    name = shorten_front(clean(_short_name(leaf, module)), MAX_NAME)
    parts = [f"{name} {size}".strip()]
    parts += [] if leaf.order is None else [numbers(leaf)]
    if leaf.omitted_edges:
        parts.append(f"{count(leaf.omitted_edges, 'edge')} left out")
    parts += [f"{TIMES}{uses}"] if uses > 1 else []
    return " · ".join(parts)


def numbers(node: GraphNode) -> str:
    """Its number; of several nodes the first and the last, a gap between as ``…``."""
    if node.orders is None:
        return ""
    first, last = node.orders
    if first == last:
        return str(first)
    is_gapless = last - first + 1 == node.num_nodes
    return f"{first}{'-' if is_gapless else '…'}{last}"


def chips_size(chips: tuple[Chip, ...]) -> tuple[float, float]:
    """Return the width and height of a box's chips, one below the other."""
    if not chips:
        return 0.0, 0.0
    wide = max(width(chip.text, style.SMALL_SIZE) for chip in chips) + 2 * CHIP_PADDING
    return math.ceil(wide), len(chips) * (CHIP_HEIGHT + CHIP_GAP) + CHIP_GAP


def limited(chips: tuple[Chip, ...]) -> tuple[Chip, ...]:
    """At most `MAX_CHIPS`; the last one names those that had no room."""
    if len(chips) <= MAX_CHIPS:
        return chips
    rest = chips[MAX_CHIPS - 1 :]
    told = "\n".join(chip.text for chip in rest)
    more = rest[0]._replace(text=f"and {len(rest):,} more", tooltip=told)
    return (*chips[: MAX_CHIPS - 1], more)


def _is_leaf(node: GraphNode) -> bool:
    """Return whether it is a leaf; saved tensors are drawn like one.

    One that failed is not, nor one that holds passes: those need the room of a box.
    """
    if node.error or node.nested:
        return False
    return node.name == LEAF or node.saved_by is not None


def _short_name(leaf: GraphNode, module: str) -> str:
    """The parameter without the modules around its user: ``weight``, ``weights.3``."""
    if not leaf.parameters:
        return leaf.name
    name = without_shared(leaf.parameters[0], module)
    return f"{name} = …" if len(leaf.parameters) > 1 else name
