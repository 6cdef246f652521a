"""The ready queues: how long each was when, sleeps, hand-overs, who overtook whom."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from gradviz.analysis.moment import QueuedTask
from gradviz.analysis.queues import (
    Contents,
    Handover,
    Overtaken,
    Queues,
    QueueSummary,
)
from gradviz.render.terminal.curves import MIN_COLUMNS, curve_text
from gradviz.render.terminal.rows import print_rows
from gradviz.render.terminal.tables import (
    NOTHING,
    duration_text,
    heading,
    indented,
    make_console,
    make_table,
    name_text,
)
from gradviz.render.text import clean, count, duration

MAX_OVERTAKEN: Final = 10
MAX_HANDOVERS: Final = 10


def print_queues(queues: Queues, console: Console | None = None) -> None:
    """Print what the ready queues did, as wide as the console is."""
    console = console or make_console()
    console.print(Text(_head(queues), style="bold"))
    console.print(indented(_table(queues.queues)))
    names = [name_text(one.name) for one in queues.queues]
    gutter = max(map(len, names), default=0) + 4
    columns = max(console.width - gutter, MIN_COLUMNS)
    console.print(heading(f"Tasks in them over {duration(queues.duration_ns)}"))
    for one, name in zip(queues.queues, names, strict=True):
        curve = curve_text(one.lengths, queues.duration_ns, columns, one.longest)
        line = Text.assemble((f"  {name}".ljust(gutter), "dim"), (curve, "blue"))
        console.print(line, no_wrap=True, overflow="crop")
    if handovers := queues.handovers[:MAX_HANDOVERS]:
        total = len(queues.handovers)
        console.print(heading("Handed over", len(handovers), total))
        console.print(_handovers(handovers, queues.threads))
    if overtaken := queues.overtaken[:MAX_OVERTAKEN]:
        total = sum(one.num_overtaken for one in queues.queues)
        console.print(heading("Most overtaken", len(overtaken), total))
        console.print(_overtaken(overtaken))


def print_queue_contents(contents: Contents, console: Console | None = None) -> None:
    """Print what lay in the queues at one moment, what would be popped first on top."""
    console = console or make_console()
    total = sum(map(len, contents.queues.values()))
    after = duration(contents.after_ns)
    console.print(Text(f"{count(total, 'task')} queued after {after}", style="bold"))
    for queue, tasks in contents.queues.items():
        console.print(heading(f"{clean(contents.queue_names[queue])}, queue {queue}"))
        print_rows(
            console,
            (
                "#",
                "name",
                "node",
                "pass",
                "depth",
                "seq",
                "queued for",
                "made ready by",
            ),
            _contents_rows(contents, tasks),
        )


def _contents_rows(
    contents: Contents, tasks: Sequence[QueuedTask]
) -> Iterator[list[str]]:
    for place, one in enumerate(tasks):
        yield [
            str(place),
            name_text(contents.node_names.get(one.node, "wake-up")),
            str(one.node) if one.node >= 0 else NOTHING,
            str(one.task),
            str(one.reentrant_depth),
            "max" if one.sequence_nr < 0 else str(one.sequence_nr),
            duration(contents.t_ns - one.pushed_ns),
            str(one.pushed_by) if one.pushed_by >= 0 else NOTHING,
        ]


def _head(queues: Queues) -> str:
    num_tasks = sum(one.num_pushed for one in queues.queues)
    passes = (
        f"Backward pass {queues.tasks[0]}"
        if len(queues.tasks) == 1
        else count(len(queues.tasks), "backward pass")
    )
    return (
        f"{passes}: {count(num_tasks, 'task')} in "
        f"{count(len(queues.queues), 'ready queue')}"
    )


def _table(queues: Sequence[QueueSummary]) -> Table:
    table = make_table(
        *("name", "queue", "pushed", "left in it", "longest", "mean", "overtaken"),
        *("asleep", "sleeps"),
    )
    for one in queues:
        left = one.num_pushed - one.num_popped
        table.add_row(
            Text(name_text(one.name)),
            Text(str(one.queue)),
            Text(f"{one.num_pushed:,}"),
            Text(f"{left:,}" if left else NOTHING, style="bold red" if left else ""),
            Text(f"{one.longest:,}"),
            Text(f"{one.mean_length:.1f}"),
            Text(f"{one.num_overtaken:,}"),
            Text(duration_text(one.asleep_ns or None)),
            Text(f"{one.num_sleeps:,}"),
        )
    return table


def _handovers(
    handovers: Sequence[Handover], threads: Mapping[int, str]
) -> RenderableType:
    table = make_table("pushed by", "popped by", "tasks")
    for one in handovers:
        table.add_row(
            Text(f"{one.pushed_by} {name_text(threads[one.pushed_by])}"),
            Text(f"{one.popped_by} {name_text(threads[one.popped_by])}"),
            Text(f"{one.num_tasks:,}"),
        )
    return indented(table)


def _overtaken(overtaken: Sequence[Overtaken]) -> RenderableType:
    table = make_table("name", "node", "pass", "queue", "waited", "times", "by nodes")
    for one in overtaken:
        nodes = ", ".join("wake-up" if node < 0 else str(node) for node in one.by)
        more = one.num_by - len(one.by)
        table.add_row(
            Text(name_text(one.name)),
            Text(str(one.node)),
            Text(str(one.task)),
            Text(str(one.queue)),
            Text(duration(one.waited_ns)),
            Text(f"{one.num_by:,}"),
            Text(clean(nodes + (f" and {more:,} more" if more else ""))),
        )
    return indented(table)
