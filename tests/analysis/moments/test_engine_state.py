"""Every moment of recorded programs, against a machine that takes event by event."""

from collections import defaultdict

import numpy as np
import pytest

import gradviz as gv
from gradviz import sim
from gradviz.analysis.moments.engine_state import History
from gradviz.analysis.moments.moment import BufferedGradient, Running
from gradviz.analysis.moments.precedence import precedence
from gradviz.capture.session import record
from gradviz.trace import events as e
from gradviz.trace.probe import Push, Role
from tests.analysis.reentrant import Inner


def plain():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    y = gv.tensor([3.0, 4.0], requires_grad=True)
    (x.sin() * y + x * x * y.exp()).sum().backward()


def captured():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    y = x.sin()
    gv.autograd.grad((y * y).sum() + y.sum(), [x, y])


def nested():
    x = gv.tensor([1.0], requires_grad=True)
    (Inner.apply(Inner.apply(x)) + x).sum().backward()


def failed():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    y = x * x

    def refuse(grad):
        raise ValueError("no")

    y.register_hook(refuse)
    with pytest.raises(ValueError, match="no"):
        (y.sin() + x.cos() + y.exp()).sum().backward()
    (x * 2).sum().backward()


def two_devices():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    a, b = x.to("sim:0"), x.to("sim:1")
    for _ in range(5):
        a, b = a.sin() * a, b.cos() + b
    (a.to("cpu") + b.to("cpu")).sum().backward()
    sim.synchronize(0)
    sim.synchronize(1)


PROGRAMS = [plain, captured, nested, failed, two_devices]


@pytest.fixture(params=PROGRAMS, ids=lambda one: one.__name__)
def trace(request):
    count = sim.device_count()
    sim.set_device_count(2)
    with record() as recording:
        request.param()
    yield recording.trace
    sim.set_device_count(count)


class Machine:
    """State of queues, threads and nodes, advanced by one event."""

    def __init__(self):
        self.queues = defaultdict(list)
        self.running = defaultdict(list)
        self.gradients = defaultdict(list)
        self.remaining = {}
        self.open = {}

    def step(self, event):  # noqa: C901 - a case for each kind
        key = (event.task, event.node)
        match event:
            case e.TaskBegun():
                self.open[event.task] = "unfinished"
            case e.TaskCompleted():
                self.open[event.task] = "completed"
            case e.TaskFailed():
                self.open[event.task] = "failed"
            case e.ReentrantLeft():
                del self.open[event.task]
            case e.ThreadExited(role=Role.CALLER):
                self.open.clear()  # there is one caller at a time
            case e.TaskPushed():
                self.queues[event.queue].append(event)
            case e.TaskPopped():
                here = self.queues[event.queue]
                here.remove(next(t for t in here if (t.task, t.node) == key))
            case e.GradientBuffered():
                self.remaining[key] = event.remaining
                self.gradients[key].append(
                    BufferedGradient(event.producer, event.input_nr, event.size_bytes)
                )
            case e.NodeStarted():
                self.running[event.thread].append(Running(*key, event.t_ns))
                self.remaining.pop(key, None)
            case e.NodeSkipped():
                self.remaining.pop(key, None)
            case e.NodeCompleted() | e.NodeFailed():
                self.running[event.thread].pop()


def test_every_moment_is_what_the_events_until_then_say(trace):
    history, machine = History(trace), Machine()
    # What an error leaves behind is gone after the last event of its pass.
    last = {
        task: max(one.seq for one in trace.events(task=task)) for task in trace.tasks
    }
    unfinished = {t for t in trace.tasks if t in trace.columns["task_failed"]["task"]}

    for event in trace.events():
        machine.step(event)
        state = history.at(event.seq)

        gone = {task for task in unfinished if last[task] < event.seq}
        assert (state.seq, state.t_ns) == (event.seq, event.t_ns)
        assert {
            queue: sorted((t.task, t.node) for t in tasks)
            for queue, tasks in state.queues.items()
        } == {
            queue: left
            for queue, tasks in machine.queues.items()
            if (left := sorted((t.task, t.node) for t in tasks if t.task not in gone))
        }
        assert {w.thread: list(w.running) for w in state.workers if w.running} == {
            thread: running for thread, running in machine.running.items() if running
        }
        assert {(c.task, c.node): c.remaining for c in state.countdowns} == {
            key: left for key, left in machine.remaining.items() if key[0] not in gone
        }
        assert all(
            list(c.gradients) == machine.gradients[c.task, c.node]
            for c in state.countdowns
        )
        assert {p.task: p.status for p in state.passes} == machine.open


