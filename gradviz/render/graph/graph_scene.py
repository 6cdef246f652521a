"""The scene of a graph: boxes with text and colors, a legend, a title.

Where the boxes go is for `gradviz.render.layout.placed_graph` or ``dot``; in which
format they are written for `gradviz.render.graph.graph_svg` and
`gradviz.render.graph.dot`.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from gradviz.analysis.graphs.backward_graph import LEAF, Graph, GraphEdge, GraphNode
from gradviz.analysis.graphs.carried_edges import carried_ways
from gradviz.analysis.graphs.gc_pause import gc_paused
from gradviz.analysis.graphs.modules import Stretch, is_between_parts, stretches
from gradviz.analysis.graphs.neighborhood import critical_edges
from gradviz.analysis.graphs.nested_passes import every_graph
from gradviz.analysis.nodes.op_families import op_family
from gradviz.render import style
from gradviz.render.graph.box_titles import relative, wrapped
from gradviz.render.graph.chips import (
    TIMES,
    Chip,
    chip_text,
    chips_size,
    leaves_by_user,
    limited,
    num_uses,
    numbers,
)
from gradviz.render.graph.coloring import ColorBy, Coloring, coloring
from gradviz.render.graph.module_words import (
    box_repeats,
    calls_told,
    known_repeats,
    told_of_boxes,
)
from gradviz.render.graph.tooltip import calls, headline, tooltip
from gradviz.render.style import Outline
from gradviz.render.words.text import (
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

#: Pictures of more nodes are for an overview.
MAX_DETAILED: Final = 3_000
PADDING: Final = 9.0
#: Between the lines of a title.
LINE_HEIGHT: Final = 14.0
#: Parts of models that lie deeper have no frames of their own.
MAX_DEPTH: Final = 8
#: Longer names of frames lose their begin.
MAX_LABEL: Final = 88
#: More edges than these between the same two boxes are drawn as one.
MAX_PARALLEL: Final = 4
#: Longer errors are cut; all of one is in the tooltip.
MAX_ERROR: Final = 72
#: Longer names of files lose their start.
MAX_PLACE: Final = 24


class Box(NamedTuple):
    """One node as it is drawn. Texts are clean, but not yet escaped.

    Attributes:
        badge: The execution order number, empty for a node that did not run.
        title: Its name, in one line or several.
        subtitle: Further facts that are worth showing.
        tooltip: All that is known, a line each; of a big picture, only the name.
        color: Of the badge and the border.
        fill: Of the rest.
        outline: The border's kind: did not run is dashed, captured is dotted, failed
            is an alarm.
        is_leaf: Leaves have round ends.
        width: Of the whole box.
        height: Of the whole box.
        badge_width: The part of the width that the badge takes.
        chips: Its leaves, below the texts.
        is_aside: True if it stands on the right of the one box that leads to it, as the
            transposed weight of a linear layer. Below, it would stand among what comes
            next, of which it is no part.
        passes: Passes that it called, below the chips; see
            `gradviz.render.graph.nesting`.
        name: Its whole name, of which the title leaves out the frames around it; empty
            if it is an operation's.
        repeats: Number of times that it comes one after the other; 1 if once.
    """

    badge: str
    title: str
    subtitle: str
    tooltip: str
    color: str
    fill: str
    outline: Outline
    is_leaf: bool
    width: float
    height: float
    badge_width: float
    chips: tuple[Chip, ...] = ()
    is_aside: bool = False
    passes: tuple["Scene", ...] = ()
    name: str = ""
    repeats: int = 1

    def within(self, outer: str) -> "Box":
        """Return the same box, titled for a place in the frame of a module."""
        name = _repeated(relative(self.name, outer), self.repeats)
        title = wrapped(name)
        wide, high = _box_size(title, self.subtitle, self.badge_width, self.chips)
        return self._replace(title=title, width=wide, height=high)


class LegendEntry(NamedTuple):
    """One line of the legend."""

    text: str
    color: str
    fill: str
    outline: Outline = "plain"


class ModuleFrame(NamedTuple):
    """Boxes that belong together, because one part of a model made their nodes.

    Attributes:
        module: The part, such as ``encoder.0``; clean, but not yet escaped.
        members: Positions in `Scene.boxes`.
        repeats: Number of times that the part comes one after the other; 1 if once.
        calls: Number of the call of the part, if there are several; else empty.
    """

    module: str
    members: tuple[int, ...]
    repeats: int = 1
    calls: str = ""

    @property
    def label(self) -> str:
        """The title of the frame."""
        name = _repeated(shorten_front(self.module, MAX_LABEL), self.repeats)
        return f"{name} · {self.calls}" if self.calls else name


class Scene(NamedTuple):
    """Contents of a picture.

    Attributes:
        title: Short description of the contents.
        subtitle: Size of the contents, in words.
        notes: Measures taken to show less of it; empty if none were.
        boxes: One for each node of the graph, in its order, but for the leaves that
            are chips in others.
        edges: Pairs of positions in `boxes`.
        legend: Meaning of the colors and borders.
        scale: The least and the most time, written out, if colors stand for time.
        is_detailed: True if there are few enough boxes for all details. The others have
            a name and a number only, and their edges are straight.
        bold: Positions of the edges that the critical path takes.
        frames: Frames around boxes that belong together; of a big picture, none.
        gone: Positions of the edges that only the first of two compared passes has.
        new: Positions of those that only the second one has.
        carried: Pairs of positions in `boxes`: edges from one repeat to the next one,
            against the direction of all others.
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
    gone: frozenset[int] = frozenset()
    new: frozenset[int] = frozenset()
    carried: tuple[tuple[int, int], ...] = ()

    def with_frames(self, frames: Iterable[ModuleFrame]) -> "Scene":
        """Return the same with these frames only, and boxes titled as that needs."""
        kept = tuple(frames)
        around = _innermost(kept)
        # A box that holds passes has grown around them already.
        boxes = tuple(
            box if box.passes or not box.name else box.within(around.get(at, ""))
            for at, box in enumerate(self.boxes)
        )
        return self._replace(frames=kept, boxes=boxes)

    @property
    def sizes(self) -> list[tuple[float, float]]:
        """Width and height of each box."""
        return [(box.width, box.height) for box in self.boxes]

    @property
    def aside(self) -> list[int]:
        """Return the boxes that stand on the right of another one."""
        return [at for at, box in enumerate(self.boxes) if box.is_aside]


