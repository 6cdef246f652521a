import msgspec
import pytest

import gradviz as gv
from gradviz import sim
from gradviz.analysis.moments.explanation import (
    Ahead,
    GivenGradient,
    Mention,
    OfLine,
    document_of,
    explain,
)
from gradviz.capture.session import record
from gradviz.trace.probe import How, Push
from tests.analysis.conftest import START_NS
from tests.analysis.reentrant import Inner


def buffered(story, node, producer, remaining, *, at, task=0):
    story.now = 1_000 + at
    story.recorder.gradient_buffered(task, node, producer, 0, remaining, 8, How.FIRST)


@pytest.fixture
def told(story):
    """Node 1 gets gradients from 3 and 2, lies in its queue from 60, and runs at 100.

    Node 4, made later, is pushed to the same queue and runs from 70 to 90.
    """
    one, two, three, four = (
        story.node(number, name=name)
        for number, name in enumerate(["Mul", "Sin", "Cos", "Exp"], 1)
    )
    story.begin(0, [one, two, three, four], at=0)
    buffered(story, 1, 3, 1, at=20)
    buffered(story, 1, 2, 0, at=50)
    story.push(0, one, at=60)
    story.take(0, four, at=(65, 66, 70), until=90)
    story.pop(0, one, at=95)
    story.start(0, one, at=100)
    buffered(story, 2, 1, 0, at=110)
    story.complete(0, one, at=120)
    story.end(0, at=200)
    return explain(story.trace(), 0, 1)


def test_its_gradients_are_told_with_who_sent_them_and_when(told):
    assert told.arrivals == (
        GivenGradient(Mention(3, "Cos"), 20, 1),
        GivenGradient(Mention(2, "Sin"), 50, 0),
    )
    assert (told.num_arrivals, told.is_root) == (2, False)


def test_its_time_in_the_queue_is_told_with_what_went_first_and_why(told):
    assert (told.pushed_ns, told.popped_ns, told.busy_ns) == (60, 95, 20)
    assert told.ahead == (
        Ahead(node=4, name="Exp", task=0, why="made later", sequence_nr=4, index=0),
    )


def test_its_run_is_told_with_what_it_let_start(told):
    assert (told.started_ns, told.ended_ns, told.status) == (100, 120, "completed")
    assert (told.let_start, told.num_let_start) == ((Mention(2, "Sin"),), 1)


def test_of_a_line_in_a_loop_it_is_told_which_iteration_made_a_node():
    w = gv.ones(3, requires_grad=True)
    h = w
    with record() as recording:
        for _ in range(3):
            h = (h * w).sin()
        h.sum().backward()
    trace = recording.trace
    (task,) = trace.columns["task_begun"]["task"].tolist()
    told = {node: explain(trace, task, node) for node in trace.nodes}

    found = {
        name: [one.of_line for _, one in sorted(told.items()) if one.name == name]
        for name in ("SinBackward0", "SumBackward0", "AccumulateGrad")
    }
    assert found == {
        "SinBackward0": [OfLine(1, 3), OfLine(2, 3), OfLine(3, 3)],
        "SumBackward0": [None],
        "AccumulateGrad": [None],
    }


def test_nodes_have_the_numbers_of_the_order_in_which_they_ran(story):
    first, second, last = (story.node(number) for number in (7, 8, 9))
    for task in (0, 1):
        story.begin(task, [first, second, last], at=100 * task)
        for place, one in enumerate([first, second] if task else [second, first]):
            story.ran(task, one, at=(start := 100 * task + 10 * place), until=start + 5)
        buffered(story, 7, 8, 1, at=100 * task + 50, task=task)
        buffered(story, 9, 8, 0, at=100 * task + 60, task=task)
        story.end(task, at=100 * task + 90)
    trace = story.trace()

    told = [explain(trace, task, 7) for task in (0, 1)]

    assert [one.index for one in told] == [1, 0]
    assert [one.arrivals[0].producer.index for one in told] == [0, 1]
    assert explain(trace, 0, 9).index == -1


def test_the_document_is_the_explanation_under_its_schema(told):
    document = document_of(told)

    assert (document.pop("schema"), document.pop("version")) == (
        "gradviz.explanation",
        1,
    )
    assert document == msgspec.to_builtins(told)


@pytest.mark.parametrize(
    ("depth", "sequence_nr", "what", "why"),
    [
        (0, 0, Push.WAKE_UP, "wake-up"),
        (1, 0, Push.NODE, "deeper"),
        (0, 6, Push.NODE, "made later"),
        (0, 2**64 - 1, Push.NODE, "made later"),
        (0, 5, Push.NODE, "equal"),
        (0, 4, Push.NODE, None),
    ],
)
def test_a_task_ahead_has_the_reason_of_the_ready_queue(
    story, depth, sequence_nr, what, why
):
    """Q2-Q4."""
    one, other = story.node(5), story.node(6)
    story.begin(0, [one, other], at=0)
    story.push(0, one, at=10)
    node = -1 if what is Push.WAKE_UP else other.id
    story.recorder.task_pushed(0, node, 1, depth, sequence_nr, 1, 1, -1, what)
    story.recorder.task_popped(0, node, 1, 1)
    story.pop(0, one, at=50)
    story.ran(0, one, at=60, until=70)

    (ahead,) = explain(story.trace(), 0, 5).ahead

    assert ahead.why == why


