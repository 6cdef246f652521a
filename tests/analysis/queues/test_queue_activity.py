import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import gradviz as gv
from gradviz import sim
from gradviz.analysis.queues.queue_activity import (
    Handover,
    build_queues,
    document_of,
    overtakings,
)
from gradviz.analysis.tables.spans import MAX_POINTS, NEVER
from gradviz.capture.session import record
from gradviz.trace.probe import Push
from tests.analysis.queues.stories import three_tasks


def test_a_queue_is_told_with_its_lengths_and_who_was_overtaken(story):
    queues = build_queues(three_tasks(story).trace(), [0])

    (queue,) = queues.queues
    assert (queue.num_pushed, queue.num_popped, queue.longest) == (3, 3, 3)
    assert queue.lengths == ((10, 1), (20, 2), (30, 3), (40, 2), (60, 1), (90, 0))
    assert queue.mean_length == (10 * 1 + 10 * 2 + 10 * 3 + 20 * 2 + 30 * 1) / 110
    assert (queues.origin_ns, queues.duration_ns) == (1_000, 110)
    assert [
        (one.node, one.num_by, one.by, one.waited_ns) for one in queues.overtaken
    ] == [
        (0, 2, (2, 1), 80),
        (1, 1, (2,), 40),
    ]
    assert queue.num_overtaken == 2


def test_sleep_counts_from_the_begin_of_the_pass(story):
    story.now = 0
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.waited(500, until=70)
    story.waited(10, until=90)
    story.push(0, node, at=91)
    story.pop(0, node, at=92)
    story.end(0, at=100)

    (queue,) = build_queues(story.trace(), [0]).queues

    assert (queue.num_sleeps, queue.asleep_ns) == (2, 80)


def test_a_task_that_another_thread_pops_was_handed_over(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.push(0, node, at=10)
    story.on_thread("device 0", lambda: story.pop(0, node, at=20))
    story.end(0, at=30)

    queues = build_queues(story.trace(), [0])

    assert queues.handovers == (Handover(0, 1, 1),)
    assert queues.threads[1] == "device 0"


def test_a_task_that_never_leaves_a_queue_is_counted_but_not_overtaken(story):
    nodes = [story.node(number) for number in range(2)]
    story.begin(0, nodes, at=0)
    story.push(0, nodes[0], at=10)
    story.push(0, nodes[1], at=20)
    story.pop(0, nodes[1], at=30)

    queues = build_queues(story.trace(), [0])

    (queue,) = queues.queues
    assert (queue.num_pushed, queue.num_popped) == (2, 1)
    assert queues.overtaken == ()


def test_a_pass_counts_those_inside_of_it_and_no_others(story):
    node = story.node(1)
    for task, parent, at in ((0, -1, 0), (1, 0, 20), (2, -1, 200)):
        story.begin(task, [node], at=at, parent=parent)
        story.push(task, node, at=at + 5)
        story.pop(task, node, at=at + 6)
        story.end(task, at=at + 10)

    queues = build_queues(story.trace(), [0])

    assert queues.tasks == (0, 1)
    assert queues.queues[0].num_pushed == 2


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=70), st.randoms())
def test_overtakings_are_those_that_looking_at_every_pair_finds(tasks, random):
    """It holds for any arrangement of queues, starts and ends."""
    order = list(range(len(tasks)))
    random.shuffle(order)
    ends = [
        10_000 + place if left else NEVER
        for place, (_, left) in zip(order, tasks, strict=True)
    ]
    queues = np.array([queue for queue, _ in tasks], np.int64)

    assert overtakings(queues, np.array(ends, np.int64)).tolist() == [
        0
        if ends[i] == NEVER
        else sum(
            queue == tasks[i][0] and j > i and ends[j] < ends[i]
            for j, (queue, _) in enumerate(tasks)
        )
        for i in range(len(tasks))
    ]


def test_of_a_recorded_program_every_figure_follows_from_its_events():
    count = sim.device_count()
    sim.set_device_count(2)
    with record() as recording:
        x = gv.tensor([1.0, 2.0], requires_grad=True)
        a, b = x.to("sim:0"), x.to("sim:1")
        for _ in range(4):
            a, b = a.sin() * a, b.cos() + b
        (a.to("cpu") + b.to("cpu")).sum().backward()
    sim.set_device_count(count)
    trace = recording.trace
    pushed, popped = trace.columns["task_pushed"], trace.columns["task_popped"]

    queues = build_queues(trace, trace.tasks)

    for one in queues.queues:
        assert one.num_pushed == np.count_nonzero(pushed["queue"] == one.queue)
        assert one.num_popped == np.count_nonzero(popped["queue"] == one.queue)
        assert one.lengths[-1][1] == one.num_pushed - one.num_popped == 0
        assert one.longest == max(length for _, length in one.lengths)
    by_node = {
        (task, node): thread
        for what, task, node, thread in zip(
            *(pushed[name].tolist() for name in ("what", "task", "node", "thread")),
            strict=True,
        )
        if what != Push.WAKE_UP
    }
    handed_over = sum(
        by_node.get((task, node), thread) != thread
        for task, node, thread in zip(
            *(popped[name].tolist() for name in ("task", "node", "thread")), strict=True
        )
    )
    wake_ups = np.count_nonzero(pushed["what"] == Push.WAKE_UP)
    total = sum(one.num_tasks for one in queues.handovers)
    assert handed_over <= total <= handed_over + wake_ups
    assert handed_over >= 3  # to each of two devices, and back


def test_of_very_many_lengths_the_longest_of_each_slice_is_told(story):
    node = story.node(0)
    story.begin(0, [node], at=0)
    for number in range(MAX_POINTS):
        one = node._replace(id=number)
        story.push(0, one, at=10 * number)
        if number % 100:
            story.pop(0, one, at=10 * number + 5)

    (queue,) = build_queues(story.trace(), [0]).queues

    assert len(queue.lengths) <= MAX_POINTS
    assert max(length for _, length in queue.lengths) == queue.longest == 21
    assert [moment for moment, _ in queue.lengths] == sorted(
        {moment for moment, _ in queue.lengths}
    )


def test_the_document_is_the_queues_under_their_schema(story):
    queues = build_queues(three_tasks(story).trace(), [0])

    document = document_of(queues)

    assert (document.pop("schema"), document.pop("version")) == ("gradviz.queues", 1)
    assert document == msgspec.to_builtins(queues)


def test_a_pass_without_tasks_has_no_queues(story):
    story.begin(0, [], at=0)
    story.end(0, at=10)

    queues = build_queues(story.trace(), [0])

    assert (queues.queues, queues.overtaken, queues.duration_ns) == ((), (), 10)