@gc_paused()
def build_scene(
    graph: Graph,
    color_by: ColorBy = "auto",
    uses: Counter[int] | None = None,
    leaves: Mapping[int, tuple[int, ...]] | None = None,
    *,
    for_page: bool = False,
    colors_of: Callable[[Graph], Coloring] | None = None,
) -> Scene:
    """Decide on every text, color and size of a picture of `graph`.

    Args:
        graph: Graph that the picture shows.
        color_by: Meaning of the colors of nodes.
        uses: Number of chips that stand for each leaf, by its id, where there are
            others elsewhere.
        leaves: The nodes that are chips, by the node whose box has them, where `graph`
            is a part of another one and its edges alone do not tell; see
            `leaves_by_user`.
        for_page: True if the page or a film draws it. They have tooltips of their own,
            and room for one line of a name, whatever the frame.
        colors_of: Chooses the colors of a graph in place of `color_by`.
    """
    every = every_graph(graph)
    if colors_of is None:
        colors = {one.task: coloring(one, color_by, every) for one in every}
    else:
        colors = {one.task: colors_of(one) for one in every}
    scene = _scene(graph, colors, uses, leaves, for_page=for_page)
    legend = colors[graph.task].legend
    return scene._replace(
        title=_graph_title(graph),
        subtitle=_subtitle(graph),
        legend=(
            *(LegendEntry(text, color, color) for text, color in legend),
            *_marks(every),
        ),
        scale=colors[graph.task].scale,
        notes=_notes(graph, has_carried=bool(scene.carried)),
    )


def _graph_title(graph: Graph) -> str:
    if graph.task < 0:
        return "Backward graph"
    failed = " failed" if graph.is_failed else ""
    return f"Backward pass {graph.task}{of_program(graph.program)}{failed}"


