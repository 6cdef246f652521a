"""Frames around the nodes that one part of a model made.

A frame is drawn where it holds its own boxes and no others. ``dot`` keeps them together
if it is asked to; our own layout does not, so there some frames are left out.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from gradviz.render.layout import BoxLayout, Point
from gradviz.render.scene import Box, ModuleFrame, Scene
from gradviz.render.style import SMALL_SIZE

#: Between a frame and its boxes.
PADDING: Final = 7.0
#: The room of its label, above the boxes.
LABEL_HEIGHT: Final = SMALL_SIZE + 6.0


class Rectangle(NamedTuple):
    """A part of the plane; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Rectangle") -> bool:
        """Whether they have more than an edge in common."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def place_frames(
    scene: Scene, layout: BoxLayout
) -> list[tuple[ModuleFrame, Rectangle]]:
    """The frames that can be drawn, and where."""
    boxes = [
        _around(box, centre)
        for box, centre in zip(scene.boxes, layout.centres, strict=True)
    ]
    placed: list[tuple[ModuleFrame, Rectangle]] = []
    for frame in scene.frames:
        own = set(frame.members)
        place = _surrounding([boxes[member] for member in frame.members])
        strangers = (box for index, box in enumerate(boxes) if index not in own)
        if not any(map(place.meets, strangers)) and not any(
            place.meets(other) for _, other in placed
        ):
            placed.append((frame, place))
    return placed


def _around(box: Box, centre: Point) -> Rectangle:
    x, y = centre
    wide, high = box.width / 2, box.height / 2
    return Rectangle(x - wide, y - high, x + wide, y + high)


def _surrounding(boxes: Sequence[Rectangle]) -> Rectangle:
    return Rectangle(
        min(box.left for box in boxes) - PADDING,
        min(box.top for box in boxes) - PADDING - LABEL_HEIGHT,
        max(box.right for box in boxes) + PADDING,
        max(box.bottom for box in boxes) + PADDING,
    )
