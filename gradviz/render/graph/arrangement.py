"""A scene and its layout, made to fit each other.

What boxes are called depends on the frames around them, how wide they are on what they
are called, and which frames can be drawn on the layout. So what would stand in a frame
as a stranger is first sent below all that is in it, or above. Frames that cannot be
drawn even so are dropped, and boxes called anew.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from graphlib import CycleError, TopologicalSorter
from typing import Final, NamedTuple, TypeAlias

from gradviz.render.graph.graph_scene import ModuleFrame, Scene
from gradviz.render.graph.module_frames import looked_at, with_room
from gradviz.render.layout.placed_graph import BoxLayout

#: Pairs of boxes of which the first stands above the second.
Stacked: TypeAlias = tuple[tuple[int, int], ...]
#: Lays out the boxes of a scene so that an order holds.
PlaceBoxes: TypeAlias = Callable[[Scene, Stacked], BoxLayout]

#: In larger pictures those frames are drawn for which there happens to be room.
MAX_BOXES: Final = 200
MAX_TRIES: Final = 4
#: Maximum number of pairs of boxes kept apart for one frame.
MAX_PAIRS: Final = 5_000


class _Try(NamedTuple):
    """One layout, and the strangers in those frames that it leaves no room for."""

    scene: Scene
    order: Stacked
    layout: BoxLayout
    strangers: list[tuple[ModuleFrame, set[int]]]

    def without_those_frames(self) -> Scene:
        dropped = [frame for frame, _ in self.strangers]
        kept = (frame for frame in self.scene.frames if frame not in dropped)
        return self.scene.with_frames(kept)


def arranged(scene: Scene, place_boxes: PlaceBoxes) -> tuple[Scene, BoxLayout, Stacked]:
    """Return a scene with those of its frames that can be drawn, and its layout.

    And the order in which that layout was asked for, the last time with that order.

    Args:
        scene: The scene with all its frames.
        place_boxes: Lays out its boxes.
    """
    best = current = _tried(scene, (), place_boxes)
    for _ in range(MAX_TRIES if len(scene.boxes) <= MAX_BOXES else 0):
        more = _apart(current)
        if not more:
            break
        current = _tried(scene, (*current.order, *more), place_boxes)
        if len(current.strangers) < len(best.strangers):
            best = current
    has_names = any(box.name for box in scene.boxes)  # which frames leave out
    for _ in range(MAX_TRIES if has_names else 0):
        if not best.strangers:
            break
        best = _tried(best.without_those_frames(), best.order, place_boxes)
    return best.scene, best.layout, best.order


def _tried(scene: Scene, order: Stacked, place_boxes: PlaceBoxes) -> _Try:
    layout = with_room(scene, place_boxes(scene, order))
    looked = looked_at(scene, layout)
    met = [(frame, strangers) for frame, _, strangers in looked if strangers]
    return _Try(scene, order, layout, met)


def _apart(one: _Try) -> list[tuple[int, int]]:
    """Return an order in which no stranger stands beside what is in a frame."""
    ways = {*one.scene.edges, *one.order}
    found: list[tuple[int, int]] = []
    for frame, strangers in one.strangers:
        members = set(frame.members)
        under = _reached(ways, members)
        over = _reached({(lower, upper) for upper, lower in ways}, members)
        # Leaves stand beside the node that they belong to, wherever it is put.
        ranked = members.difference(one.scene.aside) or members
        inner = {way for way in ways if ranked.issuperset(way)}
        lowest = ranked - {upper for upper, _ in inner}
        highest = ranked - {lower for _, lower in inner}
        first = min(members)
        # Boxes reached from the frame that lead back to it stay where they are.
        below = {at for at in strangers - over if at in under or at > first}
        above = strangers - under - below
        more = {(upper, lower) for upper in lowest for lower in below}
        more |= {(upper, lower) for upper in above for lower in highest}
        if len(more) <= MAX_PAIRS and _is_acyclic(ways | more):
            found += sorted(more - ways)
            ways |= more
    return found


def _reached(ways: Iterable[tuple[int, int]], start: Iterable[int]) -> set[int]:
    """Return what ways lead to from some boxes."""
    below: dict[int, list[int]] = defaultdict(list)
    for upper, lower in ways:
        below[upper].append(lower)
    found: set[int] = set()
    pending = [*start]
    while pending:
        for one in below[pending.pop()]:
            if one not in found:
                found.add(one)
                pending.append(one)
    return found


def _is_acyclic(ways: Iterable[tuple[int, int]]) -> bool:
    sorter = TopologicalSorter[int]()
    for upper, lower in ways:
        sorter.add(lower, upper)
    try:
        sorter.prepare()
    except CycleError:
        return False
    return True
