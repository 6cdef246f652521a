"""Quality of a layout, in numbers that can be compared."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gradviz.render.layout.placed_graph import BoxLayout
from gradviz.render.layout.routing import Point

#: Lines that stand for a curve that is not vertical.
LINES = 6


class Quality(NamedTuple):
    """Less is better.

    Attributes:
        area: Of the picture.
        aspect: Its longer side in shorter ones.
        crossings: How often edges cross.
        length: Of all edges.
    """

    area: float
    aspect: float
    crossings: int
    length: float


def quality(layout: BoxLayout) -> Quality:
    lines = [_lines(route) for route in layout.routes]
    return Quality(
        layout.width * layout.height,
        max(layout.width, layout.height) / max(min(layout.width, layout.height), 1.0),
        _crossings(lines),
        sum(math.dist(one[:2], one[2:]) for part in lines for one in part),
    )


def _lines(route: Sequence[Point]) -> list[tuple[float, float, float, float]]:
    """Short lines in place of the curves of an edge."""
    points = [route[0]]
    for at in range(0, len(route) - 1, 3):
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = route[at : at + 4]
        number = 1 if x0 == x1 == x2 == x3 else LINES
        for step in range(1, number + 1):
            part, rest = step / number, 1 - step / number
            a, b = rest**3, 3 * rest**2 * part
            c, d = 3 * rest * part**2, part**3
            points.append(
                (a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3)
            )
    return [(*one, *other) for one, other in itertools.pairwise(points)]


def _crossings(lines: list[list[tuple[float, float, float, float]]]) -> int:
    """Return the number of crossings of different edges, without shared ends."""
    all_lines = np.array([one for part in lines for one in part] or np.zeros((0, 4)))
    owner = np.repeat(np.arange(len(lines)), [len(part) for part in lines])
    top = np.minimum(all_lines[:, 1], all_lines[:, 3])
    order = np.argsort(top)
    all_lines, owner, top = all_lines[order], owner[order], top[order]
    found = 0
    for at in range(len(all_lines)):
        line = all_lines[at]
        end = np.searchsorted(top, max(line[1], line[3]))
        others = all_lines[at + 1 : end]
        crosses = (_side(line, others[:, :2]) * _side(line, others[:, 2:]) < 0) & (
            _side(others, line[:2]) * _side(others, line[2:]) < 0
        )
        found += int(np.count_nonzero(crosses & (owner[at + 1 : end] != owner[at])))
    return found


def _side(line: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the side of lines on which points are, as a sign."""
    x, y = line[..., 0], line[..., 1]
    return (line[..., 2] - x) * (points[..., 1] - y) - (line[..., 3] - y) * (
        points[..., 0] - x
    )
