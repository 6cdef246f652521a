"""Passes compared whose differences are known, because the test made them."""

import functools
import itertools
import random

import pytest

import gradviz as gv
from gradviz import sim
from gradviz.analysis.changes.pass_comparison import TooLargeError, compare
from gradviz.capture.session import record
from gradviz.engine import Engine
from tests.analysis.conftest import Story
from tests.engine.nodes import Pass, Sink


def named(name, *receivers):
    """A node of a class of this name."""
    kind = Pass if receivers else Sink
    return type(name, (kind,), {"__slots__": ()})(*receivers)


def recorded(program, *args):
    with record() as recording:
        program(*args)
    trace = recording.trace
    return trace, trace.tasks[-1]


def compared(one, other):
    return compare(*one, *other)


def run_graph(edges, order):
    """Run the graph of these edges, its nodes made in this order; the last is root."""
    nodes = {}
    for index in order:
        nodes[index] = named(f"Op{index}", *(nodes[to] for to in edges[index]))
    Engine().execute([(nodes[len(edges) - 1], 0)], [1])


def random_edges(rng, size):
    edges = [
        sorted(rng.sample(range(node), min(node, rng.randint(1, 3))))
        for node in range(size)
    ]
    used = set(itertools.chain.from_iterable(edges))
    return [*edges, [node for node in range(size) if node not in used]]


def another_order(rng, edges):
    """An order in which nodes can be made too: what they lead to first."""
    left, order = list(range(len(edges))), []
    while left:
        ready = [node for node in left if set(edges[node]) <= set(order)]
        order.append(rng.choice(ready))
        left.remove(order[-1])
    return order


@pytest.mark.parametrize("seed", range(12))
def test_the_same_graph_made_in_another_order_has_moved_nodes_and_no_other(seed):
    rng = random.Random(seed)
    edges = random_edges(rng, 10)
    one = recorded(run_graph, edges, range(len(edges)))
    other = recorded(run_graph, edges, another_order(rng, edges))

    comparison = compared(one, other)

    ran = [
        [trace.nodes[node].name for node in trace.columns["node_started"]["node"]]
        for trace, _ in (one, other)
    ]
    places = [ran[1].index(name) for name in ran[0]]
    longest = max(
        length
        for length in range(len(places) + 1)
        for some in itertools.combinations(places, length)
        if list(some) == sorted(some)
    )
    assert comparison.num_matched == len(edges)
    assert comparison.num_same_edges == sum(map(len, edges))
    assert (comparison.num_vanished, comparison.num_appeared) == (0, 0)
    assert comparison.num_changed == 0
    assert comparison.num_moved == len(places) - longest
    assert comparison.is_same == (ran[0] == ran[1])
    for moved in comparison.moved:
        assert moved.before.place == ran[0].index(moved.before.name)
        assert moved.after.place == ran[1].index(moved.before.name)


@pytest.mark.parametrize("seed", range(12))
def test_inserted_nodes_appeared_and_removed_nodes_vanished(seed):
    rng = random.Random(seed)

    def chain(names):
        node = Sink()
        for name in names:
            node = named(name, node)
        Engine().execute([(node, 0)], [1])

    names = [f"Op{number}" for number in range(30)]
    edited = list(names)
    gone = rng.sample(names, 3)
    for name in gone:
        edited.remove(name)
    for number in range(3):
        edited.insert(rng.randrange(len(edited)), f"New{number}")

    comparison = compared(recorded(chain, names), recorded(chain, edited))

    assert {one.name for one in comparison.vanished} == set(gone)
    assert {one.name for one in comparison.appeared} == {"New0", "New1", "New2"}
    assert comparison.num_moved == comparison.num_changed == 0
    assert not comparison.is_same


def model(device="cpu", shape=(3,), *, twice=False):
    x = gv.ones(shape, requires_grad=True)
    y = x.to(device).sin() * 2
    if twice:
        y = y.exp()
    y.to("cpu").sum().backward()


def fields(comparison):
    return {
        (one.before.name, part.field)
        for one in comparison.changed
        for part in one.differences
    }


def test_a_program_that_runs_again_is_the_same():
    comparison = compared(recorded(model), recorded(model))

    assert comparison.is_same
    assert comparison.changed == ()


