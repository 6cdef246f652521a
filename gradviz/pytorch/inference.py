"""What PyTorch's engine must have done, from its graph and from what was seen to run.

Its nodes are seen to begin and to end. By the rules of the engine, which are those of
ours, the rest follows: a node that ends hands on its gradients, edge by edge; who has
them all is pushed; a thread takes from its queue what `ready_order` says. So the passes
are gone through once more, in the order of time, with queues in which the same tasks
lie. A function that begins is compared with what its queue would give out. If that is
another one, this is said, `Unexplained`, and the pass goes on from what was seen.

Note [Whose queue]
~~~~~~~~~~~~~~~~~~
A thread that calls `backward` has a queue for the nodes of the CPU, and each other
device has a thread and a queue (Q1). A pass that begins inside of a node uses the queue
from which that node came; so does a thread of the pool, to which very deep passes are
given (R1). Which of the two an unknown thread is, is seen from what it begins with.

Note [What is not seen]
~~~~~~~~~~~~~~~~~~~~~~~
A node whose gradient is asked for, and nothing beyond it, is taken from the queue and
runs nothing (I5): all of it is inferred. Hooks run before a function begins and after
it has ended, and so lie between nodes. Tasks of a pass that failed stay in the queue,
and are thrown away when they come out (F13).
"""

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from gradviz.pytorch.graph import SeenNode
from gradviz.pytorch.profile import SeenRun
from gradviz.pytorch.queues import (
    ReadyNode,
    ReplayedPass,
    RunningNode,
    SeenQueue,
    SeenThread,
    is_called,
)
from gradviz.pytorch.sheet import Sheet
from gradviz.pytorch.watched_pass import WatchedPass
from gradviz.trace.events import (
    CaptureTaken,
    NodeCompleted,
    NodeFailed,
    NodeStarted,
    ReentrantEntered,
    ReentrantLeft,
    TaskCompleted,
    TaskFailed,
    ThreadExited,
    ThreadStarted,
    Unexplained,
)
from gradviz.trace.probe import How, Probe, Push, Role

#: What happens to a pass; of what happens at one time the first comes first.
_RETURNS, _BEGINS = range(2)

#: When something happens to a pass, what, and to which one.
_Moment: TypeAlias = tuple[int, int, int]

#: When a run ends, what decides between those that end together, and which it is.
_End: TypeAlias = tuple[int, int, RunningNode]

#: The processor time of a node, which nobody measures.
_NO_TIME: Final = -1

#: So many names are told of nodes that did not run.
_MAX_NAMED: Final = 3


