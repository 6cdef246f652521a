"""The node that is looked at, with its neighbors, and the events around now."""

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from gradviz.analysis.moments.node_stages import NodeAt, NodeStage
from gradviz.analysis.tables.executions import definition
from gradviz.render.replay.panel_lines import DIM, cut, headed, row
from gradviz.render.replay.panels import FAILED, RUNS, Shown, style_of
from gradviz.render.words.moment_text import stage_text
from gradviz.render.words.text import clean, duration, place

_STAGE_STYLES: Final[dict[NodeStage, str]] = {
    "not reached": DIM,
    "waiting": "magenta",
    "queued": "cyan",
    "popped": "yellow",
    "running": RUNS,
    "completed": "green",
    "captured": "green",
    "failed": FAILED,
    "skipped": FAILED,
    "left over": FAILED,
}


def node(shown: Shown, width: int, height: int) -> list[Text]:
    """The node that is looked at, and its neighbors."""
    around = shown.around
    if around is None:
        return headed("Node", [], width, height)
    one = around.node
    about = definition(shown.replay.trace, one.node)
    where = [
        clean(", ".join(about.parameters) or about.module),
        clean(place(about.location)),
        clean(about.device),
    ]
    state = Text.assemble(
        (_stage(shown, one), _STAGE_STYLES[one.stage]),
        (f"  {'  '.join(filter(None, where))}", DIM),
    )
    half = (width - 1) // 2
    room, other = max(height - 2, 0), width - half - 1
    at = shown.pointed
    left = _side(shown, "gets from", around.givers, around.num_givers, half, room, at)
    at -= len(around.givers)
    right = _side(
        shown, "gives to", around.receivers, around.num_receivers, other, room, at
    )
    beside = [Text.assemble(a, " ", b) for a, b in zip(left, right, strict=True)]
    lines = [row(width, state), *beside]
    words = shown.words
    name = words.node(one.node, one.task)
    title = f"{name} of pass {words.pass_of(one.task)}{shown.note}"
    return headed(title, lines[: height - 1], width, height)


def _side(
    shown: Shown,
    word: str,
    some: Sequence[NodeAt],
    total: int,
    width: int,
    room: int,
    pointed: int,
) -> list[Text]:
    """Neighbors of one side, the one that is pointed at among them; empty lines."""
    lines = [] if some else [row(width, Text(f"{word} nobody", style=DIM))]
    is_here = 0 <= pointed < len(some)
    last = pointed if is_here else 0
    first = max(min(last - max(room - 2, 0), total - room), 0)
    for number, one in enumerate(some[first:], first):
        begin = " " * len(word) if lines else word
        mark = "▸" if number == pointed else " "
        stage = (f"  {stage_text(one)}", _STAGE_STYLES[one.stage])
        name = (
            shown.name(one.node, one.task, width),
            "reverse" if number == pointed else "",
        )
        line = Text.assemble((f"{begin}{mark}", DIM), name, stage)
        which = f"{number + 1} of {total}" if number == pointed else ""
        if room == 1 and total > 1:  # no line is left for how many more there are
            return [row(width, line, which or f"and {total - 1:,} more")]
        lines.append(row(width, line, which))
    kept = cut(lines, width, room, max(total - first, 1))
    return [*kept, *[Text(" " * width)] * (room - len(kept))]


def _stage(shown: Shown, one: NodeAt) -> str:
    now = shown.now.moment
    said = stage_text(one)
    if one.stage == "queued":
        for queue, tasks in now.queues.items():
            for number, task in enumerate(tasks):
                if (task.task, task.node) == (one.task, one.node):
                    of = now.num_queued[queue]
                    said = f"place {number} of {of:,} in queue {queue}"
    if one.since_ns is None:
        return said
    return f"{said}, for {duration(now.t_ns - one.since_ns)}"


def events(shown: Shown, width: int, height: int) -> list[Text]:
    """Return the previous events, the current one, and the next ones."""
    here, total = shown.now.place, len(shown.replay)
    room = height - 1
    first = max(min(here - room // 2, total - room), 0)
    lines = []
    for number in range(first, min(first + room, total)):
        event = shown.replay.event(number)
        is_now = number == here
        begin = f"{'▸' if is_now else ' '}{number + 1:>{len(str(total))}} "
        style = style_of(event) if is_now else style_of(event).replace("bold ", "")
        line = Text.assemble(
            (begin, "bold" if is_now else DIM),
            (shown.words.sentence(event), style),
        )
        lines.append(row(width, line))
    return headed("Events", lines, width, height)
