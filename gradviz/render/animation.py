"""Pictures that move: parts of an SVG that change from frame to frame.

What a part shows is written once, however often it comes back, with the times at which
it is seen. The animation is SMIL, which plays without a script, also where a page
shows the file as an image. Where nothing moves, in print for example, one frame is
seen, the poster.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, TypeAlias

from gradviz.render.markup import element

#: The markup that a part of a picture shows in each frame; empty for nothing.
Track: TypeAlias = Sequence[str]

_NONE: Final = "none"
_INLINE: Final = "inline"
_HIDDEN: Final = ' display="none"'


def animated(track: Track, seconds: float, poster: int = 0) -> list[str]:
    """Return groups that take turns, one for each different content of a part.

    Args:
        track: Markup of the part, frame by frame.
        seconds: Duration of each frame.
        poster: The frame that is seen where nothing moves.
    """
    frames: dict[str, list[int]] = defaultdict(list)
    for frame, markup in enumerate(track):
        if markup:
            frames[markup].append(frame)
    return [
        f"<g{'' if poster in seen else _HIDDEN}>{markup}"
        f"{_turns(seen, len(track), seconds)}</g>"
        for markup, seen in frames.items()
    ]


def _turns(seen: Sequence[int], total: int, seconds: float) -> str:
    """Return the element that shows something in some frames, and hides it in others.

    Args:
        seen: The frames, in their order.
        total: Number of frames.
        seconds: Duration of each frame.
    """
    if len(seen) == total:
        return ""
    inside = {*seen}
    values = {0: _INLINE if 0 in inside else _NONE}
    for frame in seen:
        if frame - 1 not in inside:
            values[frame] = _INLINE
        if frame + 1 not in inside and frame + 1 < total:
            values[frame + 1] = _NONE
    return element(
        "animate",
        attributeName="display",
        values=";".join(values.values()),
        keyTimes=";".join(f"{at / total:.6g}" for at in values),
        calcMode="discrete",
        dur=f"{total * seconds:g}s",
        repeatCount="indefinite",
    )
