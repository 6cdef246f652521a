"""The player of a replay: where it is, whether it runs, and which node is looked at.

It knows no terminal and no clock: keys become calls, and time is what `tick` is told.
"""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from gradviz.analysis.moments.event_replay import Replay
from gradviz.analysis.moments.node_stages import NodeAt
from gradviz.analysis.nodes.addresses import NoSuchNodeError, SeveralNodesError
from gradviz.render.words.text import clean, nanoseconds
from gradviz.trace.format.table import Column

#: Events in a second.
SPEEDS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000),
    *(50_000, 100_000, 200_000, 500_000, 1_000_000),
)

#: Of more nodes of one name it is not looked for the first that is still to come.
_MAX_LOOKED_AT: Final = 100

_EVENT: Final = re.compile(r"#? ?([0-9]{1,12})")
_PERCENT: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%")


class Player:
    """A place in a replay, which moves.

    Args:
        replay: Replay to play.
        place: The event to begin with.

    Attributes:
        replay: Replay that is played.
        place: The event that is shown.
        selected: The pass and the node that are looked at: of the event that is shown,
            unless one was chosen. None before there was one.
        is_chosen: True if one was chosen.
        is_followed: True if only events that tell of that node are stepped on.
        is_playing: True if time moves it.
        message: Message about the last call, empty for none.
        pointed: Index of the neighbor that is pointed at, those that give to it counted
            first; -1 for none.
        scrolled: So many rows of long lists are scrolled by, as far as they have them.
    """

    def __init__(self, replay: Replay, place: int = 0) -> None:
        self.replay = replay
        self.place = 0
        self.selected: tuple[int, int] | None = None
        self.is_chosen = False
        self.is_followed = False
        self.is_playing = False
        self.message = ""
        self.pointed = -1
        self.scrolled = 0
        self._speed = 2
        self._due = 0.0
        self._steps: Column | None = None
        self.go(place)

    @property
    def speed(self) -> int:
        """Events in a second."""
        return SPEEDS[self._speed]

    def go(self, place: int) -> None:
        """Show an event, the first or the last one where it is none."""
        self.place = min(max(place, 0), len(self.replay) - 1)
        self.message = ""
        event = self.replay.event(self.place)
        if not self.is_chosen and event.node >= 0:
            self._select(event.task, event.node)

    def step(self, by: int) -> None:
        """Move by so many events: of the node that is followed, if one is."""
        steps = self._steps
        if steps is None:
            self._move(self.place + by, by)
            return
        # Between two of them it is as far as from one.
        after = int(np.searchsorted(steps, self.place, side="right"))
        before = int(np.searchsorted(steps, self.place, side="left"))
        there = after + by - 1 if by > 0 else before + by
        if not 0 <= there < len(steps):
            there = min(max(there, 0), len(steps) - 1)
            is_ahead = (steps[there] - self.place) * by > 0
            self.go(int(steps[there]) if is_ahead else self.place)
            self._stop(by, "about the node that is followed")
            return
        self.go(int(steps[there]))

    def next_of(self, kind: str, by: int) -> None:
        """Move to the next event of a kind, or the one before; see `Replay.of_kind`."""
        places = self.replay.of_kind(kind)
        places = places[places > self.place] if by > 0 else places[places < self.place]
        if not len(places):
            self._stop(by, f"of kind {kind}")
            return
        self.go(int(places[0 if by > 0 else -1]))

    def toggle(self) -> None:
        """Play, from the start if it is at the end; or pause."""
        self.is_playing = not self.is_playing
        self._due = 0.0
        if self.is_playing and self.place == len(self.replay) - 1:
            self.go(0)

    def faster(self, by: int) -> None:
        """Change the speed by so many degrees."""
        self._speed = min(max(self._speed + by, 0), len(SPEEDS) - 1)

    def tick(self, seconds: float) -> bool:
        """Let so much time go by; return whether that moved it."""
        if not self.is_playing:
            return False
        self._due += seconds * self.speed
        by = int(self._due)
        self._due -= by
        if by:
            self.step(by)
        return by > 0

    def jump(self, text: str) -> None:
        """Go where `text` says: ``1.5ms``, ``120`` or ``#120``, ``50%``."""
        after_ns = nanoseconds(text)
        event = _EVENT.fullmatch(text.strip())
        percent = _PERCENT.fullmatch(text.strip())
        if after_ns is not None:
            self.go(self.replay.place_at(after_ns))
        elif event:
            self.go(int(event[1]) - 1)
        elif percent:
            self.go(round(float(percent[1]) / 100 * (len(self.replay) - 1)))
        elif text.strip():
            self.message = (
                f"{clean(text)[:40]!r} is not a time (1.5ms), event (120) or part (50%)"
            )

    def find(self, address: str) -> None:
        """Choose the node that an address means, and go to its next event.

        Of several it is the first that has events here or later; asked again, the next
        one. What is not a node is said in the message, with what may have been meant.
        """
        task = self.replay.event(self.place).task
        told = ""
        try:
            found = self.replay.find(address, task)
        except SeveralNodesError as error:
            if not error.nodes:
                self.message = clean(str(error))
                return
            number = self._next_of(error.task, error.nodes)
            found = error.task, error.nodes[number]
            told = (
                f"{clean(address.strip())[:40]} means {len(error.nodes):,} nodes, of "
                f"which this is number {number + 1:,}: find it again for the next"
            )
        except NoSuchNodeError as error:
            self.message = clean(str(error))
            return
        self.choose(*found)
        assert self.selected is not None
        about = self.replay.about(*self.selected)
        if len(about):
            at = int(np.searchsorted(about, self.place))
            self.go(int(about[min(at, len(about) - 1)]))
        else:
            told = "no event tells of this node"
        self.message = told

    def _next_of(self, task: int, nodes: Sequence[int]) -> int:
        """Return the ones of some nodes of a pass to look at now."""
        if self.is_chosen and self.selected in {(task, node) for node in nodes}:
            return (nodes.index(self.selected[1]) + 1) % len(nodes)
        for number, node in enumerate(nodes[:_MAX_LOOKED_AT]):
            if (self.replay.about(task, node) >= self.place).any():
                return number
        return 0

    def choose(self, task: int, node: int) -> None:
        """Look at this node, whatever happens."""
        self._select(task, node)
        self.is_chosen = True
        self.message = ""
        if self.is_followed:
            self._steps = self.replay.about(task, node)

    def release(self) -> None:
        """Look at the node of each event again, and follow none."""
        self.is_chosen = self.is_followed = False
        self._steps = None
        self.go(self.place)

    def follow(self) -> None:
        """Step on events of the node that is looked at only; or on all again."""
        if self.is_followed:
            self.is_followed, self._steps = False, None
            self.message = ""
            return
        if self.selected is None:
            self.message = "there is no node to follow yet"
            return
        self.is_followed = True
        self.choose(*self.selected)

    def walk(self, by: int) -> None:
        """Choose the first neighbor of those that give gradients, or that get some."""
        givers, receivers = self._neighbors()
        if there := givers if by < 0 else receivers:
            self.choose(there[0].task, there[0].node)
        elif self.selected is not None:
            self.message = f"nobody {'gives to' if by < 0 else 'gets from'} this node"

    def point(self, by: int) -> None:
        """Point at the next neighbor of either side, or at the one before."""
        givers, receivers = self._neighbors()
        if total := len(givers) + len(receivers):
            first = 0 if by > 0 else total - 1
            self.pointed = first if self.pointed < 0 else (self.pointed + by) % total
        elif self.selected is not None:
            self.message = "this node has no neighbor"

    def enter(self) -> None:
        """Choose the neighbor that is pointed at."""
        givers, receivers = self._neighbors()
        some = (*givers, *receivers)
        if 0 <= self.pointed < len(some):
            there = some[self.pointed]
            self.choose(there.task, there.node)
        else:
            self.message = "tab points at a neighbor to go to"

    def scroll(self, by: int) -> None:
        """Scroll the queues, and the countdowns, as far as the longest of them goes."""
        moment = self.replay.at(self.place, most=1).moment
        longest = max(moment.num_countdowns, *moment.num_queued.values(), 1)
        self.scrolled = min(max(self.scrolled + by, 0), longest - 1)

    def _select(self, task: int, node: int) -> None:
        if self.selected != (task, node):
            self.selected, self.pointed = (task, node), -1

    def _neighbors(self) -> tuple[Sequence[NodeAt], Sequence[NodeAt]]:
        if self.selected is None:
            return (), ()
        around = self.replay.around(*self.selected, self.place)
        return around.givers, around.receivers

    def _move(self, place: int, by: int) -> None:
        self.go(place)
        if not 0 <= place < len(self.replay):
            self._stop(by, "")

    def _stop(self, by: int, which: str) -> None:
        self.is_playing = False
        where = "after this one" if by > 0 else "before this one"
        self.message = " ".join(f"there is no event {which} {where}".split())
