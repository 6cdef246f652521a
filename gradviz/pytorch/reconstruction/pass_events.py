"""Events of PyTorch's engine, from its graph and from observed runs.

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
runs nothing (I5): all of it is inferred. Tasks of a pass that failed stay in the queue,
and are thrown away when they come out (F13).

Note [Passes in hooks]
~~~~~~~~~~~~~~~~~~~~~~
The engine pops a node, calls the hooks of its tensors and those before the function,
the function, and the hooks after it; then it hands on the gradients. Only the function
is seen. Where no hook runs a pass this makes no difference. A pass in a hook uses the
same heap, and which of several equal tasks a heap gives out depends on what else lies
in it. So each pass notes the node inside of which it began, and that node is popped
before it, or hands on its gradients after it.
Source: torch/csrc/autograd/engine.cpp, evaluate_function and call_function.

A node may call another, as that of a change in place of a view calls the function that
made the change. Between the two there is no pass: the inner one was in no queue, and is
part of the outer one.
"""

import heapq
from collections.abc import Sequence
from typing import TypeAlias

from gradviz.pytorch.reconstruction.clocks import within_its_node
from gradviz.pytorch.reconstruction.plain_runs import plain_pass, run_plainly
from gradviz.pytorch.reconstruction.seen_queues import (
    PassesInNodes,
    ReadyNode,
    ReplayedPass,
    RunningNode,
    RunState,
    SeenEngine,
    SeenQueue,
    SeenThread,
    is_called,
)
from gradviz.pytorch.reconstruction.session import SeenRun
from gradviz.pytorch.reconstruction.tasks import (
    NO_TIME,
    call_before,
    call_hooks,
    call_inside,
    capture,
    hooks_after,
    is_followed_by_callback,
    join_hooks_before,
    note_maker,
    push,
    report_gradients,
    report_popped,
    report_release,
    return_after,
    return_before,
    return_inside,
    take_captured,
    take_unexpected,
)
from gradviz.pytorch.reconstruction.unexplained import missing, report_unexplained
from gradviz.pytorch.reconstruction.watched_pass import WatchedPass
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
from gradviz.trace.probe import Push, Role

