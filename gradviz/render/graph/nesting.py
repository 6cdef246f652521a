"""Passes drawn inside of the boxes that called them.

What was called is laid out first, by itself, and its box is made as large as that
needs: so nobody else's box or edge comes to lie among those of a pass.
"""

from collections.abc import Callable, Sequence
from typing import Final

from gradviz.render.graph.carried_routes import carried_routes
from gradviz.render.graph.graph_scene import Box, Scene
from gradviz.render.graph.module_frames import Rectangle, place_frames
from gradviz.render.layout.placed_graph import BoxLayout

#: Around a panel, and between panels.
GAP: Final = 8.0
#: Between a panel and the boxes in it.
PADDING: Final = 12.0
#: The room of the arrow from a caller to the pass that it called.
ARROW: Final = 18.0


def grown(
    scene: Scene, laid_out: Callable[[Scene], tuple[Scene, BoxLayout]]
) -> tuple[Scene, BoxLayout]:
    """Return a scene with room for nested passes in its boxes, and its layout.

    Args:
        scene: The scene.
        laid_out: Finds places for the boxes of one scene, and says which frames of it
            can be drawn.
    """
    inside: dict[int, tuple[BoxLayout, ...]] = {}
    boxes = list(scene.boxes)
    for at, box in enumerate(boxes):
        if box.passes:
            called = [grown(one, laid_out) for one in box.passes]
            inside[at] = tuple(layout for _, layout in called)
            boxes[at] = _with_room(box, called)
    scene, layout = laid_out(scene._replace(boxes=tuple(boxes)))
    return scene, layout._replace(inside=inside)


def reach_beyond(scene: Scene, layout: BoxLayout) -> tuple[float, float]:
    """Return how far a picture reaches beyond a layout, on the left and on the right.

    Frames do, and edges from one repeat to the next one.
    """
    placed = place_frames(scene, layout)
    routes = carried_routes(scene, layout, placed)
    lefts = [place.left for _, place in placed] + [x for one in routes for x, _ in one]
    return (
        max([0.0, *(-left for left in lefts)]),
        max([0.0, *(place.right - layout.width for _, place in placed)]),
    )


def panels(box: Box, layouts: Sequence[BoxLayout]) -> list[Rectangle]:
    """Return the panels of a box's nested passes, from its upper left corner."""
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
    """Return the height of a box's panels, and of the rest below them."""
    sizes = map(_size, box.passes, layouts)
    return max((high for _, high in sizes), default=-GAP) + GAP


def origin(scene: Scene, layout: BoxLayout) -> tuple[float, float]:
    """Return the origin of a scene in a panel: frames reach beyond the boxes."""
    left, _ = reach_beyond(scene, layout)
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
    """Return the width and height of the panel of a pass."""
    return (
        layout.width + sum(reach_beyond(scene, layout)) + 2 * PADDING,
        layout.height + ARROW + 2 * PADDING,
    )