def test_a_thread_that_was_asleep_when_the_task_came_woke_that_much_later(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.push(0, node, at=50)
    story.waited(70, until=90)
    story.pop(0, node, at=91)
    story.ran(0, node, at=92, until=95)

    assert explain(story.trace(), 0, 1).slept_ns == 40


def test_the_end_of_the_node_that_pushed_it_keeps_no_thread_from_it(story):
    one, pusher = story.node(1), story.node(2)
    story.begin(0, [one, pusher], at=0)
    story.start(0, pusher, at=10)
    story.now = 1_030
    story.recorder.task_pushed(0, one.id, 1, 0, one.id, 1, 1, pusher.id, Push.NODE)
    story.complete(0, pusher, at=31)
    story.pop(0, one, at=40)
    story.ran(0, one, at=50, until=60)

    assert explain(story.trace(), 0, one.id).busy_ns == 0


def test_a_node_that_did_not_run_has_a_reason():
    x = gv.tensor([1.0], requires_grad=True)

    def refuse(grad):
        raise ValueError("no")

    with record() as recording:
        y = x.sin()
        y.register_hook(refuse)
        with pytest.raises(ValueError, match="no"):
            (y * 2).sum().backward()
    trace = recording.trace
    (task,) = trace.tasks
    by_name = {one.name: one.id for one in trace.nodes.values()}

    failed = explain(trace, task, by_name["SinBackward0"])
    leaf = explain(trace, task, by_name["AccumulateGrad"])

    assert (failed.status, failed.error) == ("failed", "ValueError: no")
    assert (leaf.status, leaf.absence, leaf.error) == (
        None,
        "failed before",
        "ValueError: no",
    )


def test_a_node_whose_trace_was_cut_is_unfinished(story):
    node, later = story.node(1), story.node(2)
    story.begin(0, [node, later], at=0)
    story.take(0, node, at=(10, 20, 30))
    trace = story.trace()

    one, other = explain(trace, 0, 1), explain(trace, 0, 2)

    assert (one.status, one.ended_ns) == ("unfinished", None)
    assert (other.status, other.absence) == (None, "unfinished")


def test_every_node_of_a_program_on_two_devices_can_be_explained():
    """Its figures are those of the events, whoever asks."""
    count = sim.device_count()
    sim.set_device_count(2)
    with record() as recording:
        x = gv.tensor([1.0, 2.0], requires_grad=True)
        a, b = x.to("sim:0"), x.to("sim:1")
        for _ in range(3):
            a, b = a.sin() * a, b.cos() + b
        (a.to("cpu") + b.to("cpu")).sum().backward()
    sim.set_device_count(count)
    trace = recording.trace
    (task,) = trace.tasks

    explained = [explain(trace, task, node) for node in trace.nodes]

    assert sum(one.num_let_start + one.is_root for one in explained) == len(explained)
    for one in explained:
        assert one.status == "completed"
        assert one.pushed_ns <= one.popped_ns <= one.started_ns < one.ended_ns
        assert one.busy_ns + one.slept_ns <= one.popped_ns - one.pushed_ns
        assert one.is_root or one.arrivals[-1].after_ns <= one.pushed_ns
        assert all(ahead.why is not None for ahead in one.ahead)


def test_it_is_told_what_is_usual_and_how_long_its_thread_was_not_running(timed):
    for task, lost in enumerate((3, 0, 0)):
        timed.begin(task + 1, [], at=timed.now - START_NS)
        node = timed.node(10 + task)
        timed.recorder.nodes_defined([node])
        timed.started(task + 1, node.id)
        timed.runs(0.2)
        timed.loses(lost)
        timed.recorder.node_completed(task + 1, node.id)
        timed.end(task + 1, at=timed.now - START_NS)
    trace = timed.trace()

    slow, usual = explain(trace, 1, 10), explain(trace, 2, 11)

    assert slow.thread_time_ns == pytest.approx(200_000, abs=50)
    assert slow.processor_wait_ns == pytest.approx(3_000_000, abs=50)
    assert usual.processor_wait_ns == 0
    for one in (slow, usual):
        assert one.num_alike == 3
        assert one.usual_ns == pytest.approx(200_000, abs=50)
        assert one.usual_thread_time_ns == pytest.approx(200_000, abs=50)


def test_of_an_older_trace_nothing_is_told_of_the_processor(pair):
    story, root, _ = pair

    found = explain(story.trace(), 7, root.id)

    assert (found.thread_time_ns, found.usual_thread_time_ns) == (None, None)
    assert (found.processor_wait_ns, found.num_alike, found.usual_ns) == (0, 1, 60)


def test_the_line_that_called_the_pass_and_what_the_node_called_are_told():
    x = gv.tensor([1.0], requires_grad=True)
    with record() as recording:
        (Inner.apply(x) + x).sum().backward()
    trace = recording.trace
    outer, inner = trace.tasks
    (node,) = (one for one, known in trace.nodes.items() if "Inner" in known.name)

    told = explain(trace, outer, node)

    assert "test_explanation.py:" in told.called_at
    assert (told.calls, told.num_calls) == ((inner,), 1)
    assert 0 < told.calls_ns < told.ended_ns - told.started_ns


def test_a_node_is_explained_though_the_number_of_its_pass_comes_twice(story):
    node = story.node(1, name="Mul")
    story.begin(0, [node], at=0)
    story.take(0, node, at=(10, 15, 20), until=30)
    story.end(0, at=40)
    story.begin(0, [node], at=50)

    assert explain(story.trace(), 0, 1).started_ns == 20
