"""Passes of one shape, and what is usual for their nodes."""

import random
import statistics
from collections import defaultdict

import pytest

import gradviz as gv
from gradviz import sim
from gradviz.analysis.training import pass_shapes as module
from gradviz.analysis.training.pass_shapes import medians, medians_like, shapes
from gradviz.trace.events import NodeCompleted, NodeStarted
from gradviz.trace.reading.reader import parse_trace


@pytest.fixture
def loop(story):
    """A pass of a root and two leaves, several times, each time of new nodes."""

    def one(task, times, *, leaf_name="AccumulateGrad", input_nr=0, device="cpu"):
        first = 10 * task
        leaves = [
            story.node(first + n, name=leaf_name, device=device) for n in range(2)
        ]
        root = story.node(first + 5, *leaves, name="Mul", input_nr=input_nr)
        begin = 1_000 * task
        story.begin(task, [root, *leaves], at=begin)
        for place, (node, took) in enumerate(zip([root, *leaves], times, strict=True)):
            at = begin + 100 * (place + 1)
            story.ran(task, node, at=at, until=at + took)
        story.end(task, at=begin + 900)

    return one


def test_nodes_of_passes_of_one_shape_have_the_same_places(story, loop):
    loop(1, (10, 20, 30))
    loop(2, (11, 21, 31))

    found = shapes(story.trace())

    assert found.keys[0] == found.keys[1]
    assert found.like(2) == (1, 2)
    first, second = found.of(1), found.of(2)
    assert (second.node - first.node).tolist() == [10, 10, 10]
    assert (second.took_ns - first.took_ns).tolist() == [1, 1, 1]
    assert found.of(3).node.tolist() == []


@pytest.mark.parametrize("order", [(1, 2, 3, 4, 5), (5, 4, 1, 3, 2), (2, 2, 77, 3)])
def test_usual_times_do_not_depend_on_the_passes_asked_for_before(story, loop, order):
    for task in range(1, 6):
        name = "AccumulateGrad" if task % 2 else "Other"
        loop(task, (10 * task, 20, 30), leaf_name=name)
    contents = story.contents()
    trace = parse_trace(contents)

    for task in order:
        alone = medians_like(parse_trace(contents), task)
        assert medians_like(trace, task) == alone
        assert medians_like(trace, task).keys() == {
            10 * task + place for place in (0, 1, 5) if task < 6
        }


@pytest.mark.parametrize(
    "other", [{"leaf_name": "Other"}, {"input_nr": 1}, {"device": "sim:0"}]
)
def test_names_inputs_and_devices_make_a_shape(story, loop, other):
    loop(1, (10, 20, 30))
    loop(2, (10, 20, 30), **other)
    loop(3, (10, 20, 30))

    found = shapes(story.trace())

    assert found.like(1) == (1, 3)
    assert found.like(2) == (2,)


def test_a_shape_is_the_same_in_every_trace_and_whatever_is_asked_for(story, loop):
    loop(1, (10, 20, 30))
    loop(2, (10, 20, 30), device="sim:0")
    trace = story.trace()

    every, only = shapes(trace), shapes(trace, [2])

    assert only.keys == (every.keys[1],)
    assert shapes(trace, [2, 1]).tasks.tolist() == [2, 1]
    assert shapes(trace, []).keys == ()


def test_the_usual_time_is_the_median_over_the_passes_of_the_shape(story, loop):
    for task, took in enumerate((10, 49, 12, 30)):
        loop(task, (took, 20, 5))
    loop(5, (7, 7, 7), device="sim:0")
    trace = story.trace()

    usual = medians_like(trace, 1)
    assert usual[15] == (4, 21, -1)  # between 12 and 30
    assert usual[10] == (4, 20, -1)
    assert medians_like(trace, 5)[55] == (1, 7, -1)
    assert medians_like(trace, 77) == {}
    found = shapes(trace)
    assert medians(found, [0, 1, 2, 3]).passes.tolist() == [4, 4, 4]
    assert medians(found, [4]).passes.tolist() == [1, 1, 1]


def test_a_pass_that_failed_is_of_no_shape_of_the_others_and_counts_for_nothing(
    story, loop
):
    loop(1, (10, 20, 30))
    root = story.node(25, name="Mul")
    story.begin(2, [root], at=2_000)
    story.start(2, root, at=2_010)
    story.fail(2, root, "no", at=2_500)
    trace = story.trace()

    assert shapes(trace).like(2) == (2,)
    assert medians_like(trace, 2) == {25: (0, 0, -1)}


