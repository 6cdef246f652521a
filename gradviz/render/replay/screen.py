"""The screen of a replay: its panels on a terminal of any size.

Note [Sizes]
~~~~~~~~~~~~
From 76 columns on queues stand beside workers and countdowns, from 150 on the events
beside both; on fewer all stand one below the other. Below 40 columns or 10 lines only
what happened is told, in as many lines as there are.
"""

import textwrap
from collections.abc import Callable
from typing import Final, TypeAlias

from rich.text import Text

from gradviz.render.replay import node_panel, panels
from gradviz.render.replay.keys import SHORT
from gradviz.render.replay.panel_lines import row, shares
from gradviz.render.replay.panels import Shown
from gradviz.render.replay.player import Player
from gradviz.render.replay.words import ReplayWords
from gradviz.render.words.text import clean, count, duration, shorten

LEAST_WIDTH: Final = 40
LEAST_HEIGHT: Final = 10
TWO_COLUMNS: Final = 76
THREE_COLUMNS: Final = 150

_Panel: TypeAlias = Callable[[Shown, int, int], list[Text]]


def screen(player: Player, words: ReplayWords, width: int, height: int) -> list[Text]:
    """The lines of the screen: as many as it is high, each as wide as it is."""
    if width < 1 or height < 1:
        return []
    around = None
    if player.selected is not None:
        around = player.replay.around(*player.selected, player.place)
    note = ", followed" if player.is_followed else ", chosen" * player.is_chosen
    now = player.replay.at(player.place, most=height + player.scrolled)
    shown = Shown(
        *(player.replay, words, now, around, note, player.pointed, player.scrolled)
    )
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        lines = _tiny(player, shown, width, height)
    else:
        head = _head(player, shown, width, height)
        body = _body(shown, width, height - len(head) - 1)
        lines = [*head, *body, _foot(player, width)]
    return [row(width, line) for line in lines[:height]]


def _head(player: Player, shown: Shown, width: int, height: int) -> list[Text]:
    """Return the trace, the place in it, the event, and its reason."""
    space = 4 if height >= 24 else 3 if height >= 18 else 2
    event, words = shown.now.event, shown.words
    said = f"thread {words.thread(event.thread)}: {words.sentence(event)}"
    lines = [
        _title(player, width),
        _position(player, shown, width),
        *_missing(words, width),
        *_passes(shown, width, height),
    ]
    what = _wrapped(said, width, min(space - 1, 2), panels.style_of(event) or "bold")
    why = "" if shown.now.choice is None else f"Why: {words.why(shown.now.choice)}"
    rest = space - len(what)
    because = _wrapped(why, width, rest, "yellow")
    return [*lines, *what, *because, *[Text()] * (rest - len(because))]


def _title(player: Player, width: int) -> Text:
    replay = player.replay
    path = replay.trace.path
    name = shorten(clean(path.name), 40) if path else "in memory"
    of = replay.passes
    which = f"pass {of[0]}" if len(of) == 1 else count(len(of), "pass")
    left = Text(f" gradviz replay  {name}  {which}", style="bold")
    state = "playing" if player.is_playing else "paused"
    line = row(width, left, f"{state}, {player.speed:,} events/s ")
    line.stylize("reverse")
    return line


def _position(player: Player, shown: Shown, width: int) -> Text:
    total, here = len(player.replay), player.place
    said = (
        f" event {here + 1:,}/{total:,}  {shown.words.time(shown.now.event.t_ns)}"
        f" of {duration(player.replay.duration_ns)} "
    )
    room = width - len(said) - 1
    if room < 8:
        return Text(said)
    done = round(room * (here + 1) / total)
    return Text.assemble(
        (said, "bold"), ("━" * done, "bold cyan"), ("─" * (room - done), "dim")
    )


def _missing(words: ReplayWords, width: int) -> list[Text]:
    """Return the losses of the trace, in a line; ``?`` shows all."""
    missing = list(words.missing())
    if not missing:
        return []
    return [row(width, Text(f" {' '.join(missing)}", style="bold red"))]


def _passes(shown: Shown, width: int, height: int) -> list[Text]:
    if height < 16:
        return []
    moment = shown.now.moment
    told = [shown.words.open_pass(one) for one in moment.passes[-3:]]
    if more := moment.num_passes - len(told):
        told.insert(0, f"{more:,} more")
    return [row(width, Text(f" {';  '.join(told)}", style="dim"))]


