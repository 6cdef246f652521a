"""The geometry of a picture of a graph, read from SVG, and what is wrong with it."""

import itertools
import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gradviz.render import style
from gradviz.render.graph.graph_scene import Scene
from gradviz.render.graph.module_frames import Rectangle
from gradviz.render.words.text import width

SVG: Final = "{http://www.w3.org/2000/svg}"
#: Lengths are written with one decimal, those of large pictures with none.
SLACK: Final = 1.1
#: How far apart the points are, at most, at which a curve is looked at.
STEP: Final = 3.0
#: What one sees of a picture without scrolling.
FIRST_SCREEN: Final = (1_280.0, 720.0)

#: Which part of a text stands left of its place.
ANCHORS: Final = {"middle": 0.5, "end": 1.0}

_NUMBER: Final = re.compile(r"-?[0-9.]+")

Point = tuple[float, float]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.signedinteger[Any]]


class DrawnBox(NamedTuple):
    """A box or a chip: where it is, what stands in it, and its chips."""

    place: Rectangle
    tooltip: str
    texts: tuple[tuple[str, Rectangle], ...]
    chips: tuple["DrawnBox", ...]
    passes: tuple["Drawing", ...] = ()


class Drawing(NamedTuple):
    """A picture of a graph; `head` is its title and all up to the graph."""

    page: Rectangle
    head: tuple[tuple[str, Rectangle], ...]
    boxes: tuple[DrawnBox, ...]
    edges: tuple[tuple[Point, ...], ...]
    frames: tuple[Rectangle, ...]
    labels: tuple[tuple[str, Rectangle], ...]


def read_drawing(svg: bytes) -> Drawing:
    """The boxes, edges and frames of a picture of a graph."""
    root = ET.fromstring(svg)
    page = [float(one) for one in root.attrib["viewBox"].split()]
    *rest, graph = root.findall(f"{SVG}g")
    legend = [
        _text(text, *_moved(group, 0.0, 0.0))
        for group in rest
        for text in group.findall(f"{SVG}text")
    ]
    drawing = _drawing(graph, Rectangle(*page), 0.0, 0.0)
    title = [_text(one, 0.0, 0.0) for one in root.findall(f"{SVG}text")]
    return drawing._replace(head=(*title, *legend))


def _drawing(drawing: ET.Element, page: Rectangle, x: float, y: float) -> Drawing:
    x, y = _moved(drawing, x, y)
    edges = drawing.find(f"{SVG}g[@class='edges']")
    assert edges is not None
    return Drawing(
        page,
        (),
        tuple(
            _box(one, x, y)
            for one in drawing.findall(f"{SVG}g")
            if one.get("class") != "edges"
        ),
        tuple(_controls(one.attrib["d"], x, y) for one in edges),
        tuple(_rect(one, x, y) for one in drawing.findall(f"{SVG}rect")),
        tuple(_text(one, x, y) for one in drawing.findall(f"{SVG}text")),
    )


def faults(drawing: Drawing) -> list[str]:
    """Return the faults of a drawing, a sentence each."""
    inside = [one for box in drawing.boxes for one in box.passes]
    return [
        *_of_boxes(drawing),
        *_of_edges(drawing),
        *_of_texts(drawing),
        *(fault for one in inside for fault in faults(one)),
    ]


def misses(drawing: Drawing, scene: Scene) -> list[str]:
    """Return differences between a scene and its picture."""
    tooltips = Counter(box.tooltip for box in scene.boxes)
    tooltips.update(chip.tooltip for box in scene.boxes for chip in box.chips)
    drawn = Counter(box.tooltip for box in drawing.boxes)
    drawn.update(chip.tooltip for box in drawing.boxes for chip in box.chips)
    return [
        *(f"{one!r} is missing" for one in (tooltips - drawn).elements()),
        *(f"{one!r} is too much" for one in (drawn - tooltips).elements()),
        *(["edges are missing"] * (len(scene.edges) - len(drawing.edges))),
        *(
            miss
            for box, one in zip(drawing.boxes, scene.boxes, strict=False)
            for pass_, called in zip(box.passes, one.passes, strict=True)
            for miss in misses(pass_, called)
        ),
    ]


def begins_in_sight(drawing: Drawing) -> bool:
    """Return whether title, legend and first node are on the first screen."""
    first = [drawing.boxes[0].place] if drawing.boxes else []
    return all(
        one.right < FIRST_SCREEN[0] and one.bottom < FIRST_SCREEN[1]
        for one in [*first, *(place for _, place in drawing.head)]
    )