def test_a_pass_whose_definitions_are_lost_is_like_no_other(story):
    for task in (1, 2):
        story.begin(task, [], at=100 * task)
        story.recorder.node_started(task, 5 * task)
        story.recorder.node_completed(task, 5 * task)
        story.end(task, at=100 * task + 50)

    found = shapes(story.trace())

    assert found.like(1) == (1,)
    assert found.like(2) == (2,)


def test_a_pass_whose_begin_is_lost_is_not_looked_at(story, loop):
    loop(1, (10, 20, 30))
    root = story.node(25, name="Mul")
    story.ran(2, root, at=2_000, until=2_010)

    assert shapes(story.trace()).tasks.tolist() == [1]


def test_of_too_many_passes_the_last_are_left_out(story, loop, monkeypatch):
    monkeypatch.setattr(module, "MAX_COMPARED", 11)  # two of three nodes, two edges
    for task in (1, 2, 3):
        loop(task, (10, 20, 30))
    trace = story.trace()

    found = shapes(trace)

    assert found.tasks.tolist() == [1, 2]
    assert found.omitted == 1
    assert medians_like(trace, 3)[35].passes == 2


def model(seed, devices):
    """A graph of random operations, the same for the same seed, each time anew."""
    draw = random.Random(seed)
    values = [gv.tensor([1.0, 2.0], requires_grad=True) for _ in range(3)]
    if seed % 2:
        values[0] = values[0].to("sim:0")
    for _ in range(draw.randrange(5, 12)):
        one, other = draw.choice(values), draw.choice(values)
        to = draw.choice(devices)
        values.append(one.to(to).sin() * other.to(to) if draw.random() < 0.7 else -one)
    return sum((one.to("cpu").sum() for one in values[1:]), values[0].to("cpu").sum())


def structure(trace, runs):
    """Return a pass's shape by definition, with nodes named by their row."""
    row = {node: place for place, node in enumerate(runs.node.tolist())}
    return [
        (
            trace.nodes[node].name,
            trace.nodes[node].device,
            [
                ((row.get(to, "other") if to >= 0 else None), input_nr)
                for to, input_nr in trace.nodes[node].edges
            ],
        )
        for node in row
    ]


@pytest.mark.parametrize("num_devices", [1, 4])
def test_random_graphs_are_found_again_with_their_medians(num_devices):
    before = sim.device_count()
    sim.set_device_count(num_devices)
    devices = ["cpu", *(f"sim:{one}" for one in range(num_devices))]
    with gv.record() as recording:
        seeds = [seed for _ in range(3) for seed in range(8)]
        for seed in seeds:
            model(seed, devices).backward()
    sim.set_device_count(before)
    trace = recording.trace
    seed_of = dict(zip(trace.tasks, seeds, strict=True))
    began = {(e.task, e.node): e.t_ns for e in trace.events() if type(e) is NodeStarted}
    ended = [e for e in trace.events() if type(e) is NodeCompleted]
    took = {(e.task, e.node): e.t_ns - began[e.task, e.node] for e in ended}
    ran = {
        key: min(e.thread_time_ns, took[key])
        for e in ended
        for key in [(e.task, e.node)]
    }

    found = shapes(trace)

    by_key = defaultdict(list)
    for task, key in zip(found.tasks.tolist(), found.keys, strict=True):
        by_key[key].append(task)
    said = [structure(trace, found.of(task)) for task in trace.tasks]
    for tasks in by_key.values():
        assert len({str(said[trace.tasks.index(task)]) for task in tasks}) == 1
    for seed in set(seeds):
        same = [task for task in trace.tasks if seed_of[task] == seed]
        assert len({found.keys[found.row_of(task)] for task in same}) == 1
    for tasks in by_key.values():
        rows = zip(*(found.of(task).node.tolist() for task in tasks), strict=True)
        every = medians_like(trace, tasks[0])
        for nodes in rows:
            keys = list(zip(tasks, nodes, strict=True))
            usual = (
                len(tasks),
                int(statistics.median(took[key] for key in keys)),
                int(statistics.median(ran[key] for key in keys)),
            )
            assert every[nodes[0]] == usual
