"""Rules for the events of an engine watched from its beginning.

More than `gradviz.trace.checking.lifecycle` asks of any trace: here nothing is lost,
and what is reported as over was over for every thread.
"""

from collections.abc import Iterator, Mapping, Sequence

from gradviz.trace.checking.lifecycle import check_events
from gradviz.trace.events import (
    AnyEvent,
    CallbackRun,
    NodeStarted,
    TaskFailed,
    TaskPushed,
    ThreadStarted,
)


def broken_rules(
    events: Sequence[AnyEvent], devices: Mapping[int, int]
) -> Iterator[str]:
    """Say what is wrong with the events of an engine, a line each.

    * The lifecycle is obeyed.
    * No node of a pass that has failed starts. A thread that did not make it fail may
      start one all the same: it had asked just before.
    * Nothing is pushed to a device before its thread runs.
    * No callback of a pass that has failed runs.

    Args:
        events: In their order.
        devices: Id of a device's queue -> index of the device.
    """
    yield from map(str, check_events(events))
    failed: set[int] = set()
    late: set[tuple[int, int]] = set()
    started: set[int | None] = {None}  # a caller's queue has its caller
    for event in events:
        match event:
            case ThreadStarted():
                started.add(event.device)
            case TaskPushed() if devices.get(event.queue) not in started:
                yield f"{event} went to a thread that does not run"
            case TaskFailed():
                failed.add(event.task)
                late.add((event.task, event.thread))
            case NodeStarted() if (event.task, event.thread) in late:
                yield f"{event} although its pass had failed"
            case NodeStarted() if event.task in failed:
                late.add((event.task, event.thread))
            case CallbackRun() if event.task in failed:
                yield f"{event} although its pass had failed"
            case _:
                pass