class Inference:
    """The queues and threads of PyTorch's engine, as far as they are known.

    It lives as long as the process is watched: tasks of passes that failed stay in the
    queues. One thread at a time.
    """

    def __init__(self) -> None:
        self._threads: dict[int, SeenThread] = {}
        self._devices: dict[str, SeenQueue] = {}
        self._open: list[ReplayedPass] = []

    def go_through(
        self, passes: Sequence[WatchedPass], runs: Sequence[SeenRun], offset_ns: int
    ) -> list[ReplayedPass]:
        """Find out what happened in some passes, all that ran in a time.

        Args:
            passes: In the order in which they were called; all have ended.
            runs: Of their functions, in the order in which they began.
            offset_ns: From the clock of `runs` to that of events.

        Returns:
            Each pass, with what there is to tell of it.
        """
        moments: list[_Moment] = []
        for index, one in enumerate(passes):
            begin_ns, end_ns = _within_its_node(one, runs, offset_ns)
            moments += (begin_ns, _BEGINS, index), (end_ns, _RETURNS, index)
        moments.sort(reverse=True)
        replays: dict[int, ReplayedPass] = {}
        ends: list[_End] = []
        for number, seen in enumerate(runs):
            begin_ns = seen[0] + offset_ns
            while moments and moments[-1][0] <= begin_ns:
                self._pass_moment(moments.pop(), passes, replays, ends)
            self._end_until(begin_ns, ends)
            run = self._start(seen, offset_ns)
            # Of those that end together the inner one, which began later, is first.
            heapq.heappush(ends, (run.end_ns, -number, run))
        while moments:
            self._pass_moment(moments.pop(), passes, replays, ends)
        return list(replays.values())

    def _pass_moment(
        self,
        moment: _Moment,
        passes: Sequence[WatchedPass],
        replays: dict[int, ReplayedPass],
        ends: list[_End],
    ) -> None:
        t_ns, what, index = moment
        if what == _RETURNS:
            replays[index].is_over = True
        self._end_until(t_ns, ends)
        if what == _BEGINS:
            replays[index] = self._begin(passes[index], t_ns)
        else:
            self._return(replays[index], t_ns)

    def _end_until(self, t_ns: int, ends: list[_End]) -> None:
        while ends and ends[0][0] <= t_ns:
            self._end(heapq.heappop(ends)[2])

    # --- passes ----------------------------------------------------------------------

    def _begin(self, about: WatchedPass, t_ns: int) -> ReplayedPass:
        thread = self._thread(about.thread, about.thread_name)
        parent = self._replay_of(about.parent)
        if thread.running:
            queue = thread.running[-1].queue
        elif parent is not None:
            queue = parent.queue
        else:
            queue = thread.queue = thread.queue or SeenQueue()
        replay = ReplayedPass(about, queue)
        self._open.append(replay)
        thread.passes.append(replay)
        sheet, t_ns = replay.sheet(thread), thread.tick(t_ns)
        if about.depth:
            sheet.seen(ReentrantEntered).extend((t_ns, about.task, -1, about.depth))
        else:
            sheet.seen(ThreadStarted).extend((t_ns, -1, -1, -1, Role.CALLER))
        if about.graph is not None:
            self._push(replay, thread, sheet, about.graph.root, t_ns, -1, Push.ROOT)
        return replay

    def _return(self, replay: ReplayedPass, t_ns: int) -> None:
        about = replay.about
        thread = self._thread(about.thread)
        for run in reversed(thread.running):
            if run.task is not None and run.task.of is replay:
                self._end(run)  # the clocks differ a little
        task, sheet = about.task, replay.sheet(thread)
        if about.error:
            number = -1 if replay.failed is None else replay.failed.id
            failed = thread.tick(t_ns), task, number, about.error
            sheet.seen(TaskFailed).extend(failed)
        else:
            self._take_captured(replay.queue, thread, t_ns)
            if missing := _missing(replay):
                doubt = thread.tick(t_ns), task, -1, missing
                sheet.seen(Unexplained).extend(doubt)
            sheet.seen(TaskCompleted).extend((thread.tick(t_ns), task, -1))
        t_ns = thread.tick(t_ns)
        if about.depth:
            sheet.seen(ReentrantLeft).extend((t_ns, task, -1, about.depth))
        else:
            sheet.seen(ThreadExited).extend((t_ns, -1, -1, -1, Role.CALLER))
        replay.is_closed = True
        self._open.remove(replay)
        thread.passes.remove(replay)

    def _replay_of(self, about: WatchedPass | None) -> ReplayedPass | None:
        return next((one for one in self._open if one.about is about), None)

    # --- nodes -----------------------------------------------------------------------

    def _start(self, seen: SeenRun, offset_ns: int) -> RunningNode:
        begin_ns, end_ns, name, seen_nr, number = seen
        begin_ns += offset_ns
        thread = self._threads.get(number) or self._thread(number)
        queue = thread.running[-1].queue if thread.running else thread.queue
        if queue is None:
            queue = self._queue_with(name, seen_nr)
            if queue.device:
                thread.queue = queue
        if thread.passes and thread.passes[-1].about.graph is None:
            run = RunningNode(thread, None, queue, end_ns + offset_ns)
            thread.running.append(run)  # of a pass of which nothing is known
            return run
        task = queue.take_if_first(name, seen_nr)
        if task is None:
            self._take_captured(queue, thread, begin_ns)
            task = queue.take_if_first(name, seen_nr)
            if task is None:
                task = self._unexpected(queue, thread, name, seen_nr, begin_ns)
        run = RunningNode(thread, task, queue, end_ns + offset_ns)
        thread.running.append(run)
        if task is not None:
            node, replay = task.node, task.of
            sheet, about = replay.sheet(thread), replay.about
            t_ns = thread.tick(begin_ns - 1)
            sheet.popped += t_ns, about.task, node.id, queue.id, len(queue.schedule)
            thread.last_ns = t_ns = t_ns + 1
            sheet.started += t_ns, about.task, node.id
            replay.ran.add(node)
            for index in about.captures.get(node, ()) if about.captures else ():
                captured = thread.tick(begin_ns), about.task, node.id, index
                sheet.inferred(CaptureTaken).extend(captured)
        return run

    def _end(self, run: RunningNode) -> None:
        thread, task = run.thread, run.task
        running = thread.running
        if running and running[-1] is run:
            running.pop()
        elif run in running:
            running.remove(run)
        else:
            return  # its pass has returned
        if task is None:
            return
        node, replay, end_ns = task.node, task.of, run.end_ns
        about, sheet, tick = replay.about, replay.sheet(thread), thread.tick
        replay.outstanding -= 1
        if replay.is_over and about.error:
            # The last one. If it was a hook that raised, nobody knows what came of it.
            if about.fails_in_node:
                replay.failed = node
                failed = tick(end_ns), about.task, node.id, about.error, _NO_TIME
                sheet.seen(NodeFailed).extend(failed)
            else:
                sheet.completed += tick(end_ns), about.task, node.id, _NO_TIME
            return
        if node.seen_nr < 0:
            sheet.accumulated += tick(end_ns), about.task, node.id, How.UNKNOWN
        else:
            self._hand_on(replay, thread, sheet, node, end_ns)
        sheet.completed += tick(end_ns), about.task, node.id, _NO_TIME
        if about.captures:
            self._take_captured(run.queue, thread, end_ns)

    def _hand_on(
        self,
        replay: ReplayedPass,
        thread: SeenThread,
        sheet: Sheet,
        node: SeenNode,
        t_ns: int,
    ) -> None:
        about = replay.about
        needed, captures = about.needed, about.captures
        for edge in node.next_edges:
            after = edge.node
            if after is None:
                continue
            after.waiting -= 1
            if needed is not None and after not in needed and after not in captures:
                continue
            inputs, input_nr = after.input_metadata, edge.input_nr
            one = inputs[input_nr] if input_nr < len(inputs) else None
            sheet.buffered += (
                thread.tick(t_ns),
                about.task,
                after.id,
                node.id,
                input_nr,
                after.waiting,
                0 if one is None else one.size_bytes,
                How.UNKNOWN,
            )
            if after.waiting == 0 and after not in replay.ran:
                self._push(replay, thread, sheet, after, t_ns, node.id, Push.NODE)

    def _push(
        self,
        replay: ReplayedPass,
        thread: SeenThread,
        sheet: Sheet,
        node: SeenNode,
        t_ns: int,
        producer: int,
        what: Push,
    ) -> ReadyNode:
        queue = replay.queue if node.runs_on == "cpu" else self._device(node.runs_on)
        about = replay.about
        if queue.id not in replay.queues:
            replay.queues.add(queue.id)
            _name(queue, about.listener, thread)
        priority = replay.depth_part | node.sequence_nr
        task = ReadyNode(node, replay, queue, priority)
        queue.schedule.push(task)
        replay.outstanding += 1
        sheet.pushed += (
            thread.tick(t_ns),
            about.task,
            node.id,
            queue.id,
            about.depth,
            node.seen_nr,
            len(queue.schedule),
            replay.outstanding,
            producer,
            what,
        )
        return task

    # --- queues ----------------------------------------------------------------------

    def _unexpected(
        self, queue: SeenQueue, thread: SeenThread, name: str, seen_nr: int, t_ns: int
    ) -> ReadyNode | None:
        """Find what began though it was not its turn, and say so; None if unknown."""
        first = queue.first()
        expected = "nothing" if first is None else first.node.text
        for task in queue.tasks():
            if is_called(task.node, name, seen_nr) and not task.of.is_closed:
                queue.remove(task)
                reason = f"it ran before {expected}"
                _doubt(task.of, thread, task.node, t_ns, reason)
                return task
        # A thread that has called none belongs to the engine, and runs those of others.
        for replay in reversed(thread.passes or self._open):
            graph = replay.about.graph
            for node in () if graph is None else graph.nodes:
                if is_called(node, name, seen_nr) and node not in replay.ran:
                    reason = f"it ran before {expected}, and was not ready"
                    _doubt(replay, thread, node, t_ns, reason)
                    sheet = replay.sheet(thread)
                    task = self._push(replay, thread, sheet, node, t_ns, -1, Push.NODE)
                    task.queue.remove(task)
                    return task
        if self._open:
            reason = f"{name} ran, and is in no graph that is known"
            _doubt(self._open[-1], thread, None, t_ns, reason)
        return None

    def _take_captured(self, queue: SeenQueue, thread: SeenThread, t_ns: int) -> None:
        """Take out what runs nothing: see Note [What is not seen]."""
        while (task := queue.first()) is not None:
            replay, node = task.of, task.node
            if replay.is_closed:
                queue.schedule.pop()
                continue
            if not replay.runs_nothing(node):
                return
            queue.schedule.pop()
            sheet, number = replay.sheet(thread), replay.about.task
            popped = thread.tick(t_ns), number, node.id, queue.id, len(queue.schedule)
            sheet.popped += popped
            sheet.inferred(NodeStarted).extend((thread.tick(t_ns), number, node.id))
            for index in replay.about.captures.get(node, ()):
                captured = thread.tick(t_ns), number, node.id, index
                sheet.inferred(CaptureTaken).extend(captured)
            ended = thread.tick(t_ns), number, node.id, _NO_TIME
            sheet.inferred(NodeCompleted).extend(ended)
            replay.outstanding -= 1
            replay.ran.add(node)

    def _queue_with(self, name: str, seen_nr: int) -> SeenQueue:
        """The queue that would give this out: of a thread that nobody knows."""
        queues = [*self._devices.values()]
        queues += [replay.queue for replay in reversed(self._open)]
        for queue in queues:
            first = queue.first()
            if first is not None and is_called(first.node, name, seen_nr):
                return queue
        return queues[-1] if queues else SeenQueue()

    def _thread(self, number: int, name: str = "") -> SeenThread:
        thread = self._threads.get(number)
        if thread is None:
            name = name or f"PyTorch's thread {number}"
            thread = self._threads[number] = SeenThread(number, name)
        return thread

    def _device(self, device: str) -> SeenQueue:
        queue = self._devices.get(device)
        if queue is None:
            queue = self._devices[device] = SeenQueue(device)
        return queue


