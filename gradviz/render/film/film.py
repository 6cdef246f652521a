"""A film of a backward pass: its graph, its queues and its countdowns, frame by frame.

Each frame is what `gradviz replay` says right after one event. The graph stands still
on the left and its boxes change; the words that change stand beside it and below.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from gradviz.analysis.moments.event_replay import Replay
from gradviz.render.animation import Track, animated
from gradviz.render.film.film_markup import FILM_STYLE
from gradviz.render.film.film_stage import FilmStage
from gradviz.render.markup import document

#: Pixels of a film that nobody gave a size, the smallest and the largest.
SIZE: Final = (1_000, 700)
MIN_SIZE: Final = (640, 420)
MAX_SIZE: Final = (3_840, 2_160)

#: A film has no more frames: some kilobytes each.
MAX_FRAMES: Final = 300
#: Frames in a second.
SPEED: Final = 4.0
#: For so long the last frame is seen before the film begins anew.
HOLD_S: Final = 2.0

#: Kinds of events that are shown where there are too many of all; see `frames_of`.
_TIERS: Final = (
    (
        *("task_popped", "node_started", "node_completed", "gradient_buffered"),
        *("node_failed", "node_skipped", "task_failed"),
    ),
    ("node_started", "node_failed", "task_failed"),
)


class Film(NamedTuple):
    """A film, ready to be written.

    Attributes:
        title: Title that names the pass.
        width: In pixels.
        height: In pixels.
        below: Parts that stand still below all that changes.
        tracks: Parts that change, each frame by frame, the last above all others.
        above: Parts that stand still above all that changes.
        seconds: Time that each frame is seen.
        notes: Remarks on what is left out, a sentence each.
        poster: The frame that is seen where nothing moves.
    """

    title: str
    width: float
    height: float
    below: tuple[str, ...]
    tracks: tuple[Track, ...]
    above: tuple[str, ...]
    seconds: float
    notes: tuple[str, ...]
    poster: int = 0

    @property
    def num_frames(self) -> int:
        """The number of frames."""
        return len(self.tracks[0])

    def svg(self) -> bytes:
        """The film as an animated SVG, which plays without end and without a script."""
        moving = (
            group
            for track in self.tracks
            for group in animated(track, self.seconds, self.poster)
        )
        return self._document([*self.below, *moving, *self.above])

    def frame(self, at: int) -> bytes:
        """One frame as an SVG in which nothing moves."""
        shown = (track[at] for track in self.tracks)
        return self._document([*self.below, *filter(None, shown), *self.above])

    def _document(self, parts: Sequence[str]) -> bytes:
        return document(self.title, self.width, self.height, parts, FILM_STYLE)


def frames_of(replay: Replay, most: int = MAX_FRAMES) -> list[int]:
    """Choose the events that a film shows: all, if they are not too many.

    Of more events first those are left out that follow from others, then all but the
    starts of nodes; of too many starts some are shown, evenly spread. The first event
    and the last one are always shown.

    Args:
        replay: The replay.
        most: Maximum number of frames, at least two.
    """
    ends = [0, len(replay) - 1]
    chosen: list[int] = list(range(len(replay)))
    for kinds in _TIERS:
        if len(chosen) <= most:
            return chosen
        found = [replay.of_kind(kind) for kind in kinds]
        some = sorted({*ends, *np.concatenate(found).tolist()})
        if len(some) > len(ends):
            chosen = some
    if len(chosen) <= most:
        return chosen
    spread = np.linspace(0, len(chosen) - 1, max(most, len(ends)))
    return [chosen[round(at)] for at in spread.tolist()]


def make_film(
    replay: Replay,
    task: int,
    places: Sequence[int],
    *,
    size: tuple[int, int] = SIZE,
    speed: float = SPEED,
) -> Film:
    """Make a film of a pass.

    Args:
        replay: The events of the pass, and of those called from inside of it.
        task: The pass whose graph is drawn.
        places: Indices of the events that are frames, in their order, at least one.
        size: Width and height in pixels.
        speed: Number of frames that are seen in a second.
    """
    stage = FilmStage(replay, task, places, size)
    hold = round(HOLD_S * speed)
    tracks = [_held(track, hold) for track in stage.tracks() if any(track)]
    return Film(
        title=stage.title,
        width=size[0],
        height=size[1],
        below=tuple(stage.below()),
        tracks=tuple(tracks),
        above=tuple(stage.above()),
        seconds=1 / speed,
        notes=tuple(stage.notes()),
        poster=stage.fullest(),
    )


def _held(track: Track, frames: int) -> Track:
    """A part whose last frame is seen for so many more."""
    return (*track, *[track[-1]] * frames)
