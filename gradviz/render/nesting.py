"""Passes drawn inside of the boxes that called them.

What was called is laid out first, by itself, and its box is made as large as that
needs: so nobody else's box or edge comes to lie among those of a pass.
"""

from collections.abc import Callable, Sequence
from typing import Final

from gradviz.render.frames import Rectangle, place_frames
from gradviz.render.layout import BoxLayout
from gradviz.render.scene import Box, Scene

#: Around a panel, and between panels.
GAP: Final = 8.0
#: Between a panel and the boxes in it.
PADDING: Final = 12.0
#: The room of the arrow from a caller to the pass that it called.
ARROW: Final = 18.0


def grown(
    scene: Scene, laid_out: Callable[[Scene], BoxLayout]
) -> tuple[Scene, BoxLayout]:
    """A scene whose boxes have room for what is inside of them, and where it all is.

    Args:
        scene: The scene.
        laid_out: Finds places for the boxes of one scene.
    """
    inside: dict[int, tuple[BoxLayout, ...]] = {}
    boxes = list(scene.boxes)
    for at, box in enumerate(boxes):
        if box.passes:
            called = [grown(one, laid_out) for one in box.passes]
            inside[at] = tuple(layout for _, layout in called)
            boxes[at] = _with_room(box, called)
    scene = scene._replace(boxes=tuple(boxes))
    return scene, laid_out(scene)._replace(inside=inside)


def panels(box: Box, layouts: Sequence[BoxLayout]) -> list[Rectangle]:
    """Where in a box, from its left upper corner, each pass that it called is."""
    across = sum(_size(*one)[0] + GAP for one in zip(box.passes, layouts, strict=True))
    left = box.badge_width + (box.width - box.badge_width - across + GAP) / 2
    bottom = box.height - GAP
    found = []
    for scene, layout in zip(box.passes, layouts, strict=True):
        wide, high = _size(scene, layout)
        top = box.height - panels_height(box, layouts)
        found.append(Rectangle(left, top, left + wide, max(top + high, bottom)))
        left += wide + GAP
    return found


def panels_height(box: Box, layouts: Sequence[BoxLayout]) -> float:
    """How much of a box's height its panels take, and what is below them."""
    sizes = map(_size, box.passes, layouts)
    return max((high for _, high in sizes), default=-GAP) + GAP


def origin(scene: Scene, layout: BoxLayout) -> tuple[float, float]:
    """Where in a panel its scene begins: frames reach beyond the boxes."""
    left, _ = _beyond(scene, layout)
    return PADDING + left, PADDING + ARROW


def _with_room(box: Box, called: Sequence[tuple[Scene, BoxLayout]]) -> Box:
    scenes, layouts = zip(*called, strict=True)
    box = box._replace(passes=scenes)
    across = sum(_size(scene, layout)[0] + GAP for scene, layout in called) + GAP
    return box._replace(
        width=max(box.width, box.badge_width + across),
        height=box.height + panels_height(box, layouts),
    )


def _size(scene: Scene, layout: BoxLayout) -> tuple[float, float]:
    """How wide and how high the panel of a pass is."""
    return (
        layout.width + sum(_beyond(scene, layout)) + 2 * PADDING,
        layout.height + ARROW + 2 * PADDING,
    )


def _beyond(scene: Scene, layout: BoxLayout) -> tuple[float, float]:
    """How far the frames reach beyond what they surround, left and right."""
    places = [place for _, place in place_frames(scene, layout)]
    return (
        max([0.0, *(-place.left for place in places)]),
        max([0.0, *(place.right - layout.width for place in places)]),
    )
