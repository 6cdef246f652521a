"""What a picture of a graph shows: boxes with text and colours, a legend, a title.

Where the boxes go is for `gradviz.render.layout` or ``dot``; in which format they are
written for `gradviz.render.svg` and `gradviz.render.dot`.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from gradviz.analysis.graph import LEAF, Graph, GraphEdge, GraphNode
from gradviz.analysis.modules import Stretch, stretches
from gradviz.analysis.neighbourhood import critical_edges
from gradviz.analysis.nested_passes import every_graph
from gradviz.analysis.op_families import op_family
from gradviz.analysis.uncollected import uncollected
from gradviz.render import style
from gradviz.render.chips import (
    TIMES,
    Chip,
    chip_text,
    chips_size,
    leaves_by_user,
    limited,
    num_uses,
    numbers,
)
from gradviz.render.colouring import ColourBy, Colouring, colouring
from gradviz.render.style import Outline
from gradviz.render.text import (
    MAX_TITLE,
    clean,
    count,
    duration,
    of_program,
    place,
    shape,
    shorten,
    shorten_front,
    width,
)
from gradviz.render.tooltip import calls, tooltip, which

#: Pictures of more nodes are for an overview.
MAX_DETAILED: Final = 3_000
PADDING: Final = 9.0
#: Parts of models that lie deeper have no frames of their own.
MAX_DEPTH: Final = 8
#: More edges than these between the same two boxes are drawn as one.
MAX_PARALLEL: Final = 4
#: Longer errors are cut; all of one is in the tooltip.
MAX_ERROR: Final = 72
#: Longer names of files lose their begin.
MAX_PLACE: Final = 24


class Box(NamedTuple):
    """One node as it is drawn. Texts are clean, but not yet escaped.

    Attributes:
        badge: The execution order number, empty for a node that did not run.
        title: Its name.
        subtitle: What else is worth showing.
        tooltip: All that is known, a line each; of a big picture, only the name.
        colour: Of the badge and the border.
        fill: Of the rest.
        outline: The border's kind: did not run is dashed, captured is dotted, failed
            is an alarm.
        is_leaf: Leaves have round ends.
        width: Of the whole box.
        height: Of the whole box.
        badge_width: The part of the width that the badge takes.
        chips: Its leaves, below the texts.
        is_aside: Whether it stands on the right of the one box that leads to it, as the
            transposed weight of a linear layer. Below, it would stand among what comes
            next, of which it is no part.
        passes: What it called, below the chips; see `gradviz.render.nesting`.
    """

    badge: str
    title: str
    subtitle: str
    tooltip: str
    colour: str
    fill: str
    outline: Outline
    is_leaf: bool
    width: float
    height: float
    badge_width: float
    chips: tuple[Chip, ...] = ()
    is_aside: bool = False
    passes: tuple["Scene", ...] = ()


class LegendEntry(NamedTuple):
    """One line of the legend."""

    text: str
    colour: str
    fill: str
    outline: Outline = "plain"


class ModuleFrame(NamedTuple):
    """Boxes that belong together, because one part of a model made their nodes.

    Attributes:
        label: The part, such as ``encoder.0``; clean, but not yet escaped.
        members: Positions in `Scene.boxes`.
    """

    label: str
    members: tuple[int, ...]


class Scene(NamedTuple):
    """All that a picture shows.

    Attributes:
        title: What it is.
        subtitle: How much of it.
        notes: What was done to show less of it; empty if nothing was.
        boxes: One for each node of the graph, in its order, but for the leaves that
            are chips in others.
        edges: Pairs of positions in `boxes`.
        legend: What the colours and borders mean.
        scale: The least and the most time, written out, if colours stand for time.
        is_detailed: Whether there are few enough boxes for all details. The others
            have a name and a number only, and their edges are straight.
        bold: Which of the edges the critical path takes, as positions.
        frames: What belongs together; of a big picture, none.
    """

    title: str
    subtitle: str
    boxes: tuple[Box, ...]
    edges: tuple[tuple[int, int], ...]
    legend: tuple[LegendEntry, ...]
    scale: tuple[str, str] | None
    is_detailed: bool
    frames: tuple[ModuleFrame, ...] = ()
    notes: str = ""
    bold: frozenset[int] = frozenset()

    @property
    def sizes(self) -> list[tuple[float, float]]:
        """Width and height of each box."""
        return [(box.width, box.height) for box in self.boxes]

    @property
    def aside(self) -> list[int]:
        """Which boxes stand on the right of another one."""
        return [at for at, box in enumerate(self.boxes) if box.is_aside]


@uncollected()
def build_scene(
    graph: Graph,
    colour_by: ColourBy = "auto",
    uses: Counter[int] | None = None,
    *,
    has_tooltips: bool = True,
) -> Scene:
    """Decide on every text, colour and size of a picture of `graph`.

    Args:
        graph: What the picture shows.
        colour_by: What the colours of nodes stand for.
        uses: How many chips stand for each leaf, by its id, where there are others
            elsewhere.
        has_tooltips: Whether boxes and chips have any.
    """
    every = every_graph(graph)
    colours = {one.task: colouring(one, colour_by, every) for one in every}
    scene = _scene(graph, colours, uses, has_tooltips=has_tooltips)
    legend = colours[graph.task].legend
    return scene._replace(
        title=_graph_title(graph),
        subtitle=_subtitle(graph),
        legend=(
            *(LegendEntry(text, colour, colour) for text, colour in legend),
            *_marks(every),
        ),
        scale=colours[graph.task].scale,
        notes=_notes(graph),
    )


def _graph_title(graph: Graph) -> str:
    if graph.task < 0:
        return "Backward graph"
    return f"Backward pass {graph.task}{of_program(graph.program)}"


def _scene(
    graph: Graph,
    colours: Mapping[int, Colouring],
    uses: Counter[int] | None = None,
    *,
    has_tooltips: bool = True,
) -> Scene:
    """The boxes and edges of a graph, and of the graphs inside of it."""
    nodes = graph.nodes
    own = colours[graph.task]
    leaves = leaves_by_user(graph)
    uses = num_uses(graph, leaves) if uses is None else uses
    folded = {leaf for own in leaves.values() for leaf in own}
    drawn = [index for index in range(len(nodes)) if index not in folded]
    place_of = {index: at for at, index in enumerate(drawn)}
    is_detailed = len(drawn) <= MAX_DETAILED
    tell = (tooltip if is_detailed else _in_short) if has_tooltips else _nothing
    critical = {graph.edges[at] for at in critical_edges(graph)}
    ways = _ways((one for one in graph.edges if one.consumer not in folded), critical)
    num_in = Counter(edge.consumer for edge in ways)
    ends = {index for index in leaves if num_in[index] == 1}
    ends -= {edge.producer for edge in ways}
    return Scene(
        title="",
        subtitle="",
        boxes=tuple(
            _box(
                nodes[index],
                own,
                is_detailed,
                tell,
                tuple(
                    _chip(nodes[leaf], own, uses, tell)
                    for leaf in leaves.get(index, ())
                ),
                tuple(_called(one, colours) for one in nodes[index].nested),
            )._replace(is_aside=index in ends and _is_view(nodes[index]))
            for index in drawn
        ),
        edges=tuple(
            (place_of[edge.producer], place_of[edge.consumer]) for edge in ways
        ),
        bold=frozenset(at for at, edge in enumerate(ways) if edge in critical),
        legend=(),
        scale=None,
        is_detailed=is_detailed,
        frames=_frames(graph, place_of) if is_detailed else (),
    )


def _called(graph: Graph, colours: Mapping[int, Colouring]) -> Scene:
    """A pass inside of the node that called it: a box for the pass, then its graph."""
    scene = _scene(graph, colours)
    if len(graph.nodes) == 1 and graph.nodes[0].members:
        return scene
    consumers = {consumer for _, consumer in scene.edges}
    roots = [one for one in range(len(scene.boxes)) if one not in consumers]
    return scene._replace(
        boxes=(_pass_box(graph), *scene.boxes),
        edges=(
            *((0, 1 + root) for root in roots),
            *((1 + producer, 1 + consumer) for producer, consumer in scene.edges),
        ),
        bold=frozenset(len(roots) + at for at in scene.bold),
        frames=tuple(
            frame._replace(members=tuple(1 + member for member in frame.members))
            for frame in scene.frames
        ),
    )


def _pass_box(graph: Graph) -> Box:
    """The begin of a pass, from which its gradients flow."""
    parts = [size(graph)]
    if graph.duration_ns is not None:
        parts.append(duration(graph.duration_ns))
    title, subtitle = f"pass {graph.task}", " · ".join([*parts, *graph.notes])
    told = f"{title}, called from inside another one, which --task {graph.task} draws"
    wide = max(width(title, style.TEXT_SIZE), width(subtitle, style.SMALL_SIZE))
    return Box(
        badge="",
        title=title,
        subtitle=subtitle,
        tooltip=f"{told} alone\n{subtitle}",
        colour=style.FAINT_INK,
        fill=style.BACKGROUND,
        outline="plain",
        is_leaf=False,
        width=math.ceil(wide + 2 * PADDING),
        height=36.0,
        badge_width=0.0,
    )


def _ways(edges: Iterable[GraphEdge], critical: set[GraphEdge]) -> list[GraphEdge]:
    """The edges that are drawn: of many between the same boxes, one."""
    parallel: dict[tuple[int, int], list[GraphEdge]] = defaultdict(list)
    for edge in edges:
        parallel[edge.producer, edge.consumer].append(edge)
    drawn: list[GraphEdge] = []
    for between in parallel.values():
        if len(between) > MAX_PARALLEL:
            drawn.append(next((one for one in between if one in critical), between[0]))
        else:
            drawn += between
    return drawn


def _frames(graph: Graph, place_of: Mapping[int, int]) -> tuple[ModuleFrame, ...]:
    """Of the parts of models, their parts and so on; the same boxes have one frame."""
    deepest = max((node.module.count(".") for node in graph.nodes), default=0)
    found = {}
    deepest = min(deepest, MAX_DEPTH)
    # A worker has a frame, a model as a whole has none.
    has_workers = any(node.made_nr is not None for node in graph.nodes)
    first = 0 if has_workers else min(deepest, 1)
    for depth in range(first, deepest + 1):
        for stretch in stretches(graph, depth):
            frame = _frame(graph.nodes, stretch, place_of)
            if frame.members:
                found[frame.members] = frame
    return tuple(found.values())


def _frame(
    nodes: Sequence[GraphNode], stretch: Stretch, place_of: Mapping[int, int]
) -> ModuleFrame:
    inner = (nodes[one].repeats for one in stretch.members if nodes[one].name != LEAF)
    label = shorten_front(clean(stretch.module), MAX_TITLE)
    return ModuleFrame(
        _repeated(label, min(inner, default=1)),
        tuple(place_of[one] for one in stretch.members if one in place_of),
    )


def _repeated(text: str, times: int) -> str:
    return f"{text} {TIMES}{times:,}" if times > 1 else text


def _box(
    node: GraphNode,
    colours: Colouring,
    is_detailed: bool,
    tell: Callable[[GraphNode], str],
    chips: tuple[Chip, ...],
    passes: tuple[Scene, ...],
) -> Box:
    title = _title(node)
    subtitle = _details(node, colours) if is_detailed else ""
    badge = numbers(node)
    badge_width = 12 + max(len(badge), 1) * 7.5 if badge else 0.0
    text_width = max(width(title, style.TEXT_SIZE), width(subtitle, style.SMALL_SIZE))
    chips = limited(chips)
    chips_width, chips_height = chips_size(chips)
    colour, fill, outline = _look(node, colours)
    return Box(
        badge=badge,
        title=title,
        subtitle=subtitle,
        tooltip=tell(node),
        colour=colour,
        fill=fill,
        outline=outline,
        is_leaf=node.name == LEAF,
        width=math.ceil(badge_width + max(text_width, chips_width) + 2 * PADDING),
        height=(36.0 if subtitle else 26.0) + chips_height,
        badge_width=badge_width,
        chips=chips,
        passes=passes,
    )


def _chip(
    leaf: GraphNode,
    colours: Colouring,
    uses: Counter[int],
    tell: Callable[[GraphNode], str],
) -> Chip:
    text = chip_text(leaf, uses[leaf.id], value=colours.texts.get(leaf.id, ""))
    border, fill, outline = _look(leaf, colours)
    if colours.scale is None and leaf.saved_by is None:
        fill = style.BACKGROUND
    outline = "plain" if outline == "bold" else outline
    return Chip(text, tell(leaf), border, fill, outline)


def _in_short(node: GraphNode) -> str:
    """The tooltip of a node in a picture of very many."""
    return f"{_title(node)}, {which(node)}"


def _nothing(node: GraphNode) -> str:
    """The tooltip of a node where there are none."""
    del node
    return ""


def _is_view(node: GraphNode) -> bool:
    """Whether it only looks at a tensor in another way."""
    return not node.is_part and op_family(node.name) == "shapes"


def _look(node: GraphNode, colours: Colouring) -> tuple[str, str, Outline]:
    """The colour of the border, the fill, and the kind of border."""
    if node.saved_by is not None:
        return style.SAVED, style.tint(style.SAVED), "plain"
    if node.status is None and not node.is_predicted:
        return style.LINE, style.BACKGROUND, "dashed"
    colour = colours.colours[node.id]
    fill = style.tint(colour, 0.3 if colours.scale else 0.13)
    if node.status == "captured":
        return colour, fill, "dotted"
    if node.status in {"failed", "unfinished"}:
        return colour, fill, "alarm"
    return colour, fill, "bold" if node.is_critical else "plain"


def _title(node: GraphNode) -> str:
    """What it is called; of a path the end, which tells more than its begin."""
    name = shorten_front(clean(node.name), MAX_TITLE) if node.members else node.name
    return _repeated(shorten(clean(name), MAX_TITLE), node.repeats)


def _details(node: GraphNode, colours: Colouring) -> str:
    """The second line of a box: what it raised, its shape or value, and so on."""
    if node.status == "failed":
        lines = node.error.strip().splitlines() or ["failed"]
        error = shorten(clean(lines[0]), MAX_ERROR)
        return " · ".join([error, *_left_undone(node)])
    parts = []
    if colours.scale:
        parts += [colours.texts[node.id]] if node.id in colours.texts else []
        if node.processor_wait_ns and node.usual_ns and node.num_alike > 1:
            parts.append(f"usually {duration(node.usual_ns)}")
    elif node.parameters:
        parts.append(shorten(clean(node.parameters[0]), MAX_TITLE))
        parts += ["…"] if len(node.parameters) > 1 else []
    else:
        first = next((one for one in node.inputs if one is not None), None)
        parts += [shape(first.shape)] if first and not node.is_part else []
    is_line_told = node.name != LEAF and not node.is_part
    if node.location and not colours.scale and is_line_told:
        parts.append(clean(place(node.location, MAX_PLACE)))
    parts += _of_several(node, shows_time=not colours.scale)
    return " · ".join([*parts, *_particulars(node)])


def _particulars(node: GraphNode) -> list[str]:
    """What few nodes have."""
    parts = []
    if node.copies > 1:
        parts.append(f"{TIMES}{node.copies}")
    if node.calls and len(node.nested) in range(len(node.calls)):
        parts.append(calls(node))
    if node.slack_ns is not None and not node.is_critical:
        parts.append(f"slack {duration(node.slack_ns)}")
    if node.omitted_edges:
        parts.append(f"{count(node.omitted_edges, 'edge')} left out")
    return parts


def _of_several(node: GraphNode, *, shows_time: bool) -> list[str]:
    """How many nodes and parameters a box stands for, and how long they took."""
    parts: list[str] = []
    if not node.members:
        return parts
    if node.is_part:
        parts.append(count(node.num_nodes, "node"))
    if num_parameters := node.num_parameters:
        parts.append(count(num_parameters, "parameter"))
    if node.busy_ns is not None and shows_time:
        parts.append(duration(node.busy_ns))
    return parts + _left_undone(node)


def _left_undone(node: GraphNode) -> list[str]:
    """How many of those that a box stands for did not run, and how many were captured.

    Where all were the border says so.
    """
    found = Counter(one.status for one in node.members if not one.is_predicted)
    told = [(found[None], "did not run"), (found["captured"], "captured")]
    return [f"{num:,} {what}" for num, what in told if 0 < num < len(node.members)]


def size(graph: Graph) -> str:
    """How much a picture shows: ``651 nodes``, ``651 nodes in 340 boxes``."""
    nodes = count(graph.num_nodes, "node")
    if not any(node.members for node in graph.nodes):
        return nodes
    chips = {leaf for own in leaves_by_user(graph).values() for leaf in own}
    num_boxes = sum(node.saved_by is None for node in graph.nodes) - len(chips)
    return f"{nodes} in {count(num_boxes, 'box')}"


def _subtitle(graph: Graph) -> str:
    inside = every_graph(graph)[1:]
    tensors = {
        index for index, node in enumerate(graph.nodes) if node.saved_by is not None
    }
    num_edges = sum(edge.consumer not in tensors for edge in graph.edges)
    parts = [size(graph), count(num_edges, "edge")]
    parts += [count(len(tensors), "saved tensor")] if tensors else []
    if inside:
        num_nodes = sum(one.num_nodes for one in inside)
        parts.append(f"{count(len(inside), 'pass')} inside, {num_nodes:,} nodes")
    if graph.duration_ns is not None:
        parts.append(duration(graph.duration_ns))
    if graph.omitted:
        parts.append(f"{graph.omitted:,} more left out")
    if graph.omitted_edges:
        parts.append(f"{count(graph.omitted_edges, 'edge')} left out")
    parts.append(f"numbers: {'predicted' if graph.task < 0 else 'execution'} order")
    return " · ".join(parts)


def _notes(graph: Graph) -> str:
    text = ", ".join(graph.notes)
    return text[:1].upper() + text[1:]


def _marks(graphs: Sequence[Graph]) -> tuple[LegendEntry, ...]:
    """The legend of what is special, if anything is."""
    nodes = [node for graph in graphs for node in graph.nodes]
    marks = []
    statuses = {node.status for node in nodes}
    if "failed" in statuses:
        marks.append(LegendEntry("failed", style.ALARM, style.BACKGROUND, "alarm"))
    if "unfinished" in statuses:
        marks.append(
            LegendEntry("never finished", style.ALARM, style.BACKGROUND, "alarm")
        )
    if any(node.is_critical for node in nodes):
        marks.append(LegendEntry("critical path", style.INK, style.BACKGROUND, "bold"))
    if "captured" in statuses:
        marks.append(LegendEntry("captured", style.LINE, style.BACKGROUND, "dotted"))
    if any(node.saved_by is not None for node in nodes):
        saved = LegendEntry("saved tensor", style.SAVED, style.tint(style.SAVED))
        marks.append(saved)
    if any(
        node.status is None and node.saved_by is None and not node.is_predicted
        for node in nodes
    ):
        is_finished = all(graph.is_finished for graph in graphs)
        why = "not needed" if is_finished else "did not run"
        marks.append(LegendEntry(why, style.LINE, style.BACKGROUND, "dashed"))
    return tuple(marks)
