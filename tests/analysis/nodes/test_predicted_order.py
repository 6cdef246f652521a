"""Predicted orders, against those of the engine and against stories."""

import random

import pytest

import gradviz as gv
from gradviz import sim
from gradviz.analysis.nodes.predicted_order import predicted_orders
from gradviz.capture.session import record
from gradviz.engine import Engine
from gradviz.engine.prediction import predicted_order
from gradviz.trace.probe import Push
from gradviz.trace.reading.reader import parse_trace
from tests.cli import bad_files
from tests.engine.nodes import Pass, Sink


def of(trace, task="all"):
    (order,) = predicted_orders(trace, trace.tasks if task == "all" else [task])
    return order


def left_at(expected, ran):
    """Return where two orders of the same nodes first differ, or None."""
    pairs = enumerate(zip(expected, ran, strict=True))
    return next((place for place, (one, other) in pairs if one != other), None)


def random_graph(seed, num_nodes=40):
    """Nodes of which each hands gradients to some made before, the last to all ends."""
    rng = random.Random(seed)
    nodes = [Sink() for _ in range(4)]
    for _ in range(num_nodes):
        nodes.append(Pass(*rng.choices([*nodes, None], k=rng.randint(1, 3))))
    used = {edge.node for node in nodes for edge in node.next_edges}
    return Pass(*(node for node in nodes if node not in used))


@pytest.mark.parametrize("seed", range(20))
def test_it_is_what_the_engine_predicts_and_what_runs(seed):
    root = random_graph(seed)
    expected = [one.node.id for one in predicted_order([(root, 0)])]

    with record() as recording:
        Engine().execute([(root, 0)], [1])

    order = of(recording.trace)
    assert [row.node for row in order.rows] == expected
    assert [row.ran for row in order.rows] == list(range(len(expected)))
    assert order.divergences == ()


@pytest.mark.another_order
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("schedule", ["fifo", "random:3"])
def test_another_policy_is_found_where_it_first_shows(seed, schedule):
    root = random_graph(seed)
    expected = [one.node.id for one in predicted_order([(root, 0)])]

    with record() as recording:
        Engine(schedule=schedule).execute([(root, 0)], [1])

    order = of(recording.trace)
    ran = recording.trace.columns["node_started"]["node"].tolist()
    index = left_at(expected, ran)
    (one,) = order.divergences
    assert (one.index, one.predicted, one.actual) == (
        index,
        expected[index],
        ran[index],
    )
    assert one.why == "policy"
    assert [row.ran for row in order.rows] == [ran.index(node) for node in expected]


def test_only_what_is_asked_for_is_predicted():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    y = gv.tensor([1.0, 2.0], requires_grad=True)
    middle = x.sin()
    loss = (middle * y.exp() + y).sum()

    with record() as recording:
        gv.autograd.grad(loss, [middle], retain_graph=True)
        gv.autograd.grad(loss, [x, y], retain_graph=True)
        loss.backward(inputs=[y])
    for task in recording.trace.tasks:
        order = of(recording.trace, task)
        assert order.divergences == ()
        assert order.num_predicted == order.num_ran > 2


def test_a_root_that_leads_to_nothing_asked_for_is_predicted_alone():
    x, y = (gv.ones(3, requires_grad=True) for _ in range(2))

    with record() as recording:
        gv.autograd.grad(x.exp().sum(), [y], allow_unused=True)
        gv.autograd.backward((x * 2).sum(), inputs=[y])
        gv.autograd.backward([(x * 2).sum(), x.sum()], inputs=[y])

    for task in recording.trace.tasks:
        order = of(recording.trace, task)
        assert [row.ran for row in order.rows] == [0]
        assert order.divergences == ()


@pytest.mark.parametrize("seed", range(10))
def test_a_pass_for_only_some_of_the_leaves_runs_as_predicted(seed):
    rng = random.Random(seed)
    leaves = [gv.ones(2, requires_grad=True) for _ in range(5)]
    made = list(leaves)
    for _ in range(15):
        one, other = rng.choices(made, k=2)
        made.append(rng.choice([one * other, one.exp(), one + other, other.detach()]))
    roots = [one.sum() for one in made if one.requires_grad and one.grad_fn][-2:]

    with record() as recording:
        for size in range(1, 5):
            wanted = rng.sample([*leaves, *roots[:1]], size)
            gv.autograd.grad(roots, wanted, allow_unused=True, retain_graph=True)

    for task in recording.trace.tasks:
        order = of(recording.trace, task)
        assert order.divergences == ()
        assert [row.ran for row in order.rows] == list(range(order.num_ran))