def test_in_the_end_nothing_is_left(trace):
    history = History(trace)

    state = history.at(history.num_events - 1)

    assert (state.passes, state.queues, state.countdowns) == ((), {}, ())
    assert not any(worker.running for worker in state.workers)
    assert not any(stream.waits for stream in state.streams)


def test_a_thread_takes_from_its_queue_what_is_said_to_be_next(trace):
    """Q2-Q4; what other threads push at that moment may come too late."""
    history = History(trace)
    for event in trace.events():
        if isinstance(event, e.TaskPopped):
            tasks = history.queues_at(event.seq - 1)[event.queue]
            known = [t for t in tasks if t.thread == event.thread or len(tasks) == 1]
            if known and any(t.node == event.node for t in known):
                assert (known[0].task, known[0].node) == (event.task, event.node)


def test_the_passes_say_how_many_of_their_nodes_were_started(trace):
    history = History(trace)
    started = defaultdict(int)
    counted = defaultdict(lambda: -1)
    for event in trace.events():
        if isinstance(event, e.NodeStarted):
            started[event.task] += 1
        if isinstance(event, e.DependenciesCounted):
            counted[event.task] = event.num_nodes
        for one in history.at(event.seq).passes:
            assert (one.num_started, one.num_nodes) == (
                started[one.task],
                counted[one.task],
            )


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.stress)])
@pytest.mark.parametrize("most", [1, 2])
def test_of_many_things_some_are_told_and_all_counted(trace, most, every):
    history = History(trace)
    for seq in range(0, history.num_events, every):
        all_of_it, some = history.at(seq), history.at(seq, most=most)

        assert some.queues == {
            queue: tasks[:most]
            for queue, tasks in list(all_of_it.queues.items())[:most]
        }
        assert some.countdowns == all_of_it.countdowns[:most]
        assert some.workers == all_of_it.workers[:most]
        assert some.passes == all_of_it.passes[-most:]
        assert (some.num_queued, some.num_countdowns) == (
            {queue: len(tasks) for queue, tasks in all_of_it.queues.items()},
            len(all_of_it.countdowns),
        )
        assert (some.num_passes, some.num_workers) == (
            len(all_of_it.passes),
            len(all_of_it.workers),
        )
        for queue, tasks in all_of_it.queues.items():
            assert history.queue_at(seq, queue) == tasks
        # Queues are numbered throughout the process: no number is known to be free.
        assert history.queue_at(seq, max(all_of_it.queues, default=0) + 1) == ()


def test_each_of_several_callers_leaves_with_its_own_pass(story):
    one, other = story.node(1), story.node(2)
    caller = story.recorder.thread_started, story.recorder.thread_exited

    def first():
        caller[0](-1, Role.CALLER)
        story.begin(0, [one], at=0)

    story.on_thread("first", first)
    caller[0](-1, Role.CALLER)
    story.begin(1, [other], at=20)
    story.end(1, at=30)
    caller[1](-1, Role.CALLER)
    caller[0](-1, Role.CALLER)
    story.begin(2, [other], at=40)
    trace = story.trace()
    history = History(trace)
    last = {
        task: max(
            seq
            for seq in range(history.num_events)
            if task in {p.task for p in history.at(seq).passes}
        )
        for task in trace.tasks
    }
    exits = trace.columns["thread_exited"]["seq"].tolist()

    assert last == {0: trace.num_events - 1, 1: exits[0] - 1, 2: trace.num_events - 1}