def _of_boxes(drawing: Drawing) -> Iterator[str]:
    places = [box.place for box in drawing.boxes]
    for a, b in _meetings(places):
        yield f"{drawing.boxes[a].tooltip!r} overlaps {drawing.boxes[b].tooltip!r}"
    for box in drawing.boxes:
        yield from _inside(box)
        if not _holds(drawing.page, box.place):
            yield f"{box.tooltip!r} lies outside the page"
    for number, frame in enumerate(drawing.frames):
        if not _holds(drawing.page, frame):
            yield f"frame {number} lies outside the page"
        for box, place in enumerate(places):
            if frame.meets(place) and not _holds(frame, place):
                yield f"a frame holds a part of {drawing.boxes[box].tooltip!r}"
        for other in drawing.frames[:number]:
            if frame.meets(other) and not (
                _holds(frame, other) or _holds(other, frame)
            ):
                yield f"frames {frame} and {other} cross"


def _of_edges(drawing: Drawing) -> Iterator[str]:
    points, owner = _sampled(drawing.edges)
    page = drawing.page
    is_inside = (points >= np.array(page[:2]) - SLACK) & (
        points <= np.array(page[2:]) + SLACK
    )
    for edge in np.unique(owner[~is_inside.all(axis=1)]).tolist():
        yield f"edge {edge} leaves the page"
    places = [box.place for box in drawing.boxes]
    for at, edge in _met(points, owner, places):
        yield f"edge {edge} runs through {drawing.boxes[at].tooltip!r}"
    texts = [place for _, place in drawing.labels]
    for at, edge in _met(points, owner, texts):
        yield f"edge {edge} crosses {drawing.labels[at][0]!r}"
    ends = np.array([(*one[0], *one[-1]) for one in drawing.edges]).reshape(-1, 4)
    corners = np.array(places).reshape(-1, 4)
    for edge, (x0, y0, x1, y1) in enumerate(ends.tolist()):
        if not (_touches(x0, y0, corners) and _touches(x1, y1, corners)):
            yield f"edge {edge} does not begin and end at a box"


def _of_texts(drawing: Drawing) -> Iterator[str]:
    for written, place in [*drawing.head, *drawing.labels]:
        if not _holds(drawing.page, place):
            yield f"{written!r} leaves the page"
    graph = [*(box.place for box in drawing.boxes), *drawing.frames]
    top = min((one.top for one in graph), default=math.inf)
    for written, place in drawing.head:
        if place.bottom > top + SLACK:
            yield f"{written!r} of the head stands in the graph"
    named = [*drawing.head, *drawing.labels]
    named += [("", box.place) for box in drawing.boxes]
    num_texts = len(drawing.head) + len(drawing.labels)
    for a, b in _meetings([place for _, place in named]):
        if min(a, b) < num_texts:
            yield f"{named[min(a, b)][0]!r} overlaps another text or a box"
    for written, place in drawing.labels:
        if not any(_holds(frame, place) for frame in drawing.frames):
            yield f"{written!r} stands in no frame"


def _inside(box: DrawnBox) -> Iterator[str]:
    for text, place in box.texts:
        if not _holds(box.place, place):
            yield f"{text!r} leaves its box"
    for chip in box.chips:
        if not _holds(box.place, chip.place):
            yield f"chip {chip.tooltip!r} leaves its box"
        yield from _inside(chip)
    panels = [one.page for one in box.passes]
    if not all(_holds(box.place, panel) for panel in panels):
        yield f"a pass leaves {box.tooltip!r}"
    within = [*(place for _, place in box.texts), *(chip.place for chip in box.chips)]
    if any(_meetings([*within, *panels])):
        yield f"what is inside of {box.tooltip!r} overlaps"


def _holds(one: Rectangle, other: Rectangle) -> bool:
    return (
        one.left - SLACK <= other.left
        and one.top - SLACK <= other.top
        and other.right <= one.right + SLACK
        and other.bottom <= one.bottom + SLACK
    )


def _meetings(places: list[Rectangle]) -> Iterator[tuple[int, int]]:
    """Pairs that have more than an edge in common."""
    smaller = [
        Rectangle(
            one.left + SLACK, one.top + SLACK, one.right - SLACK, one.bottom - SLACK
        )
        for one in places
    ]
    open_: list[int] = []
    for index in sorted(range(len(places)), key=lambda at: places[at].top):
        open_ = [at for at in open_ if places[at].bottom > places[index].top]
        for other in open_:
            if smaller[index].meets(smaller[other]):
                yield other, index
        open_.append(index)


