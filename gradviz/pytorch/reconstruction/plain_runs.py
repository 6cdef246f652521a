"""Functions that one thread runs one after the other, gone through in one loop.

Note [Plain runs]
~~~~~~~~~~~~~~~~~
In most passes a thread runs one node after the other, in the order that its queue
gives out, and calls no hook and no other pass. Then a function that begins is over
before anything else happens, so it needs no entry among those that run. The loop here
goes through such a stretch and calls what `pass_events` calls for each node. It leaves
off before the first function for which one of these does not hold, with everything as
if the functions before had been gone through one at a time.
"""

from collections.abc import Sequence

from gradviz.pytorch.reconstruction.seen_queues import ReplayedPass, SeenEngine
from gradviz.pytorch.reconstruction.session import SeenRun
from gradviz.pytorch.reconstruction.tasks import (
    NO_TIME,
    note_maker,
    report_gradients,
    report_release,
)


def plain_pass(engine: SeenEngine, number: int) -> ReplayedPass | None:
    """Return the pass that a thread runs, None if its runs may not be plain.

    Args:
        engine: No function that was seen still runs.
        number: The operating system's number of the thread.
    """
    thread = engine.threads.get(number)
    if thread is None or thread.running or len(thread.passes) != 1:
        return None
    replay = thread.passes[0]
    about = replay.about
    is_special = about.graph is None or about.hooks or about.captures or about.error
    if is_special or thread.queue is not replay.queue or engine.inner.are_any_to_come:
        return None
    return replay if replay.queue.is_certain else None


def run_plainly(
    engine: SeenEngine,
    replay: ReplayedPass,
    runs: Sequence[SeenRun],
    first: int,
    offset_ns: int,
    until_ns: int,
) -> int:
    """Go through a stretch of plain runs of one thread.

    Args:
        engine: Engine that has the queues.
        replay: The pass, from `plain_pass`.
        runs: In the order in which they began.
        first: The first of the stretch.
        offset_ns: From the clock of `runs` to that of events.
        until_ns: Time at which a pass begins or returns next.

    Returns:
        The index of the first run after the stretch; `first` if there is none.
    """
    about, queue = replay.about, replay.queue
    thread, task, ran = engine.threads[about.thread], about.task, replay.ran
    rows, last_ns = replay.rows_of(thread), thread.last_ns
    last = len(runs) - 1
    index = first
    while index <= last:
        begin_ns, end_ns, name, seen_nr, number, made_by = runs[index]
        begin_ns, end_ns = begin_ns + offset_ns, end_ns + offset_ns
        next_ns = until_ns if index == last else runs[index + 1][0] + offset_ns
        is_alone = end_ns <= next_ns and end_ns <= until_ns and begin_ns < until_ns
        if not is_alone or number != thread.number:
            break
        ready = queue.take_if_first(name, seen_nr)
        if ready is None:
            break
        node = ready.node
        note_maker(ready, made_by)
        # As `SeenThread.tick` has it, which would be called three times.
        last_ns = begin_ns - 1 if begin_ns - 1 > last_ns else last_ns + 1
        rows.popped += last_ns, task, node.id, queue.id, len(queue.schedule.heap)
        thread.last_ns = last_ns = begin_ns if begin_ns > last_ns else last_ns + 1
        rows.started += last_ns, task, node.id
        ran.add(node)
        replay.outstanding -= 1
        report_release(replay, thread, rows, node, end_ns)
        if node.seen_nr >= 0:
            report_gradients(engine, replay, thread, rows, node, end_ns)
        last_ns = thread.last_ns
        thread.last_ns = last_ns = end_ns if end_ns > last_ns else last_ns + 1
        rows.completed += last_ns, task, node.id, NO_TIME
        index += 1
    return index