def _name(queue: SeenQueue, listener: Probe, thread: SeenThread) -> None:
    index = queue.device.rpartition(":")[2]
    if queue.device:
        name, device = queue.device, int(index) if index.isdigit() else 0
    else:
        name, device = f"CPU of {thread.name}", -1
    # Every view that has a queue says what it is called.
    listener.queue_defined(queue.id, f"{name} (inferred)", device)


def _doubt(
    replay: ReplayedPass, thread: SeenThread, node: SeenNode | None, t_ns: int, why: str
) -> None:
    number = -1 if node is None else node.id
    row = thread.tick(t_ns - 1), replay.about.task, number, why
    replay.sheet(thread).seen(Unexplained).extend(row)


def _missing(replay: ReplayedPass) -> str:
    """Which nodes had to run and were not seen to; empty if all were."""
    about, ran = replay.about, replay.ran
    if about.graph is None:
        return ""
    if about.needed is None and len(ran) == len(about.graph.nodes):
        return ""
    nodes: Iterable[SeenNode] = about.graph.nodes
    missing = [
        node for node in nodes if node not in ran and not replay.runs_nothing(node)
    ]
    if not missing:
        return ""
    names = ", ".join(node.text for node in missing[:_MAX_NAMED])
    more = len(missing) - _MAX_NAMED
    return f"not seen to run: {names}" + (f" and {more:,} more" if more > 0 else "")


