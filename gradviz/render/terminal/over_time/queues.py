"""The ready queues: lengths over time, sleeps, hand-overs, overtakings."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from rich.console import Console

from gradviz.analysis.queues.queue_activity import (
    Handover,
    Overtaken,
    Queues,
    QueueSummary,
)
from gradviz.render.terminal.cells import (
    NOTHING,
    address_text,
    duration_text,
    index_text,
    make_console,
    name_text,
    print_heading,
    print_wrapped,
)
from gradviz.render.terminal.over_time.curves import print_curves
from gradviz.render.terminal.row_printer import print_rows
from gradviz.render.words.text import clean, count, duration

if TYPE_CHECKING:
    from gradviz.analysis.queues.queue_contents import Contents, NumberedTask

MAX_OVERTAKEN: Final = 10
MAX_HANDOVERS: Final = 10


def print_queues(queues: Queues, console: Console | None = None) -> None:
    """Print the activity of ready queues, as wide as the console."""
    console = console or make_console()
    print_wrapped(console, _head(queues), "bold", "")
    _print_queues(queues.queues, console)
    print_heading(console, f"Tasks in them over {duration(queues.duration_ns)}")
    curves = [(name_text(one.name), one.lengths, one.longest) for one in queues.queues]
    print_curves(console, curves, queues.duration_ns)
    if handovers := queues.handovers[:MAX_HANDOVERS]:
        total = len(queues.handovers)
        print_heading(console, "Handed over", len(handovers), total)
        _print_handovers(handovers, queues.threads, console)
    if overtaken := queues.overtaken[:MAX_OVERTAKEN]:
        total = sum(one.num_overtaken for one in queues.queues)
        print_heading(console, "Most overtaken", len(overtaken), total)
        _print_overtaken(overtaken, console)


def print_queue_contents(contents: "Contents", console: Console | None = None) -> None:
    """Print the contents of queues at one moment, the next pop on top."""
    console = console or make_console()
    total = sum(map(len, contents.queues.values()))
    after = duration(contents.after_ns)
    print_wrapped(console, f"{count(total, 'task')} queued after {after}", "bold", "")
    for queue, tasks in contents.queues.items():
        title = f"{clean(contents.queue_names[queue])}, queue {queue}"
        print_heading(console, title)
        print_rows(
            console,
            (
                "place",
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
    contents: "Contents", tasks: Sequence["NumberedTask"]
) -> Iterator[list[str]]:
    for place, one in enumerate(tasks):
        yield [
            str(place),
            index_text(one.index),
            name_text(contents.node_names.get(one.node, "wake-up")),
            str(one.node) if one.node >= 0 else NOTHING,
            str(one.task),
            str(one.reentrant_depth),
            "max" if one.sequence_nr < 0 else str(one.sequence_nr),
            duration(contents.t_ns - one.pushed_ns),
            _pusher(one),
        ]


def _pusher(one: "NumberedTask") -> str:
    if one.pushed_by < 0:
        return NOTHING
    return address_text(one.pushed_by, one.pushed_by_index)


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


def _print_queues(queues: Sequence[QueueSummary], console: Console) -> None:
    left = [one.num_pushed - one.num_popped for one in queues]
    rows = (
        [
            name_text(one.name),
            str(one.queue),
            f"{one.num_pushed:,}",
            f"{left_in_it:,}" if left_in_it else NOTHING,
            f"{one.longest:,}",
            f"{one.mean_length:.1f}",
            f"{one.num_overtaken:,}",
            duration_text(one.asleep_ns or None),
            f"{one.num_sleeps:,}",
        ]
        for one, left_in_it in zip(queues, left, strict=True)
    )
    columns = (
        *("name", "queue", "pushed", "left in it", "longest", "mean", "overtaken"),
        *("asleep", "sleeps"),
    )
    bad = {i for i, left_in_it in enumerate(left) if left_in_it}
    print_rows(console, columns, rows, alarming=bad, indent=2)


def _print_handovers(
    handovers: Sequence[Handover], threads: Mapping[int, str], console: Console
) -> None:
    rows = (
        [
            f"{one.pushed_by} {name_text(threads[one.pushed_by])}",
            f"{one.popped_by} {name_text(threads[one.popped_by])}",
            f"{one.num_tasks:,}",
        ]
        for one in handovers
    )
    print_rows(console, ("pushed by", "popped by", "tasks"), rows, indent=2)


def _print_overtaken(overtaken: Sequence[Overtaken], console: Console) -> None:
    rows = (
        [
            index_text(one.index),
            name_text(one.name),
            str(one.node) if one.node >= 0 else NOTHING,
            str(one.task),
            str(one.queue),
            duration(one.waited_ns),
            f"{one.num_by:,}",
            _overtakers(one),
        ]
        for one in overtaken
    )
    columns = ("#", "name", "node", "pass", "queue", "waited", "times", "by nodes")
    print_rows(console, columns, rows, indent=2)


def _overtakers(one: Overtaken) -> str:
    nodes = ", ".join(
        "wake-up" if node < 0 else address_text(node, index)
        for node, index in zip_longest(one.by, one.by_index)
    )
    more = one.num_by - len(one.by)
    return clean(nodes + (f" and {more:,} more" if more else ""))