#: Moments of a pass; of those at one time the first comes first.
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
        """Reconstruct some passes from everything that ran in a period.

        Args:
            passes: In the order in which they were called; all have ended.
            runs: Of their functions, in the order in which they began.
            offset_ns: From the clock of `runs` to that of events.

        Returns:
            Each pass, with what there is to tell of it.
        """
        self._engine.inner = PassesInNodes(passes)
        moments: list[_Moment] = []
        for index, one in enumerate(passes):
            begin_ns, end_ns = within_its_node(one, runs, offset_ns)
            moments += (begin_ns, _BEGINS, index), (end_ns, _RETURNS, index)
        moments.sort(reverse=True)
        replays: dict[int, ReplayedPass] = {}
        ends: list[_End] = []
        number = 0
        while number < len(runs):
            seen = runs[number]
            begin_ns = seen[0] + offset_ns
            while moments and moments[-1][0] <= begin_ns:
                self._pass_moment(moments.pop(), passes, replays, ends)
            if ends and ends[0][0] <= begin_ns:
                self._end_until(begin_ns, ends)
            if moments and not ends and (plain := plain_pass(self._engine, seen[4])):
                first, until_ns = number, moments[-1][0]
                number = run_plainly(
                    self._engine, plain, runs, first, offset_ns, until_ns
                )
                if number > first:
                    continue
            run = self._start(seen, offset_ns)
            # Of those that end together the inner one, which began later, is first.
            heapq.heappush(ends, (run.end_ns, -number, run))
            number += 1
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
        self._settle(thread, t_ns)
        parent = self._replay_of(about.parent)
        if parent is not None and about.inside >= 0:
            self._enter(parent, about.inside, thread, t_ns)
        self._engine.inner.has_begun(about)
        if thread.running:
            queue = thread.running[-1].queue
        elif parent is not None:
            queue = parent.queue
        else:
            queue = thread.queue = thread.queue or SeenQueue()
        replay = ReplayedPass(about, queue)
        self._engine.open.append(replay)
        thread.passes.append(replay)
        rows, t_ns = replay.rows_of(thread), thread.tick(t_ns)
        if about.depth:
            rows.seen(ReentrantEntered).extend((t_ns, about.task, -1, about.depth))
        else:
            rows.seen(ThreadStarted).extend((t_ns, -1, -1, -1, Role.CALLER))
        if about.graph is not None:
            push(
                self._engine,
                replay,
                thread,
                rows,
                about.graph.root,
                t_ns,
                -1,
                Push.ROOT,
            )
        return replay

    def _return(self, replay: ReplayedPass, t_ns: int) -> None:
        about = replay.about
        thread = self._engine.thread(about.thread)
        if not about.error:
            self._settle_others(thread, t_ns)
            self._settle(thread, t_ns, is_end=True)
        for run in reversed(thread.running):
            if run.task is not None and run.task.of is replay:
                self._end(run)  # the clocks differ a little
        task, rows = about.task, replay.rows_of(thread)
        if about.error:
            replay.queue.is_certain &= about.fails_in_node
            number = -1 if replay.failed is None else replay.failed.id
            failed = thread.tick(t_ns), task, number, about.error
            rows.seen(TaskFailed).extend(failed)
        else:
            take_captured(self._engine, replay.queue, thread, t_ns)
            if not replay.ran:
                replay.forget_tasks()  # another engine has run it
            if absent := missing(replay):
                row = thread.tick(t_ns), task, -1, absent
                rows.seen(Unexplained).extend(row)
            rows.seen(TaskCompleted).extend((thread.tick(t_ns), task, -1))
        t_ns = thread.tick(t_ns)
        if about.depth:
            rows.seen(ReentrantLeft).extend((t_ns, task, -1, about.depth))
        else:
            rows.seen(ThreadExited).extend((t_ns, -1, -1, -1, Role.CALLER))
        replay.is_closed = True
        self._engine.open.remove(replay)
        thread.passes.remove(replay)
        parent = self._replay_of(about.parent)
        if parent is not None and not parent.about.error:
            self._settle(thread, t_ns)  # other threads may wait for it

    def _replay_of(self, about: WatchedPass | None) -> ReplayedPass | None:
        return next((one for one in self._engine.open if one.about is about), None)

    # --- hooks, see Note [Passes in hooks] -------------------------------------------

    def _enter(
        self, parent: ReplayedPass, node: int, thread: SeenThread, t_ns: int
    ) -> None:
        """A pass begins inside of a node: pop it if its function has not begun."""
        queue = thread.running[-1].queue if thread.running else thread.queue
        queue = queue or parent.queue
        for is_last in (False, True):
            if any(run.is_of(parent, node) for run in thread.running):
                return
            if not is_last:
                take_captured(self._engine, queue, thread, t_ns)
        first = queue.first()
        for task in queue.tasks():
            if task.of is parent and task.node.id == node:
                if task is not first:
                    expected = "nothing" if first is None else first.node.text
                    why = f"its hooks ran before {expected}"
                    report_unexplained(parent, thread, task.node, t_ns, why)
                queue.take(task)
                report_popped(task, queue, thread, t_ns)
                num_passes, state = len(thread.passes), RunState.HOOKS_BEFORE
                run = RunningNode(thread, task, queue, 0, num_passes, state)
                thread.running.append(run)
                return
        report_unexplained(
            parent, thread, None, t_ns, "a pass began in a hook of an unknown node"
        )

    def _settle(self, thread: SeenThread, t_ns: int, *, is_end: bool = False) -> None:
        """Note that the hooks of a thread's last node are done, or that its pass is."""
        run = thread.running[-1] if thread.running else None
        if run is None or run.task is None or run.num_passes != len(thread.passes):
            return
        task = run.task
        if self._engine.inner.are_to_come(task):
            return
        replay, node = task.of, task.node
        if run.state is RunState.HOOKS_AFTER:
            thread.running.pop()
            if is_end and is_followed_by_callback(task):
                self._end_hooks(run, task, run.end_ns, is_timed=False)
            else:
                self._end_hooks(run, task, t_ns)
        elif run.state is RunState.HOOKS_BEFORE and replay.runs_nothing(node):
            thread.running.pop()
            capture(task, thread, t_ns, is_timed=False)
        else:
            return
        if replay.about.captures:
            take_captured(self._engine, run.queue, thread, t_ns)

    def _resumed(
        self, thread: SeenThread, seen: SeenRun, offset_ns: int
    ) -> RunningNode | None:
        """The node whose function begins, if hooks before it have run a pass."""
        begin_ns, end_ns, name, seen_nr, _, made_by = seen
        begin_ns += offset_ns
        self._settle(thread, begin_ns)
        run = thread.running[-1] if thread.running else None
        if run is None or run.num_passes != len(thread.passes) or run.task is None:
            return None
        if run.state is not RunState.HOOKS_BEFORE:
            return None
        task = run.task
        if not is_called(task.node, name, seen_nr):
            why = f"its hooks ran, and then {name}"
            report_unexplained(task.of, thread, task.node, begin_ns, why)
            thread.running.remove(run)
            return None
        run.state, run.end_ns = RunState.RUNS, end_ns + offset_ns
        note_maker(task, made_by)
        run.has_hooks = call_before(task, thread, begin_ns)
        self._tell_started(run, task, begin_ns)
        return run

    def _end_hooks(
        self, run: RunningNode, task: ReadyNode, t_ns: int, *, is_timed: bool = True
    ) -> None:
        """Note that the hooks after a node's function are done, and maybe when."""
        replay, node, thread = task.of, task.node, run.thread
        replay.outstanding -= 1
        rows = replay.rows_of(thread)
        hooks = hooks_after(task)
        if hooks and is_timed:
            return_after(hooks, task, thread, t_ns)
        report_gradients(self._engine, replay, thread, rows, node, t_ns)
        if hooks:
            rows.completed += thread.tick(t_ns), replay.about.task, node.id, NO_TIME

    def _settle_others(self, thread: SeenThread, t_ns: int) -> None:
        """Let the hooks be done for whose gradients this thread may have waited."""
        for one in self._engine.threads.values():
            last = one.running[-1] if one.running else None
            if last and one is not thread and last.state is RunState.HOOKS_AFTER:
                self._settle(one, t_ns)

    # --- nodes -----------------------------------------------------------------------

    def _start(self, seen: SeenRun, offset_ns: int) -> RunningNode:
        begin_ns, end_ns, name, seen_nr, number, made_by = seen
        begin_ns += offset_ns
        thread = self._engine.threads.get(number) or self._engine.thread(number)
        running, num_passes = thread.running, len(thread.passes)
        if running and running[-1].num_passes == num_passes:
            if running[-1].state is RunState.RUNS:
                return RunningNode(thread, None, running[-1].queue, 0, num_passes)
            if before := self._resumed(thread, seen, offset_ns):
                return before
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
            self._settle_others(thread, begin_ns)
            take_captured(self._engine, queue, thread, begin_ns)
            task = queue.take_if_first(name, seen_nr)
        if task is None:
            made_by = 0  # which of several nodes this is, nobody knows
            task = take_unexpected(self._engine, queue, thread, name, seen_nr, begin_ns)
        run = RunningNode(thread, task, queue, end_ns + offset_ns, num_passes)
        thread.running.append(run)
        if task is not None:
            is_tied = self._is_tied(task, queue, thread, begin_ns)
            note_maker(task, 0 if is_tied else made_by)
            self._pop(run, task, begin_ns)
            self._tell_started(run, task, begin_ns)
        return run

    def _pop(self, run: RunningNode, task: ReadyNode, begin_ns: int) -> None:
        """Report that a node left its queue, and the hooks before its function."""
        about, thread = task.of.about, run.thread
        hooks = about.hooks.get(task.node) if about.hooks else None
        if hooks is None or not hooks.before:
            report_popped(task, run.queue, thread, begin_ns - 1)
            return
        since_ns = min(max(thread.last_ns, task.pushed_ns + 1), begin_ns)
        join_hooks_before(thread, begin_ns)
        report_popped(task, run.queue, thread, since_ns)
        run.has_hooks = call_before(task, thread, since_ns)
        return_before(task, thread, begin_ns)

    def _is_tied(
        self, task: ReadyNode, queue: SeenQueue, thread: SeenThread, t_ns: int
    ) -> bool:
        """Return whether another task may have run in its place; say so once a pass."""
        if queue.is_certain:
            return False
        is_tied = queue.is_tied(task)
        if is_tied and not task.of.is_doubted:
            task.of.is_doubted = True
            why = (
                "it, or a later node of its name, may have been another one: an "
                "earlier pass failed in a hook, and what that left in the queue is not "
                "known"
            )
            report_unexplained(task.of, thread, task.node, t_ns, why)
        if task.node.seen_nr < 0:
            queue.is_certain = not len(queue.schedule)
        return is_tied

    def _tell_started(self, run: RunningNode, task: ReadyNode, t_ns: int) -> None:
        node, replay, thread = task.node, task.of, run.thread
        about, rows = replay.about, replay.rows_of(thread)
        if not run.has_hooks:
            rows.started += thread.tick(t_ns), about.task, node.id
        replay.ran.add(node)
        if about.captures:
            for index in about.captures.get(node, ()):
                captured = thread.tick(t_ns), about.task, node.id, index
                rows.inferred(CaptureTaken).extend(captured)
        if about.hooks:
            call_inside(task, thread, t_ns)

    def _end(self, run: RunningNode) -> None:
        thread, task = run.thread, run.task
        running = thread.running
        if not (running and running[-1] is run) and run not in running:
            return  # its pass has returned
        if task is None or run.state is not RunState.RUNS:
            running.remove(run)  # of these one that failed
            return
        node, replay, end_ns = task.node, task.of, run.end_ns
        about, rows, tick = replay.about, replay.rows_of(thread), thread.tick
        has_hooks = about.hooks or self._engine.inner.are_to_come(task)
        if has_hooks and self._has_hooks_to_come(run, task):
            return
        if running[-1] is run:
            running.pop()
        else:
            running.remove(run)
        replay.outstanding -= 1
        if replay.is_over and about.error:
            # The last one. If it was a hook that raised, nobody knows what came of it.
            if about.fails_in_node:
                replay.failed = node
                failed = tick(end_ns), about.task, node.id, about.error, NO_TIME
                rows.seen(NodeFailed).extend(failed)
            else:
                rows.completed += tick(end_ns), about.task, node.id, NO_TIME
            return
        report_release(replay, thread, rows, node, end_ns)
        if node.seen_nr >= 0:
            report_gradients(self._engine, replay, thread, rows, node, end_ns)
        rows.completed += tick(end_ns), about.task, node.id, NO_TIME
        if about.captures:
            take_captured(self._engine, run.queue, thread, end_ns)

    def _has_hooks_to_come(self, run: RunningNode, task: ReadyNode) -> bool:
        """Tell if hooks come after a function; report those, and those inside of it."""
        replay, thread = task.of, run.thread
        about, rows = replay.about, replay.rows_of(thread)
        if replay.is_over and about.error:
            return False
        return_inside(task, thread, run.end_ns)
        hooks = hooks_after(task)
        if not hooks and (replay.is_over or not self._engine.inner.are_to_come(task)):
            return False
        run.state = RunState.HOOKS_AFTER
        report_release(replay, thread, rows, task.node, run.end_ns)
        if hooks:
            call_hooks(hooks, task, thread, run.end_ns)
        else:
            completed = thread.tick(run.end_ns), about.task, task.node.id, NO_TIME
            rows.completed += completed
        return True