@pytest.mark.parametrize("num_devices", [1, 2, 3, 4])
def test_each_queue_is_compared_by_itself(num_devices):
    """The events decide which one is late, whatever the threads did this time."""
    count = sim.device_count()
    sim.set_device_count(num_devices)
    rng = random.Random(num_devices)
    with record() as recording:
        values = [gv.tensor([1.0], requires_grad=True) for _ in range(3)]
        for _ in range(40):
            one, other = rng.choices(values, k=2)
            place = f"sim:{rng.randrange(num_devices)}"
            values.append(one.to(place) * other.to(place))
        sum(value.to("cpu") for value in values).sum().backward()
    sim.set_device_count(count)
    trace = recording.trace

    order = of(trace)

    queue_of = dict(trace.columns["task_pushed"].rows("node", "queue"))
    ran = trace.columns["node_started"]["node"].tolist()
    assert {row.node for row in order.rows} == set(ran)
    found = {one.queue: one for one in order.divergences}
    for queue in set(queue_of.values()):
        should = [row.node for row in order.rows if queue_of[row.node] == queue]
        did = [node for node in ran if queue_of[node] == queue]
        first = found[queue].index if queue in found else None
        assert first == left_at(should, did)
    pushed = dict(trace.columns["task_pushed"].rows("node", "seq"))
    popped = dict(trace.columns["task_popped"].rows("node", "seq"))
    for one in found.values():
        assert (one.why == "late") == (pushed[one.predicted] > popped[one.actual])
        assert one.why not in {"policy", "unknown", "not run", "not foreseen"}


@pytest.fixture
def fork(story):
    """A root that leads to 2 and 3, both of which lead to the leaf; begun, root ran."""
    leaf = story.node(1, name="AccumulateGrad")
    older, newer = story.node(2, leaf), story.node(3, leaf)
    root = story.node(4, newer, older)
    story.begin(0, [root, older, newer, leaf], at=0)
    story.recorder.task_pushed(0, 4, 1, 0, 4, 1, 1, -1, Push.ROOT)
    story.pop(0, root, at=10)
    story.start(0, root, at=11)
    return story, root, older, newer, leaf


def go(story, node, *, at):
    story.pop(0, node, at=at)
    story.ran(0, node, at=at + 1, until=at + 2)


def only(story):
    (one,) = of(story.trace()).divergences
    return one


def test_a_node_that_became_ready_too_late_is_reported_with_the_late_thread(fork):
    story, root, older, newer, leaf = fork
    story.push(0, older, at=20)
    story.complete(0, root, at=25)
    go(story, older, at=30)
    story.on_thread("other", lambda: story.push(0, newer, at=90))
    go(story, newer, at=100)
    story.push(0, leaf, at=110)
    go(story, leaf, at=120)
    story.end(0, at=200)

    one = only(story)

    assert (one.why, one.index, one.predicted, one.actual) == ("late", 1, 3, 2)
    assert (one.by, one.thread, one.off_ns) == (-1, 1, 60)


@pytest.mark.another_order
def test_a_node_that_the_thread_itself_pushed_was_ready_in_time(fork):
    story, root, older, newer, leaf = fork
    story.push(0, older, at=15)
    story.push(0, newer, at=20)
    story.complete(0, root, at=25)
    finish(story, older, newer, leaf)

    assert only(story).why == "policy"


@pytest.mark.another_order
@pytest.mark.parametrize(("goes_on", "why"), [(22, "policy"), (28, "crossed")])
def test_a_node_from_another_thread_was_ready_in_time_if_that_thread_had_moved_on(
    goes_on, why, fork
):
    story, root, older, newer, leaf = fork
    story.push(0, older, at=15)

    def elsewhere():
        story.push(0, newer, at=20)
        story.now = 1_000 + goes_on
        story.recorder.mark("something else")

    if goes_on > 25:
        story.complete(0, root, at=19)
    story.on_thread("other", elsewhere)
    if goes_on < 25:
        story.complete(0, root, at=25)
    finish(story, older, newer, leaf)

    one = only(story)

    assert one.why == why
    assert (one.thread, one.off_ns) == ((1, 10) if why == "crossed" else (-1, None))


def finish(story, first, second, leaf):
    go(story, first, at=30)
    go(story, second, at=40)
    story.push(0, leaf, at=50)
    go(story, leaf, at=60)
    story.end(0, at=200)