def test_other_shapes_are_changes_of_the_inputs():
    small, large = (
        recorded(functools.partial(model, shape=(count,), twice=True))
        for count in (3, 4)
    )
    comparison = compared(small, large)

    assert ("SinBackward0", "inputs") in fields(comparison)
    assert {field for _, field in fields(comparison)} == {"inputs", "saved bytes"}
    change = next(x for x in comparison.changed if x.before.name == "ExpBackward0")
    assert [(x.field, x.before, x.after) for x in change.differences] == [
        ("inputs", "float32[3]", "float32[4]"),
        ("saved bytes", "12", "16"),
    ]
    assert not comparison.is_same


def test_another_device_is_a_change_and_nothing_has_moved_there():
    count = sim.device_count()
    sim.set_device_count(2)
    one, other = recorded(model, "sim:0"), recorded(model, "sim:1")
    sim.set_device_count(count)

    comparison = compared(one, other)

    assert ("SinBackward0", "device") in fields(comparison)
    assert {field for _, field in fields(comparison)} <= {"device"}
    assert comparison.num_moved == 0


def test_the_order_of_two_devices_among_each_other_does_not_matter(story):
    def told(first, second):
        told = Story()
        nodes = [
            told.node(1, name="A", device="sim:0"),
            told.node(2, name="B", device="sim:1"),
        ]
        root = told.node(3, *nodes, name="Root")
        told.begin(0, [root, *nodes], at=0)
        told.ran(0, root, at=10, until=20)
        for number, node in enumerate([nodes[first], nodes[second]]):
            told.ran(0, node, at=30 + 10 * number, until=35 + 10 * number)
        told.end(0, at=100)
        return told.trace(), 0

    assert compared(told(0, 1), told(1, 0)).is_same


def test_an_edge_that_leads_elsewhere_is_a_change():
    def program(crossed):
        a, b = named("A"), named("B")
        first, second = named("C", b if crossed else a), named("D", b)
        Engine().execute([(named("Root", first, second, a, b), 0)], [1])

    comparison = compared(recorded(program, False), recorded(program, True))

    (change,) = (x for x in comparison.changed if x.before.name == "C")
    (difference,) = change.differences
    assert difference.field == "gradient 0"
    assert difference.before.startswith("A (")
    assert difference.after.startswith("B (")


def test_a_pass_that_failed_has_nodes_that_ended_otherwise():
    def program(harm):
        x = gv.tensor([1.0], requires_grad=True)
        y = x.sin()
        if harm:
            y.register_hook(lambda grad: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                y.exp().sum().backward()
        else:
            y.exp().sum().backward()

    comparison = compared(recorded(program, False), recorded(program, True))

    ends = {
        change.before.name: (part.before, part.after)
        for change in comparison.changed
        for part in change.differences
        if part.field == "end"
    }
    assert comparison.after.status == "failed"
    assert ends["AccumulateGrad"] == ("completed", "not run")
    assert ends["SinBackward0"] == ("completed", "failed")


def test_lines_and_modules_are_told_and_do_not_count(story):
    def program():
        x = gv.tensor([1.0], requires_grad=True)
        x.sin().sum().backward()

    def moved_program():

        x = gv.tensor([1.0], requires_grad=True)
        x.sin().sum().backward()

    comparison = compared(recorded(program), recorded(moved_program))

    assert {field for _, field in fields(comparison)} == {"line"}
    assert comparison.num_changed == 0
    assert comparison.is_same


def test_different_programs_are_not_compared_in_detail():
    def one():
        x = gv.ones((3, 3), requires_grad=True)
        for _ in range(5):
            x = (x @ x).relu()
        x.mean().backward()

    def other():
        x = gv.ones((3, 3), requires_grad=True)
        for _ in range(5):
            x = x.sin() * x.exp()
        x.sum().backward()

    comparison = compared(recorded(one), recorded(other))

    assert not comparison.is_related
    assert not comparison.is_same
    assert comparison.vanished == comparison.changed == comparison.times == ()


def timed(*took):
    """A trace of passes of two nodes, of which the leaf takes so long each."""
    story = Story()
    at = 0
    for task, ns in enumerate(took):
        leaf = story.node(2 * task, name="AccumulateGrad")
        root = story.node(2 * task + 1, leaf, name="SumBackward0")
        story.begin(task, [root, leaf], at=at)
        story.ran(task, root, at=at + 10, until=at + 20)
        story.ran(task, leaf, at=at + 30, until=at + 30 + ns)
        story.end(task, at=at + 40 + ns)
        at += 1_000 + ns
    return story.trace()


def leaf_of(comparison):
    return next(x for x in comparison.times if x.before.name == "AccumulateGrad")


def test_durations_are_medians_over_the_passes_of_the_shape():
    comparison = compared(
        (timed(100, 110, 120, 9_000, 130), 1), (timed(200, 205, 210), 0)
    )

    leaf = leaf_of(comparison)
    assert (leaf.usual_before.median_ns, leaf.usual_before.passes) == (120, 5)
    assert leaf.usual_before.deviation_ns == 10
    assert (leaf.usual_after.median_ns, leaf.usual_after.deviation_ns) == (205, 5)
    assert leaf.is_significant
    assert comparison.duration.usual_before.median_ns == 160
    assert comparison.duration.usual_after.median_ns == 245
    assert comparison.is_same
    assert comparison.is_slower_or_faster


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((100, 100), (200, 200)),  # too few passes
        ((100, 100, 100), (105, 105, 105)),  # less than a tenth
        ((100, 150, 200, 250), (200, 260, 310, 380)),  # they vary by as much
    ],
)
def test_a_difference_that_may_be_chance_is_not_significant(one, other):
    comparison = compared((timed(*one), 0), (timed(*other), 0))

    assert not leaf_of(comparison).is_significant
    assert not comparison.is_slower_or_faster


