"""The geometry of a picture of a graph, read from SVG, and what is wrong with it."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from gradviz.render import style
from gradviz.render.frames import Rectangle
from gradviz.render.text import width

SVG: Final = "{http://www.w3.org/2000/svg}"
#: Lengths are written with one decimal, those of large pictures with none.
SLACK: Final = 1.1
#: Points at which a curve is looked at.
SAMPLES: Final = 12

_NUMBER: Final = re.compile(r"-?[0-9.]+")

Point = tuple[float, float]


class DrawnBox(NamedTuple):
    """A box or a chip: where it is, what stands in it, and its chips."""

    place: Rectangle
    tooltip: str
    texts: tuple[tuple[str, Rectangle], ...]
    chips: tuple["DrawnBox", ...]
    passes: tuple["Drawing", ...] = ()


class Drawing(NamedTuple):
    """A picture of a graph."""

    page: Rectangle
    boxes: tuple[DrawnBox, ...]
    edges: tuple[tuple[Point, ...], ...]
    frames: tuple[Rectangle, ...]
    labels: tuple[tuple[str, Rectangle], ...]


def read_drawing(svg: bytes) -> Drawing:
    """The boxes, edges and frames of a picture of a graph."""
    root = ET.fromstring(svg)
    page = [float(one) for one in root.attrib["viewBox"].split()]
    graph = [one for one in root.findall(f"{SVG}g") if one.find(f"{SVG}g") is not None]
    (drawing,) = graph
    return _drawing(drawing, Rectangle(*page), 0.0, 0.0)


def _drawing(drawing: ET.Element, page: Rectangle, x: float, y: float) -> Drawing:
    x, y = _moved(drawing, x, y)
    edges = drawing.find(f"{SVG}g[@class='edges']")
    assert edges is not None
    return Drawing(
        page,
        tuple(
            _box(one, x, y)
            for one in drawing.findall(f"{SVG}g")
            if one.get("class") != "edges"
        ),
        tuple(tuple(_points(one.attrib["d"], x, y)) for one in edges),
        tuple(_rect(one, x, y) for one in drawing.findall(f"{SVG}rect")),
        tuple(_text(one, x, y) for one in drawing.findall(f"{SVG}text")),
    )


def faults(drawing: Drawing) -> list[str]:
    """What is wrong with it, a sentence each."""
    places = [box.place for box in drawing.boxes]
    return [
        *(
            f"{drawing.boxes[a].tooltip!r} overlaps {drawing.boxes[b].tooltip!r}"
            for a, b in _meetings(places)
        ),
        *(fault for box in drawing.boxes for fault in _inside(box)),
        *(f for box in drawing.boxes for one in box.passes for f in faults(one)),
        *(
            f"{box.tooltip!r} lies outside the page"
            for box in drawing.boxes
            if not _holds(drawing.page, box.place)
        ),
        *(
            f"edge {edge} runs through {drawing.boxes[box].tooltip!r}"
            for edge, box in _runs(drawing.edges, places)
        ),
        *(
            f"a frame holds a part of {drawing.boxes[box].tooltip!r}"
            for frame in drawing.frames
            for box, place in enumerate(places)
            if frame.meets(place) and not _holds(frame, place)
        ),
        *(
            f"frames {one} and {other} cross"
            for number, one in enumerate(drawing.frames)
            for other in drawing.frames[:number]
            if one.meets(other) and not (_holds(one, other) or _holds(other, one))
        ),
    ]


def _inside(box: DrawnBox) -> Iterator[str]:
    for text, place in box.texts:
        if not _holds(box.place, place):
            yield f"{text!r} leaves its box"
    for chip in box.chips:
        if not _holds(box.place, chip.place):
            yield f"chip {chip.tooltip!r} leaves its box"
        yield from _inside(chip)
    panels = [one.page for one in box.passes]
    if any(_meetings([*panels, *(chip.place for chip in box.chips)])):
        yield f"what is inside of {box.tooltip!r} overlaps"
    if not all(_holds(box.place, panel) for panel in panels):
        yield f"a pass leaves {box.tooltip!r}"
    if any(_meetings([chip.place for chip in box.chips])):
        yield f"chips of {box.tooltip!r} overlap"


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


def _runs(
    edges: Iterable[tuple[Point, ...]], places: list[Rectangle]
) -> Iterator[tuple[int, int]]:
    """Edges, and boxes inside of which they have a point."""
    step = 64.0
    rows: dict[int, list[int]] = {}
    for index, place in enumerate(places):
        for row in range(int(place.top // step), int(place.bottom // step) + 1):
            rows.setdefault(row, []).append(index)
    for number, points in enumerate(edges):
        hit = {
            index
            for x, y in points
            for index in rows.get(int(y // step), ())
            if places[index].left + SLACK < x < places[index].right - SLACK
            and places[index].top + SLACK < y < places[index].bottom - SLACK
        }
        yield from ((number, index) for index in sorted(hit))


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
    """What it says and its place, as `gradviz.render.text.width` estimates it."""
    written = "".join(text.itertext())
    classes = text.get("class", "").split()
    size = style.SMALL_SIZE if "small" in classes else style.TEXT_SIZE
    wide = width(written, size)
    left = x + float(text.attrib["x"]) - (wide / 2 if "middle" in classes else 0.0)
    base = y + float(text.attrib["y"])
    return written, Rectangle(left, base - 0.75 * size, left + wide, base + 0.2 * size)


def _points(path: str, x: float, y: float) -> Iterator[Point]:
    """Points along a path of lines (M, L) or of curves (M, C)."""
    numbers = [float(one) for one in _NUMBER.findall(path)]
    stops = [
        (x + at, y + down) for at, down in zip(numbers[::2], numbers[1::2], strict=True)
    ]
    yield stops[0]
    if "C" not in path:
        stops = [stop for stop in stops for _ in range(3)][2:]
    for at in range(0, len(stops) - 3, 3):
        for number in range(1, SAMPLES + 1):
            yield _on_curve(stops[at : at + 4], number / SAMPLES)


def _on_curve(control: list[Point], part: float) -> Point:
    rest = 1 - part
    shares = (rest**3, 3 * rest**2 * part, 3 * rest * part**2, part**3)
    x, y = (
        sum(share * point[axis] for share, point in zip(shares, control, strict=True))
        for axis in (0, 1)
    )
    return x, y