def test_a_pass_that_fails_leaves_the_order_with_the_error(fork):
    story, root, older, newer, _leaf = fork
    for node, at in ((newer, 15), (older, 16)):
        story.push(0, node, at=at)
    story.complete(0, root, at=20)
    story.pop(0, newer, at=30)
    story.start(0, newer, at=31)
    story.fail(0, newer, "boom", at=40)

    one = only(story)

    assert (one.why, one.index, one.predicted, one.actual) == ("failed", 2, 2, -1)
    assert one.error == "boom"


def test_a_trace_that_was_cut_ends_before_the_order(fork):
    story, *_ = fork

    one = only(story)

    assert (one.why, one.predicted, one.actual) == ("unfinished", 3, -1)


def test_a_node_that_ran_but_is_not_in_the_graph_is_reported(fork):
    story, root, _older, _newer, _leaf = fork
    stranger = story.node(9, name="Stranger")  # never defined
    story.push(0, stranger, at=15)
    story.complete(0, root, at=20)
    go(story, stranger, at=30)
    story.end(0, at=50)

    one = only(story)

    assert (one.why, one.actual, one.actual_name) == ("not foreseen", 9, "?")


def test_a_node_that_never_ran_in_a_completed_pass_is_reported(fork):
    story, root, *_ = fork
    story.complete(0, root, at=20)
    story.end(0, at=50)

    assert only(story).why == "not run"


def test_lost_definitions_are_counted(story):
    root = story.node(2, story.node(1))
    lost = root.next_edges[0].node._replace(id=7)
    root = root._replace(next_edges=(root.next_edges[0]._replace(node=lost),))
    story.begin(0, [root], at=0)
    story.recorder.task_pushed(0, 2, 1, 0, 2, 1, 1, -1, Push.ROOT)
    story.pop(0, root, at=10)
    story.ran(0, root, at=11, until=12)
    story.end(0, at=50)

    order = of(story.trace())

    assert (order.num_lost, order.num_predicted) == (1, 2)


def test_without_its_begin_nothing_is_predicted(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.push(0, node, at=5)
    go(story, node, at=10)
    story.end(0, at=50)

    order = of(story.trace())

    assert order.rows == ()
    assert [one.why for one in order.divergences] == ["not foreseen"]


def test_passes_that_are_too_large_are_left_out(story, monkeypatch):
    monkeypatch.setattr("gradviz.analysis.nodes.predicted_order.MAX_PREDICTED", 1)
    nodes = [story.node(1)]
    nodes.append(story.node(2, nodes[0]))
    story.begin(0, nodes, at=0)
    story.recorder.task_pushed(0, 2, 1, 0, 2, 1, 1, -1, Push.ROOT)

    order = of(story.trace())

    assert (order.is_too_large, order.rows) == (True, ())


def test_a_backward_inside_shares_the_queue():
    """Leaves tie, and a pass inside moves them: said to be shared, if they differ."""
    leaves = [gv.tensor([1.0], requires_grad=True) for _ in range(9)]

    class Inner(gv.autograd.Function):
        @staticmethod
        def forward(ctx, *xs):
            return sum(x.detach() for x in xs)

        @staticmethod
        def backward(ctx, grad):
            with gv.enable_grad():
                z = gv.tensor([2.0], requires_grad=True)
                (z * z).sum().backward()
            return (grad,) * 9

    with record() as recording:
        (Inner.apply(*leaves) + sum(leaves)).sum().backward()
    outer = int(recording.trace.columns["task_begun"]["parent"].max())

    order = of(recording.trace, outer)

    assert {one.why for one in order.divergences} <= {"shared"}
    assert order.num_predicted == order.num_ran


def test_of_very_many_passes_the_first_are_predicted(story, monkeypatch):
    monkeypatch.setattr(
        "gradviz.analysis.nodes.predicted_order.MAX_PASSES_PREDICTED", 2
    )
    for task in range(3):
        story.begin(task, [story.node(task)], at=10 * task)
    trace = story.trace()

    assert [one.task for one in predicted_orders(trace, trace.tasks)] == [0, 1]


def test_a_damaged_trace_in_which_a_pass_begins_twice_has_one_order_of_it():
    begun = bad_files.events(bad_files.many_begun(3))
    trace = parse_trace(bad_files.HEADER + begun + begun + bad_files.CLOSED)

    orders = predicted_orders(trace, [0, 1, 2])

    assert [order.task for order in orders] == [0, 1, 2]