def test_two_passes_of_one_shape_and_trace_are_compared_as_they_are():
    trace = timed(100, 110, 900)

    leaf = leaf_of(compare(trace, 0, trace, 2))

    assert (leaf.usual_before.median_ns, leaf.usual_after.median_ns) == (100, 900)
    assert (leaf.usual_before.passes, leaf.usual_after.passes) == (1, 1)


def test_a_pass_that_never_ended_has_no_duration(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.start(0, node, at=10)
    trace = story.trace()

    comparison = compare(trace, 0, trace, 0)

    assert comparison.duration is None
    assert comparison.before.status == "unfinished"


def test_passes_that_are_too_large_are_refused(monkeypatch):
    monkeypatch.setattr(
        "gradviz.analysis.changes.pass_comparison.MAX_COMPARED_NODES", 1
    )
    trace = timed(100)

    with pytest.raises(TooLargeError, match="pass 0 has 2 nodes: passes of up to 1"):
        compare(trace, 0, trace, 0)


def test_lost_definitions_are_counted(story):
    node = story.node(1)
    story.begin(0, [], at=0)
    story.ran(0, node, at=10, until=20)
    story.end(0, at=30)
    trace = story.trace()

    assert compare(trace, 0, trace, 0).before.num_lost == 1


def test_passes_of_very_many_edges_are_refused(story, monkeypatch):
    monkeypatch.setattr(
        "gradviz.analysis.changes.pass_comparison.MAX_COMPARED_EDGES", 2
    )
    leaf = story.node(0)
    story.begin(0, [story.node(1, leaf, leaf, leaf), leaf], at=0)
    story.push(0, story.node(1, leaf, leaf, leaf), at=1)
    trace = story.trace()

    with pytest.raises(TooLargeError, match="pass 0 has 3 edges: passes of up to 2"):
        compare(trace, 0, trace, 0)


@pytest.mark.breaks_lifecycle
def test_a_number_that_a_damaged_trace_gives_twice_means_the_first_pass(story):
    node = story.node(1)
    for at in (0, 50):
        story.begin(0, [node], at=at)
        story.ran(0, node, at=at + 10, until=at + 20)
    trace = story.trace()

    assert compare(trace, 0, trace, 0).is_same


def test_another_name_of_a_parameter_is_told_and_does_not_count():
    def program(name):
        model = gv.nn.Module()
        setattr(model, name, gv.nn.Parameter(gv.ones(3)))
        model.forward = lambda: getattr(model, name).sin().sum()
        model().backward()

    comparison = compared(recorded(program, "weight"), recorded(program, "scale"))

    (change,) = (x for x in comparison.changed if x.before.name == "AccumulateGrad")
    (difference,) = (x for x in change.differences if x.field == "parameter")
    assert difference.before.endswith("weight")
    assert difference.after.endswith("scale")
    assert comparison.is_same
