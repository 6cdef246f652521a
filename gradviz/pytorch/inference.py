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

A node may call another, as that of a change in place of a view calls the function that
made the change. Between the two there is no pass: the inner one was in no queue, and is
part of the outer one.
"""

import heapq
from collections.abc import Sequence
from typing import TypeAlias

from gradviz.pytorch.clocks import within_its_node
from gradviz.pytorch.doubts import missing
from gradviz.pytorch.queues import (
    ReplayedPass,
    RunningNode,
    SeenEngine,
    SeenQueue,
)
from gradviz.pytorch.session import SeenRun
from gradviz.pytorch.tasks import (
    NO_TIME,
    hand_on,
    push,
    take_captured,
    take_unexpected,
)
from gradviz.pytorch.watched_pass import WatchedPass
from gradviz.trace.events import (
    CaptureTaken,
    NodeFailed,
    ReentrantEntered,
    ReentrantLeft,
    TaskCompleted,
    TaskFailed,
    ThreadExited,
    ThreadStarted,
    Unexplained,
)
from gradviz.trace.probe import How, Push, Role

#: What happens to a pass; of what happens at one time the first comes first.
_RETURNS, _BEGINS = range(2)

#: When something happens to a pass, what, and to which one.
_Moment: TypeAlias = tuple[int, int, int]

#: When a run ends, what decides between those that end together, and which it is.
_End: TypeAlias = tuple[int, int, RunningNode]


class Inference:
    """The queues and threads of PyTorch's engine, as far as they are known.

    It lives as long as the process is watched: tasks of passes that failed stay in the
    queues. One thread at a time.
    """

    def __init__(self) -> None:
        self._engine = SeenEngine()

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
            begin_ns, end_ns = within_its_node(one, runs, offset_ns)
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
        thread = self._engine.thread(about.thread, about.thread_name)
        parent = self._replay_of(about.parent)
        if thread.running:
            queue = thread.running[-1].queue
        elif parent is not None:
            queue = parent.queue
        else:
            queue = thread.queue = thread.queue or SeenQueue()
        replay = ReplayedPass(about, queue)
        self._engine.open.append(replay)
        thread.passes.append(replay)
        sheet, t_ns = replay.sheet(thread), thread.tick(t_ns)
        if about.depth:
            sheet.seen(ReentrantEntered).extend((t_ns, about.task, -1, about.depth))
        else:
            sheet.seen(ThreadStarted).extend((t_ns, -1, -1, -1, Role.CALLER))
        if about.graph is not None:
            push(
                self._engine,
                replay,
                thread,
                sheet,
                about.graph.root,
                t_ns,
                -1,
                Push.ROOT,
            )
        return replay

    def _return(self, replay: ReplayedPass, t_ns: int) -> None:
        about = replay.about
        thread = self._engine.thread(about.thread)
        for run in reversed(thread.running):
            if run.task is not None and run.task.of is replay:
                self._end(run)  # the clocks differ a little
        task, sheet = about.task, replay.sheet(thread)
        if about.error:
            number = -1 if replay.failed is None else replay.failed.id
            failed = thread.tick(t_ns), task, number, about.error
            sheet.seen(TaskFailed).extend(failed)
        else:
            take_captured(replay.queue, thread, t_ns)
            if absent := missing(replay):
                row = thread.tick(t_ns), task, -1, absent
                sheet.seen(Unexplained).extend(row)
            sheet.seen(TaskCompleted).extend((thread.tick(t_ns), task, -1))
        t_ns = thread.tick(t_ns)
        if about.depth:
            sheet.seen(ReentrantLeft).extend((t_ns, task, -1, about.depth))
        else:
            sheet.seen(ThreadExited).extend((t_ns, -1, -1, -1, Role.CALLER))
        replay.is_closed = True
        self._engine.open.remove(replay)
        thread.passes.remove(replay)

    def _replay_of(self, about: WatchedPass | None) -> ReplayedPass | None:
        return next((one for one in self._engine.open if one.about is about), None)

    # --- nodes -----------------------------------------------------------------------

    def _start(self, seen: SeenRun, offset_ns: int) -> RunningNode:
        begin_ns, end_ns, name, seen_nr, number = seen
        begin_ns += offset_ns
        thread = self._engine.threads.get(number) or self._engine.thread(number)
        running, num_passes = thread.running, len(thread.passes)
        if running and running[-1].num_passes == num_passes:
            return RunningNode(thread, None, running[-1].queue, 0, num_passes)
        queue = running[-1].queue if running else thread.queue
        if queue is None:
            queue = self._engine.queue_with(name, seen_nr)
            if queue.device:
                thread.queue = queue
        if thread.passes and thread.passes[-1].about.graph is None:
            run = RunningNode(thread, None, queue, end_ns + offset_ns, num_passes)
            thread.running.append(run)  # of a pass of which nothing is known
            return run
        task = queue.take_if_first(name, seen_nr)
        if task is None:
            take_captured(queue, thread, begin_ns)
            task = queue.take_if_first(name, seen_nr)
            if task is None:
                task = take_unexpected(
                    self._engine, queue, thread, name, seen_nr, begin_ns
                )
        run = RunningNode(thread, task, queue, end_ns + offset_ns, num_passes)
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
                failed = tick(end_ns), about.task, node.id, about.error, NO_TIME
                sheet.seen(NodeFailed).extend(failed)
            else:
                sheet.completed += tick(end_ns), about.task, node.id, NO_TIME
            return
        if node.seen_nr < 0:
            sheet.accumulated += tick(end_ns), about.task, node.id, How.UNKNOWN
        else:
            hand_on(self._engine, replay, thread, sheet, node, end_ns)
        sheet.completed += tick(end_ns), about.task, node.id, NO_TIME
        if about.captures:
            take_captured(run.queue, thread, end_ns)
