"""A line search: the step in a direction that meets Wolfe's conditions.

There the loss has fallen by at least a part of what the slope at the start promised,
and the slope is much less steep than it was.
"""

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from gradviz.backends.base import Array

#: Share of the promised fall that is enough.
_ENOUGH: Final = 1e-4

#: Share of the slope that may be left.
_LEVEL: Final = 0.9


class LinePoint(NamedTuple):
    """A point on the line.

    Attributes:
        distance: From the start, in lengths of the direction.
        loss: There.
        grad: There.
        slope: The loss's, along the line.
    """

    distance: float
    loss: float
    grad: Array
    slope: float


#: Computes the loss and its gradient at a distance.
Evaluate = Callable[[float], tuple[float, Array]]


class _Line:
    """The line, with the conditions at its start.

    Args:
        evaluate: Function to search.
        direction: Of the line.
        start: Point at which it starts.
        max_evaluations: Most evaluations after the first one.

    Attributes:
        num_evaluations: Number of evaluations so far.
    """

    def __init__(
        self,
        evaluate: Evaluate,
        direction: Array,
        start: LinePoint,
        max_evaluations: int,
    ) -> None:
        self.evaluate = evaluate
        self.direction = direction
        self.start = start
        self.max_evaluations = max_evaluations
        self.num_evaluations = 0

    @property
    def is_exhausted(self) -> bool:
        return self.num_evaluations > self.max_evaluations

    def at(self, distance: float) -> LinePoint:
        self.num_evaluations += 1
        loss, grad = self.evaluate(distance)
        return LinePoint(distance, loss, grad, float(np.dot(grad, self.direction)))

    def falls_too_little(self, point: LinePoint) -> bool:
        promised = _ENOUGH * point.distance * self.start.slope
        return point.loss > self.start.loss + promised

    def is_level(self, point: LinePoint) -> bool:
        return abs(point.slope) <= -_LEVEL * self.start.slope


def strong_wolfe(
    evaluate: Evaluate,
    distance: float,
    direction: Array,
    start: LinePoint,
    max_evaluations: int,
    tolerance: float = 1e-9,
) -> tuple[LinePoint, int]:
    """A point that meets the conditions, or the best found.

    Args:
        evaluate: Computes the loss and its gradient at a distance.
        distance: First distance to try.
        direction: Of the line.
        start: Point at which it starts.
        max_evaluations: Most tries after the first one.
        tolerance: Shorter steps are no progress.

    Returns:
        The point, and how often the loss was computed.

    Source: torch/optim/lbfgs.py, _strong_wolfe.
    """
    line = _Line(evaluate, direction, start, max_evaluations)
    ends = _bracket(line, distance)
    if len(ends) == 2:
        ends = _zoom(line, ends, tolerance)
    return min(ends, key=lambda one: one.loss), line.num_evaluations


def _bracket(line: _Line, distance: float) -> list[LinePoint]:
    """Two points with one that meets the conditions between them, or that one."""
    before, point = line.start, line.at(distance)
    while not line.is_exhausted:
        rises = line.num_evaluations > 2 and point.loss >= before.loss
        if line.falls_too_little(point) or rises:
            return [before, point]
        if line.is_level(point):
            return [point]
        if point.slope >= 0:
            return [before, point]
        bounds = (
            point.distance + 0.01 * (point.distance - before.distance),
            point.distance * 10,
        )
        before, point = point, line.at(_lowest(before, point, bounds))
    return [line.start, point]


def _zoom(line: _Line, ends: list[LinePoint], tolerance: float) -> list[LinePoint]:
    """Bring two points closer to each other, until one meets the conditions."""
    low, high = sorted(ends, key=lambda one: one.loss)
    length = float(np.max(np.abs(line.direction)))
    is_stuck = False
    while not line.is_exhausted:
        if abs(high.distance - low.distance) * length < tolerance:
            break
        distance, is_stuck = _between(low, high, is_stuck)
        point = line.at(distance)
        if line.falls_too_little(point) or point.loss >= low.loss:
            low, high = sorted((low, point), key=lambda one: one.loss)
            continue
        if line.is_level(point):
            return [point]
        if point.slope * (high.distance - low.distance) >= 0:
            high = low
        low = point
    return [low, high]


def _between(low: LinePoint, high: LinePoint, was_stuck: bool) -> tuple[float, bool]:
    """Return the next point, away from both ends, and whether it is near one."""
    left, right = sorted((low.distance, high.distance))
    first, second = sorted((low, high), key=lambda one: one.distance)
    distance = _lowest(first, second, (left, right))
    margin = 0.1 * (right - left)
    if min(right - distance, distance - left) >= margin:
        return distance, False
    if not was_stuck and left < distance < right:
        return distance, True
    is_right = abs(distance - right) < abs(distance - left)
    return (right - margin if is_right else left + margin), False


def _lowest(a: LinePoint, b: LinePoint, bounds: tuple[float, float]) -> float:
    """Return the minimum of the cubic through two points, within bounds."""
    low, high = bounds
    if a.distance > b.distance:
        a, b = b, a
    mean = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.distance - b.distance)
    square = mean**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    root = math.sqrt(square)
    rise, bend = b.slope + root - mean, b.slope - a.slope + 2 * root
    if not bend:  # a straight line: as far down as possible
        return low if rise > 0 else high
    place = b.distance - (b.distance - a.distance) * (rise / bend)
    return min(max(place, low), high)