def _sampled(edges: Sequence[Sequence[Point]]) -> tuple[Floats, Integers]:
    """Points along all curves, at most `STEP` apart, and of which edge each is."""
    curves = np.array(
        [edge[at : at + 4] for edge in edges for at in range(0, len(edge) - 3, 3)]
    ).reshape(-1, 4, 2)
    owner = np.repeat(np.arange(len(edges)), [len(edge) // 3 for edge in edges])
    lengths = np.abs(np.diff(curves, axis=1)).sum(axis=(1, 2))
    number = (2 + 2 * lengths // STEP).astype(np.int64)
    curve = np.repeat(np.arange(len(curves)), number)
    begin = np.repeat(np.cumsum(number) - number, number)
    part = ((np.arange(len(curve)) - begin) / (number - 1)[curve])[:, None]
    rest, control = 1 - part, curves[curve]
    points = rest**3 * control[:, 0] + 3 * rest**2 * part * control[:, 1]
    points += 3 * rest * part**2 * control[:, 2] + part**3 * control[:, 3]
    return points, owner[curve]


def _met(
    points: Floats, owner: Integers, places: Sequence[Rectangle]
) -> Iterator[tuple[int, int]]:
    """Places, and edges that have a point inside of them."""
    order = np.argsort(points[:, 1])
    x, y, owner = points[order, 0], points[order, 1], owner[order]
    for at, place in enumerate(places):
        begin = np.searchsorted(y, place.top + SLACK, "right")
        end = np.searchsorted(y, place.bottom - SLACK)
        inside = (place.left + SLACK < x[begin:end]) & (
            x[begin:end] < place.right - SLACK
        )
        yield from ((at, edge) for edge in np.unique(owner[begin:end][inside]).tolist())


def _touches(x: float, y: float, corners: Floats) -> bool:
    """Return whether a point lies on the border of a box."""
    near = (
        (corners[:, 0] - SLACK <= x)
        & (x <= corners[:, 2] + SLACK)
        & (corners[:, 1] - SLACK <= y)
        & (y <= corners[:, 3] + SLACK)
    )
    distance = np.abs(corners[near] - [x, y, x, y])
    return bool((distance <= SLACK).any())


def _box(group: ET.Element, x: float, y: float) -> DrawnBox:
    x, y = _moved(group, x, y)
    rect = group.find(f"{SVG}rect")
    assert rect is not None
    return DrawnBox(
        _rect(rect, x, y),
        group.findtext(f"{SVG}title") or "",
        tuple(_text(one, x, y) for one in group.findall(f"{SVG}text")),
        tuple(
            _box(one, x, y)
            for one in group.findall(f"{SVG}g")
            if one.get("class") != "pass"
        ),
        tuple(_pass(one, x, y) for one in group.findall(f"{SVG}g[@class='pass']")),
    )


def _pass(group: ET.Element, x: float, y: float) -> Drawing:
    """A pass inside of the box that called it: its panel is its page."""
    x, y = _moved(group, x, y)
    panel, _, drawing = group
    return _drawing(drawing, _rect(panel, x, y), x, y)


def _moved(group: ET.Element, x: float, y: float) -> Point:
    dx, dy = (float(one) for one in _NUMBER.findall(group.get("transform", "0 0")))
    return x + dx, y + dy


def _rect(rect: ET.Element, x: float, y: float) -> Rectangle:
    left, top = x + float(rect.get("x", 0)), y + float(rect.get("y", 0))
    wide, high = float(rect.attrib["width"]), float(rect.attrib["height"])
    return Rectangle(left, top, left + wide, top + high)


def _text(text: ET.Element, x: float, y: float) -> tuple[str, Rectangle]:
    """Return a text and its place, sized by `gradviz.render.words.text.width`."""
    written = "".join(text.itertext())
    classes = text.get("class", "").split()
    sizes = {"small": style.SMALL_SIZE, "title": style.TITLE_SIZE}
    size = next((sizes[one] for one in classes if one in sizes), style.TEXT_SIZE)
    is_bold = bool({"bold", "title"}.intersection(classes))
    wide = width(written, size, bold=is_bold)
    shift = next((part for one, part in ANCHORS.items() if one in classes), 0.0)
    left = x + float(text.attrib["x"]) - shift * wide
    base = y + float(text.attrib["y"])
    return written, Rectangle(left, base - 0.75 * size, left + wide, base + 0.2 * size)


def _controls(path: str, x: float, y: float) -> tuple[Point, ...]:
    """A start, and three points for each curve of a path of lines or of curves."""
    numbers = [float(one) for one in _NUMBER.findall(path)]
    stops = [
        (x + at, y + down) for at, down in zip(numbers[::2], numbers[1::2], strict=True)
    ]
    if "C" in path:
        return tuple(stops)
    lines = ((one, one, other, other) for one, other in itertools.pairwise(stops))
    return (stops[0], *(point for line in lines for point in line[1:]))