def _scene(
    graph: Graph,
    colors: Mapping[int, Coloring],
    uses: Counter[int] | None = None,
    leaves: Mapping[int, tuple[int, ...]] | None = None,
    *,
    for_page: bool = False,
) -> Scene:
    """The boxes and edges of a graph, and of the graphs inside of it."""
    nodes = graph.nodes
    own = colors[graph.task]
    leaves = leaves_by_user(graph) if leaves is None else leaves
    uses = num_uses(graph, leaves) if uses is None else uses
    folded = {leaf for own in leaves.values() for leaf in own}
    drawn = [index for index in range(len(nodes)) if index not in folded]
    place_of = {index: at for at, index in enumerate(drawn)}
    is_detailed = len(drawn) <= MAX_DETAILED
    tell = _nothing if for_page else tooltip if is_detailed else _in_short
    critical = {graph.edges[at] for at in critical_edges(graph)}
    ways = _ways((one for one in graph.edges if one.consumer not in folded), critical)
    num_in = Counter(edge.consumer for edge in ways)
    ends = {index for index in leaves if num_in[index] == 1}
    ends -= {edge.producer for edge in ways}
    ways_back = carried_ways(graph) if is_detailed else []
    told = told_of_boxes(graph, ways_back)
    boxes = [
        _box(
            nodes[index],
            own,
            is_detailed,
            tell,
            tuple(
                _chip(nodes[leaf], nodes[index].module, own, uses, tell)
                for leaf in leaves.get(index, ())
            ),
            tuple(_called(one, colors) for one in nodes[index].nested),
            told.get(index, ()),
            box_repeats(graph, nodes[index]),
        )._replace(is_aside=index in ends and _is_view(nodes[index]))
        for index in drawn
    ]
    scene = Scene(
        title="",
        subtitle="",
        boxes=tuple(boxes),
        edges=tuple(
            (place_of[edge.producer], place_of[edge.consumer]) for edge in ways
        ),
        bold=frozenset(at for at, edge in enumerate(ways) if edge in critical),
        gone=_among(ways, own.gone),
        new=_among(ways, own.new),
        legend=(),
        scale=None,
        is_detailed=is_detailed,
        carried=tuple((place_of[one], place_of[other]) for one, other, _ in ways_back),
    )
    frames = _frames(graph, place_of) if is_detailed else ()
    if for_page or not is_detailed:
        return scene._replace(frames=frames)
    return scene.with_frames(frames)


def _called(graph: Graph, colors: Mapping[int, Coloring]) -> Scene:
    """A pass inside of the node that called it: a box for the pass, then its graph."""
    scene = _scene(graph, colors)
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
        carried=tuple((1 + one, 1 + other) for one, other in scene.carried),
        frames=tuple(
            frame._replace(members=tuple(1 + member for member in frame.members))
            for frame in scene.frames
        ),
    )