def _wrapped(said: str, width: int, space: int, style: str) -> list[Text]:
    """Some words in so many lines, cut where they are more."""
    lines = _lines(said, width - 2)
    if len(lines) > space:
        lines = [*lines[: space - 1], " ".join(lines[space - 1 :])]
    return [row(width, Text(f" {line}", style=style)) for line in lines]


def _lines(said: str, width: int) -> list[str]:
    return textwrap.wrap(said, max(width, 1), break_on_hyphens=False)


def _body(shown: Shown, width: int, height: int) -> list[Text]:
    if width >= THREE_COLUMNS:
        side = width // 3
        left = _two(shown, width - side - 1, height, node_panel.node)
        return _beside(left, node_panel.events(shown, side, height))
    if width >= TWO_COLUMNS:
        return _two(shown, width, height, _node_and_events)
    moment = shown.now.moment
    wanted = {
        panels.queues: 1 + len(moment.queues) + sum(moment.num_queued.values()),
        panels.workers: 1 + _num_worker_lines(shown),
        panels.waiting: 1 + moment.num_countdowns,
        node_panel.node: 3,
    }
    if height < 12:
        del wanted[node_panel.node]
    heights = shares([max(one, 2) for one in wanted.values()], height)
    heights[0] += height - sum(heights)
    return _below(shown, width, list(zip(wanted, heights, strict=True)))


def _num_worker_lines(shown: Shown) -> int:
    return sum(max(len(one.running), 1) for one in shown.now.moment.workers)


def _two(shown: Shown, width: int, height: int, bottom: _Panel) -> list[Text]:
    """Queues beside workers and countdowns, and something below both."""
    below = min(height * 4 // 9, 16) if height >= 10 else 0
    above = height - below
    half = (width - 1) // 2
    moment = shown.now.moment
    upper = min(_num_worker_lines(shown) + 1, max(above // 2, 2))
    last = min(len(moment.streams) + 1, above // 4) if moment.streams else 0
    parts: list[tuple[_Panel, int]] = [
        (panels.workers, upper),
        (panels.waiting, above - upper - last),
        (panels.streams, last),
    ]
    right = _below(shown, width - half - 1, parts)
    lines = _beside(panels.queues(shown, half, above), right)
    return [*lines, *(bottom(shown, width, below) if below else [])]


def _node_and_events(shown: Shown, width: int, height: int) -> list[Text]:
    upper = min(height // 2, 6) if height >= 7 else height
    return _below(
        shown, width, [(node_panel.node, upper), (node_panel.events, height - upper)]
    )


def _below(shown: Shown, width: int, parts: list[tuple[_Panel, int]]) -> list[Text]:
    return [
        line
        for part, height in parts
        if height > 0
        for line in part(shown, width, height)
    ]


def _beside(left: list[Text], right: list[Text]) -> list[Text]:
    empty = Text()
    height = max(len(left), len(right))
    left += [empty] * (height - len(left))
    right += [empty] * (height - len(right))
    bar = ("│", "dim")
    return [Text.assemble(a, bar, b) for a, b in zip(left, right, strict=True)]


def _foot(player: Player, width: int) -> Text:
    """Return the keys, or a message."""
    if player.message:
        return Text(f" {player.message}", style="bold reverse")
    line = Text()
    for key, word in SHORT:
        part = Text.assemble(" ", (f" {key} ", "reverse"), f" {word}")
        if line.cell_len + part.cell_len <= width:
            line.append_text(part)
    return line


def _tiny(player: Player, shown: Shown, width: int, height: int) -> list[Text]:
    """Return the event, in words alone."""
    words, event = shown.words, shown.now.event
    said = [
        player.message,
        f"{player.place + 1:,}/{len(player.replay):,} {words.time(event.t_ns)}",
        f"{words.thread(event.thread)}: {words.sentence(event)}",
        "" if shown.now.choice is None else words.why(shown.now.choice),
        *(
            f"queue {words.queue(queue)}: {'; '.join(map(words.task, tasks[:3]))}"
            for queue, tasks in shown.now.moment.queues.items()
        ),
    ]
    lines = [line for one in said if one for line in _lines(one, width)]
    room = max(height - 1, 1)
    lines = [*lines[:room], *[""] * (room - len(lines)), "? keys, q quit"]
    return [Text(line) for line in lines[:height]]