def test_a_moment_is_found_by_its_time(trace):
    history = History(trace)

    assert [history.seq_at(t_ns) for t_ns in history.t_ns.tolist()] == list(
        range(history.num_events)
    )
    assert history.seq_at(int(history.t_ns[0]) - 1) == -1


def test_a_queue_orders_tasks_by_wake_up_then_depth_then_sequence_number(story):
    nodes = [story.node(number) for number in range(4)]
    story.begin(0, nodes, at=0)
    for number, (depth, sequence_nr, what) in enumerate(
        [(0, 5, Push.NODE), (0, 2**64 - 1, Push.NODE), (1, 3, Push.NODE)]
    ):
        story.recorder.task_pushed(0, number, 1, depth, sequence_nr, 1, 1, -1, what)
    story.recorder.task_pushed(0, -1, 1, 0, 0, 1, 1, -1, Push.WAKE_UP)

    history = History(story.trace())
    (tasks,) = history.at(history.num_events - 1).queues.values()

    assert [task.node for task in tasks] == [-1, 2, 1, 0]


def test_of_wake_ups_what_was_popped_first_lies_first_however_deep_its_pass(story):
    story.begin(0, [story.node(1)], at=0)
    for task, depth in ((0, 1), (2, 3)):
        story.recorder.task_pushed(task, -1, 1, depth, 0, 1, 1, -1, Push.WAKE_UP)
    story.recorder.task_popped(0, -1, 1, 1)
    story.recorder.task_popped(2, -1, 1, 0)

    history = History(story.trace())
    (tasks,) = history.at(history.num_events - 3).queues.values()

    assert [task.task for task in tasks] == [0, 2]
    assert precedence(tasks[0], tasks[1]) == "equal"


def test_a_thread_sleeps_from_what_came_before_its_sleep_until_it_tells_of_it(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.recorder.thread_started(0, Role.DEVICE)
    story.push(0, node, at=100)
    story.waited(60, until=120)
    story.pop(0, node, at=130)

    history = History(story.trace())
    asleep = [
        int(history.t_ns[seq]) - 1_000
        for seq in range(history.num_events)
        if any(one.asleep_on == 1 for one in history.at(seq).workers)
    ]

    assert asleep == [100]


def test_a_stream_waits_until_what_it_waits_for_is_done(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.kernel(1, "sim:0/0", at=10, ran=(12, 50))
    story.record(7, "sim:0/0")
    story.wait(7, "sim:0/1", node=1, producer=3)
    story.push(0, node, at=40)
    story.push(0, node, at=60)

    history = History(story.trace())
    before, after = (history.at(history.seq_at(1_000 + at)) for at in (40, 60))

    assert [(one.stream, one.num_kernels) for one in before.streams] == [
        ("sim:0/0", 1),
        ("sim:0/1", 0),
    ]
    (wait,) = before.streams[1].waits
    assert (wait.event, wait.awaited, wait.node, wait.producer) == (7, "sim:0/0", 1, 3)
    assert after.streams == ()


def test_a_node_without_an_end_runs_on_and_its_pass_is_unfinished(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.take(0, node, at=(10, 20, 30))

    history = History(story.trace())
    state = history.at(history.num_events - 1)

    assert [one.node for worker in state.workers for one in worker.running] == [1]
    assert [one.status for one in state.passes] == ["unfinished"]


@pytest.mark.parametrize("seq", [-1, 10**6])
def test_a_moment_that_there_is_not_is_refused(seq, story):
    story.begin(0, [story.node(1)], at=0)

    with pytest.raises(IndexError, match=f"no event {seq}: the trace has"):
        History(story.trace()).at(seq)


def test_a_trace_without_events_has_no_moments(story):
    history = History(story.trace())

    assert history.num_events == 0
    assert history.seq_at(10**18) == -1
    assert np.array_equal(history.t_ns, [])