def fitted_offset(
    offset_ns: int, passes: Sequence[WatchedPass], runs: Sequence[SeenRun]
) -> int:
    """What lies between two clocks, so that no run lies outside of all passes.

    The profiler's clock is off by some microseconds.

    Args:
        offset_ns: The same, about.
        passes: On the clock of events.
        runs: On the profiler's clock, in the order in which they began.
    """
    if not runs or not passes:
        return offset_ns
    least = min(one.called_ns for one in passes) - runs[0][0]
    most = max(one.returned_ns for one in passes) - max(run[1] for run in runs)
    return max(least, min(offset_ns, most))


def _within_its_node(
    one: WatchedPass, runs: Sequence[SeenRun], offset_ns: int
) -> tuple[int, int]:
    """When a pass was called and returned, as the clock of the runs has it.

    The two clocks may differ by more than what lies between the begin of a node and
    that of a pass inside of it.
    """
    called_ns, returned_ns = one.called_ns, one.returned_ns
    if one.depth:
        middle = (called_ns + returned_ns) // 2 - offset_ns
        for index in reversed(range(bisect_right(runs, middle, key=_begin_of))):
            begin_ns, end_ns, _, _, thread = runs[index]
            is_around = end_ns - begin_ns >= returned_ns - called_ns
            if is_around and end_ns >= middle and thread == one.thread:
                begin_ns, end_ns = begin_ns + offset_ns, end_ns + offset_ns
                return max(called_ns, begin_ns + 1), min(returned_ns, end_ns - 1)
    return called_ns, returned_ns


def _begin_of(run: SeenRun) -> int:
    return run[0]


def told(replays: Iterable[ReplayedPass]) -> Iterator[tuple[Probe, SeenThread, Sheet]]:
    """What there is to tell, and to whom."""
    for replay in replays:
        for thread, sheet in replay.sheets.items():
            yield replay.about.listener, thread, sheet
