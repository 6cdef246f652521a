"""Elements of a film that one sees in each frame, found as a browser would."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from gradviz.render.film.film import Film

SVG = "{http://www.w3.org/2000/svg}"


def shown_at(film: Film, frame: int) -> list[tuple[str, str, str]]:
    """The elements that are seen in the middle of a frame of the animated film.

    Each as its tag, its attributes, its text.
    """
    return [*_seen(ET.fromstring(film.svg()), (frame + 0.5) / film.num_frames)]


def still(film: Film, frame: int) -> list[tuple[str, str, str]]:
    """The elements of a frame that does not move."""
    return [*_seen(ET.fromstring(film.frame(frame)), 0.0)]


def texts(elements: list[tuple[str, str, str]]) -> list[str]:
    return [text for tag, _, text in elements if tag == f"{SVG}text" and text]


def _seen(one: ET.Element, part: float) -> Iterator[tuple[str, str, str]]:
    if not _is_seen(one, part):
        return
    if one.tag not in {f"{SVG}g", f"{SVG}svg", f"{SVG}tspan"}:
        yield one.tag, str(sorted(one.attrib.items())), "".join(one.itertext())
    for child in one:
        if child.tag != f"{SVG}animate":
            yield from _seen(child, part)


def _is_seen(one: ET.Element, part: float) -> bool:
    move = one.find(f"{SVG}animate")
    if move is None:
        return one.get("display") != "none"
    times = [float(time) for time in move.get("keyTimes", "").split(";")]
    values = move.get("values", "").split(";")
    return [value for time, value in zip(times, values, strict=True) if time <= part][
        -1
    ] == "inline"
