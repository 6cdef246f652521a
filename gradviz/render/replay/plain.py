"""A replay as text, event by event, for a log, a script or a screen reader."""

from collections.abc import Iterable, Iterator
from typing import Final

from rich.console import Console

from gradviz.analysis.moments.event_replay import Replay, ReplayedEvent
from gradviz.analysis.moments.moment import Moment
from gradviz.render.replay.words import ReplayWords, clean_name
from gradviz.render.terminal.cells import make_console
from gradviz.render.words.text import count, duration

#: Maximum number of tasks of a queue, waiting nodes, threads and passes told.
MOST: Final = 10


def print_replay(
    replay: Replay, places: Iterable[int], console: Console | None = None
) -> None:
    """Print some events, each with the state after it.

    No line is cut, and nothing depends on the width of a terminal.

    Args:
        replay: The replay.
        places: Indices of the events to print.
        console: Console to print to.
    """
    console = console or make_console()
    words = ReplayWords(replay)
    lines = [*_head(replay, words)]
    for place in places:
        lines += ["", *_lines(replay, words, replay.at(place, most=MOST))]
        console.file.write("\n".join(lines) + "\n")
        lines.clear()
    console.file.write("".join(f"{line}\n" for line in lines))
    console.file.flush()


def _head(replay: Replay, words: ReplayWords) -> Iterator[str]:
    of = replay.passes
    which = f"pass {of[0]}" if len(of) == 1 else count(len(of), "pass")
    yield (
        f"Replay of {which}: {count(len(replay), 'event')}, "
        f"{duration(replay.duration_ns)}"
    )
    yield from words.missing()


def _lines(replay: Replay, words: ReplayWords, shown: ReplayedEvent) -> Iterator[str]:
    event, moment = shown.event, shown.moment
    yield (
        f"Event {shown.place + 1:,} of {len(replay):,}, {words.time(event.t_ns)}, pass "
        f"{words.pass_of(event.task)}, thread {words.thread(event.thread)}"
    )
    yield f"  {words.sentence(event)}"
    if shown.choice is not None:
        yield f"  Why this one: {words.why(shown.choice)}"
    if more := moment.num_passes - len(moment.passes):
        yield f"  {count(more, 'more pass')} around these"
    for one in moment.passes:
        yield f"  {words.open_pass(one).capitalize()}"
    yield from _queues(words, moment)
    for worker in moment.workers:
        doing = words.worker(worker, event.t_ns)
        yield f"  Thread {words.thread(worker.thread)} {doing}"
    if more := moment.num_workers - len(moment.workers):
        yield f"  {count(more, 'more thread')}"
    yield from _waiting(words, moment)


def _queues(words: ReplayWords, moment: Moment) -> Iterator[str]:
    for queue, tasks in moment.queues.items():
        total = moment.num_queued[queue]
        more = f"; and {total - len(tasks):,} more" * (total > len(tasks))
        listed = "; ".join(map(words.task, tasks))
        yield (
            f"  Queue {words.queue(queue)}, {count(total, 'task')}, the next first: "
            f"{listed}{more}"
        )
    if rest := len(moment.num_queued) - len(moment.queues):
        yield f"  {count(rest, 'more queue')} with tasks"


def _waiting(words: ReplayWords, moment: Moment) -> Iterator[str]:
    """Nodes that wait for gradients, and streams for others."""
    waiting = [one for one in moment.countdowns if one.remaining]
    for one in waiting:
        yield f"  {words.countdown(one)}"
    if more := moment.num_waiting - len(waiting):
        yield f"  {count(more, 'more node')} {'wait' if more > 1 else 'waits'}"
    for stream in moment.streams[:MOST]:
        yield f"  Stream {clean_name(stream.stream)}: {words.stream(stream)}"
    if (rest := len(moment.streams) - MOST) > 0:
        yield f"  {count(rest, 'more stream')}"