def _pass_box(graph: Graph) -> Box:
    """Return the box of a pass's start, from which its gradients flow."""
    parts = [size(graph)]
    if graph.duration_ns is not None:
        parts.append(duration(graph.duration_ns))
    title, subtitle = f"pass {graph.task}", " · ".join([*parts, *graph.notes])
    told = f"{title}, called from inside another one, which --pass {graph.task} draws"
    wide = max(width(title, style.TEXT_SIZE), width(subtitle, style.SMALL_SIZE))
    return Box(
        badge="",
        title=title,
        subtitle=subtitle,
        tooltip=f"{told} alone\n{subtitle}",
        color=style.FAINT_INK,
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


def _among(
    ways: Sequence[GraphEdge], ends: frozenset[tuple[int, int]]
) -> frozenset[int]:
    """Return which edges that are drawn have such ends."""
    return frozenset(
        at for at, edge in enumerate(ways) if (edge.producer, edge.consumer) in ends
    )


def _frames(graph: Graph, place_of: Mapping[int, int]) -> tuple[ModuleFrame, ...]:
    """Of models, their parts, their parts and so on; the same boxes have one frame."""
    deepest = max((node.module.count(".") for node in graph.nodes), default=0)
    found = {}
    for depth in range(min(deepest, MAX_DEPTH) + 1):
        for stretch in stretches(graph, depth):
            if is_between_parts(graph, stretch.module, depth):
                continue
            frame = _frame(graph, stretch, place_of)
            if frame.members and not _is_all_of_it(graph, frame, stretch):
                found[frame.members] = frame
    return tuple(found.values())


def _frame(graph: Graph, stretch: Stretch, place_of: Mapping[int, int]) -> ModuleFrame:
    inner = (graph.nodes[one] for one in stretch.members)
    times = {one.repeats for one in inner if one.name != LEAF}
    repeats = known_repeats(graph, stretch.module, times)
    return ModuleFrame(
        clean(stretch.module),
        tuple(place_of[one] for one in stretch.members if one in place_of),
        repeats,
        calls_told(graph, stretch.module, stretch.number, stretch.of, repeats),
    )


def _is_all_of_it(graph: Graph, frame: ModuleFrame, stretch: Stretch) -> bool:
    """Return whether a frame would hold nothing but the box of the same module."""
    if len(frame.members) > 1:
        return False
    return any(graph.nodes[one].is_module for one in stretch.members)


def _innermost(frames: Iterable[ModuleFrame]) -> dict[int, str]:
    """Return the module of the smallest frame around each box."""
    around: dict[int, str] = {}
    for frame in sorted(frames, key=lambda one: -len(one.members)):
        around |= dict.fromkeys(frame.members, frame.module)
    return around


def _repeated(text: str, times: int) -> str:
    return f"{text} {TIMES}{times:,}" if times > 1 else text


def _box(
    node: GraphNode,
    colors: Coloring,
    is_detailed: bool,
    tell: Callable[[GraphNode], str],
    chips: tuple[Chip, ...],
    passes: tuple[Scene, ...],
    told: Sequence[str],
    repeats: int,
) -> Box:
    """Return the box of a node, titled as outside of all frames."""
    subtitle = _details(node, colors, told) if is_detailed else ""
    mark = colors.marks.get(node.id)
    badge = (mark.badge if mark else "") or numbers(node)
    badge_width = 12 + max(len(badge), 1) * 7.5 if badge else 0.0
    title, chips = _repeated(_short_name(node), repeats), limited(chips)
    wide, high = _box_size(title, subtitle, badge_width, chips)
    color, fill, outline = _look(node, colors)
    return Box(
        badge=badge,
        title=title,
        subtitle=subtitle,
        tooltip=mark.tooltip if mark and mark.tooltip else tell(node),
        color=color,
        fill=fill,
        outline=outline,
        is_leaf=node.name == LEAF,
        width=wide,
        height=high,
        badge_width=badge_width,
        chips=chips,
        passes=passes,
        name=_long_name(node),
        repeats=repeats,
    )


def _box_size(
    title: str, subtitle: str, badge_width: float, chips: tuple[Chip, ...]
) -> tuple[float, float]:
    """Return how wide and how high a box is with these texts and chips."""
    lines = title.split("\n")
    title_width = max(width(line, style.TEXT_SIZE) for line in lines)
    chips_width, chips_height = chips_size(chips)
    inner = max(title_width, width(subtitle, style.SMALL_SIZE), chips_width)
    high = (36.0 if subtitle else 26.0) + (len(lines) - 1) * LINE_HEIGHT
    return math.ceil(badge_width + inner + 2 * PADDING), high + chips_height


def _chip(
    leaf: GraphNode,
    module: str,
    colors: Coloring,
    uses: Counter[int],
    tell: Callable[[GraphNode], str],
) -> Chip:
    value = colors.texts.get(leaf.id, "")
    text = chip_text(leaf, uses[leaf.id], module, value=value)
    border, fill, outline = _look(leaf, colors)
    if colors.scale is None and leaf.saved_by is None:
        fill = style.BACKGROUND
    mark = colors.marks.get(leaf.id)
    if mark is None:
        outline = "plain" if outline == "bold" else outline
        return Chip(text, tell(leaf), border, fill, outline)
    text = " · ".join(filter(None, [text, mark.text]))
    return Chip(text, mark.tooltip or tell(leaf), border, fill, outline)


def _in_short(node: GraphNode) -> str:
    """The tooltip of a node in a picture of very many."""
    return headline(node, _repeated(_short_name(node), node.repeats))


def _nothing(node: GraphNode) -> str:
    """The tooltip of a node where there are none."""
    del node
    return ""


def _is_view(node: GraphNode) -> bool:
    """Return whether it only makes another view of a tensor."""
    return not node.is_part and op_family(node.name) == "shapes"


def _look(node: GraphNode, colors: Coloring) -> tuple[str, str, Outline]:
    """The color of the border, the fill, and the kind of border."""
    if node.saved_by is not None:
        return style.SAVED, style.tint(style.SAVED), "plain"
    if node.id in colors.marks:
        color = colors.colors[node.id]
        return color, style.tint(color, 0.3), colors.marks[node.id].outline
    if node.status is None and not node.is_predicted:
        return style.LINE, style.BACKGROUND, "dashed"
    color = colors.colors[node.id]
    fill = style.tint(color, 0.3 if colors.scale else 0.13)
    if node.status == "captured":
        return color, fill, "dotted"
    if node.status in {"failed", "unfinished"}:
        return color, fill, "alarm"
    return color, fill, "bold" if node.is_critical else "plain"


def _short_name(node: GraphNode) -> str:
    """Return what has room in one line: of a part's name the end, else the begin."""
    long = _long_name(node)
    if long:
        return shorten_front(long, MAX_TITLE)
    return shorten(clean(node.name), MAX_TITLE)


def _long_name(node: GraphNode) -> str:
    """Return the name of what is no operation: of a part, of a leaf that failed."""
    if node.name == LEAF and node.error and node.parameters:
        return f"{node.name} of {clean(node.parameters[0])}"
    return clean(node.name) if node.is_part or node.is_module else ""


def _details(node: GraphNode, colors: Coloring, told: Sequence[str]) -> str:
    """Return the second line of a box: its error, its shape or value, and so on."""
    if node.id in colors.marks and (marked := colors.marks[node.id].text):
        return " · ".join([marked, *_of_several(node, shows_time=False)])
    if node.status == "failed":
        lines = node.error.strip().splitlines() or ["failed"]
        error = shorten(clean(lines[0]), MAX_ERROR)
        return " · ".join([error, *_left_undone(node)])
    parts = [*told]
    if colors.scale:
        parts += [colors.texts[node.id]] if node.id in colors.texts else []
        if node.processor_wait_ns and node.usual_ns and node.num_alike > 1:
            parts.append(f"usually {duration(node.usual_ns)}")
    elif node.parameters:
        parts.append(shorten_front(clean(node.parameters[0]), MAX_TITLE))
        parts += ["…"] if len(node.parameters) > 1 else []
    else:
        first = next((one for one in node.inputs if one is not None), None)
        is_told = bool(told) or node.is_part
        parts += [shape(first.shape)] if first and not is_told else []
    is_line_told = node.name != LEAF and not node.is_part
    if node.location and not colors.scale and is_line_told:
        parts.append(clean(place(node.location, MAX_PLACE)))
    parts += _of_several(node, shows_time=not colors.scale)
    return " · ".join([*parts, *_particulars(node)])


def _particulars(node: GraphNode) -> list[str]:
    """Return rare facts about a node."""
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
    """Return the numbers of nodes and parameters of a box, and their time."""
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
    """Return how many nodes of a box did not run, and how many were captured.

    For all of them, the border says so.
    """
    found = Counter(one.status for one in node.members if not one.is_predicted)
    told = [(found[None], "did not run"), (found["captured"], "captured")]
    return [f"{num:,} {what}" for num, what in told if 0 < num < len(node.members)]


def size(graph: Graph) -> str:
    """Return the size of a picture: ``651 nodes``, ``651 nodes in 340 boxes``."""
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


def _notes(graph: Graph, *, has_carried: bool) -> str:
    notes = [*graph.notes, *["dashed edges lead to the next repeat"] * has_carried]
    text = ", ".join(notes)
    return text[:1].upper() + text[1:]


def _marks(graphs: Sequence[Graph]) -> tuple[LegendEntry, ...]:
    """Return the legend of special marks, if there are any."""
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
