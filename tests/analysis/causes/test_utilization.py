from collections import Counter

import msgspec
import pytest

from gradviz.analysis.causes.critical_path import find_critical_path
from gradviz.analysis.causes.utilization import document_of, find_utilization
from gradviz.trace import events as e
from tests.analysis.pass_model import Model
from tests.analysis.random_passes import random_trace

SEEDS = [
    *range(6),
    *(pytest.param(seed, marks=pytest.mark.stress) for seed in range(6, 100)),
]
PARTS = (
    *("running_ns", "elsewhere_ns", "engine_ns", "waking_ns", "dependency_ns"),
    *("no_work_ns", "stream_ns", "unknown_ns"),
)


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed {seed}")
def recorded(request):
    trace = random_trace(request.param, num_devices=1 + request.param % 4)
    task = trace.tasks[0]
    return find_utilization(trace, task), Model(trace, task)


def parts(worker):
    found = {name: getattr(worker, name) for name in PARTS}
    return {name: took_ns for name, took_ns in found.items() if took_ns}


def test_the_parts_of_a_worker_are_the_duration_of_the_pass(recorded):
    utilization, model = recorded

    assert utilization.duration_ns == model.times[-1]
    for worker in utilization.threads:
        assert sum(parts(worker).values()) == utilization.duration_ns


def test_each_worker_is_known_by_the_nodes_that_it_ran(recorded):
    utilization, model = recorded
    threads, ran = Counter(), Counter()
    for key, end in model.runs().items():
        threads[model.events[end].thread] += 1
        ran[model.events[end].thread] += model.own_time(key)

    told = {one.thread: one for one in utilization.threads if one.num_runs}
    assert {thread: one.num_runs for thread, one in told.items()} == threads
    assert {thread: one.running_ns for thread, one in told.items()} == ran
    assert utilization.work_ns == sum(ran.values())


def test_a_worker_is_idle_until_somebody_pushes_what_it_runs_next(recorded):
    utilization, model = recorded
    idle, waited_for = Counter(), Counter()
    for i, one in enumerate(model.events):
        cause = model.latest(i)
        if i and cause != model.on_thread[i]:
            ns = model.times[cause] - model.times[model.on_thread[i]]
            idle[one.thread] += ns
            if model.owner[cause]:
                waited_for[model.owner[cause]] += ns

    for worker in utilization.threads:
        assert worker.dependency_ns == idle[worker.thread]
    for one in utilization.waited_for:
        assert one.waited_ns == waited_for[one.task, one.node]
    assert (
        sorted((one.waited_ns for one in utilization.waited_for), reverse=True)
        == (sorted(waited_for.values(), reverse=True)[: len(utilization.waited_for)])
    )


def test_the_longest_chain_is_found_by_trying_all(recorded):
    """By recursion, from a node back to all that gave it a gradient."""
    utilization, model = recorded
    given, callers = {}, {}
    for i, one in enumerate(model.events):
        if isinstance(one, e.GradientBuffered | e.TaskPushed):
            is_pushed = isinstance(one, e.TaskPushed)
            producer = one.task, one.pushed_by if is_pushed else one.producer
            if producer[1] >= 0:
                ran = so_far(model, producer, i)
                given.setdefault((one.task, one.node), []).append((producer, ran))
        if isinstance(one, e.TaskBegun) and i:
            callers.setdefault(model.owner[i], []).append(one.task)
    begins = {}

    def inside(key):
        return sum(chain(task) for task in callers.get(key, ()))

    def begin(key):
        if key not in begins:
            came = (begin(one) + inside(one) + ran for one, ran in given.get(key, ()))
            begins[key] = max(came, default=0)
        return begins[key]

    def chain(task):
        keys = [key for key in model.runs() if key[0] == task]
        return max(begin(key) + inside(key) + model.own_time(key) for key in keys)

    assert utilization.span_ns == chain(utilization.task)
    assert utilization.span_ns <= utilization.duration_ns
    assert utilization.parallelism <= utilization.possible_parallelism


def so_far(model, key, until):
    return sum(
        model.times[i] - model.times[model.on_thread[i]]
        for i in range(1, until + 1)
        if model.owner[i] == key
    )


def test_of_one_thread_all_is_told(pair):
    story, *_ = pair

    utilization = find_utilization(story.trace(), 7)

    (worker,) = utilization.threads
    assert parts(worker) == {"running_ns": 65, "engine_ns": 35}
    assert (utilization.work_ns, utilization.parallelism) == (65, 0.65)


def test_of_another_thread_it_is_told_what_it_waited_for_and_when_it_was_done(
    story, device
):
    two, three = story.node(2), story.node(3)
    one = story.node(1, two, three)
    story.begin(7, [one, two, three], at=0)
    story.take(7, one, at=(5, 6, 10))
    story.give(7, three, one, at=20, remaining=0)
    story.push(7, three, at=21, queue=2, pushed_by=one)
    device(lambda: story.waited(500, until=25))
    device(lambda: story.pop(7, three, at=27, queue=2))
    device(lambda: story.start(7, three, at=30))
    story.give(7, two, one, at=40, remaining=0)
    story.push(7, two, at=41, pushed_by=one)
    story.complete(7, one, at=50)
    story.pop(7, two, at=55)
    story.start(7, two, at=60)
    device(lambda: story.complete(7, three, at=70))
    story.complete(7, two, at=90)
    story.end(7, at=100)

    utilization = find_utilization(story.trace(), 7)

    caller, other = utilization.threads
    assert parts(caller) == {"running_ns": 40 + 30, "engine_ns": 10 + 10 + 10}
    assert parts(other) == {
        "dependency_ns": 21,
        "waking_ns": 4,
        "engine_ns": 5,
        "running_ns": 40,
        "no_work_ns": 30,
    }
    assert [(one.node, one.waited_ns) for one in other.waited_for] == [(1, 21)]
    # Node 3 is pushed 11 after node 1 began and takes 40, node 2 after 31 and takes 30.
    assert (utilization.work_ns, utilization.span_ns) == (110, 61)


def test_a_thread_waits_for_a_device_and_the_device_for_a_launch(story):
    node = story.node(1)
    story.begin(7, [node], at=0)
    story.take(7, node, at=(5, 6, 7))
    story.kernel(1, "sim:0/0", at=10, ran=(15, 60))
    story.record(5, "sim:0/0")
    story.wait(5, "sim:1/0")
    story.kernel(2, "sim:1/0", at=20, ran=(62, 80))
    story.now = 1_000 + 90
    story.recorder.stream_synchronized("sim:1/0")
    story.complete(7, node, at=95)
    story.end(7, at=100)

    utilization = find_utilization(story.trace(), 7)

    (worker,) = utilization.threads
    assert parts(worker) == {"running_ns": 13 + 5, "stream_ns": 70, "engine_ns": 12}
    assert [
        (one.device, one.busy_ns, one.stream_ns, one.starting_ns, one.idle_ns)
        for one in utilization.devices
    ] == [("sim:0", 45, 0, 5, 50), ("sim:1", 18, 40, 2, 40)]


def test_a_thread_that_runs_nodes_of_another_pass_is_busy_elsewhere(story, device):
    node, other = story.node(1), story.node(2)
    story.begin(8, [other], at=-50)
    story.begin(7, [node], at=0)
    device(lambda: story.start(8, other, at=2))
    story.push(7, node, at=5, queue=2)
    device(lambda: story.complete(8, other, at=50))
    device(lambda: story.pop(7, node, at=55, queue=2))
    device(lambda: story.ran(7, node, at=60, until=90))
    story.end(7, at=100)

    _, worker = find_utilization(story.trace(), 7).threads

    assert parts(worker) == {
        "unknown_ns": 2,
        "elsewhere_ns": 48,
        "engine_ns": 10,
        "running_ns": 30,
        "no_work_ns": 10,
    }


def test_of_a_pass_that_was_cut_a_thread_runs_on_to_the_last_event(story, device):
    one, two = story.node(1), story.node(2)
    story.begin(7, [one, two], at=0)
    story.take(7, one, at=(5, 6, 7))
    story.push(7, two, at=20, queue=2, pushed_by=one)
    device(lambda: story.pop(7, two, at=30, queue=2))

    utilization = find_utilization(story.trace(), 7)

    assert (utilization.status, utilization.duration_ns) == ("unfinished", 30)
    assert parts(utilization.threads[0]) == {"engine_ns": 7, "running_ns": 23}


def test_the_document_is_the_utilization_under_its_schema(pair):
    story, *_ = pair
    utilization = find_utilization(story.trace(), 7)

    document = document_of(utilization)

    assert document.pop("schema") == "gradviz.utilization"
    assert document.pop("version") == 1
    assert document == msgspec.to_builtins(utilization, str_keys=True)


#: What a thread that runs a node of another pass tells first while pass 0 runs.
IN_THE_NODE = {
    "launches": lambda story, other: (
        story.kernel(1, "sim:0/0", at=20, ran=(21, 25)),
        story.recorder.stream_synchronized("sim:0/0"),
    ),
    "calls for a pass": lambda story, other: (
        story.begin(8, [other], at=20, parent=7),
        story.end(8, at=30),
        story.recorder.reentrant_left(8, 1),
    ),
}


@pytest.mark.parametrize("how", IN_THE_NODE)
def test_a_thread_may_be_inside_of_another_pass_when_a_pass_begins(story, device, how):
    node, other = story.node(1), story.node(2)
    device(lambda: story.begin(7, [other], at=0))
    device(lambda: story.start(7, other, at=10))
    story.begin(0, [node], at=12)
    story.push(0, node, at=14, queue=2)
    device(lambda: IN_THE_NODE[how](story, other))
    device(lambda: story.complete(7, other, at=50))
    device(lambda: story.pop(0, node, at=52, queue=2))
    device(lambda: story.ran(0, node, at=53, until=60))
    device(lambda: story.end(0, at=61))
    trace = story.trace()

    assert all(one.unknown_ns == 0 for one in find_utilization(trace, 0).threads)
    path = find_critical_path(trace, 0)
    assert [one.kind for one in path.segments if one.kind == "unknown"] == []
    assert (path.segments[0].task, path.segments[0].node) == (7, other.id)


def test_a_threads_time_from_an_earlier_pass_to_its_first_node_is_unknown(
    story, device
):
    node, other = story.node(1), story.node(2)
    device(lambda: story.begin(7, [other], at=0))
    device(lambda: story.ran(7, other, at=1, until=10))
    device(lambda: story.end(7, at=11))
    story.begin(0, [node], at=12)
    story.push(0, node, at=14, queue=2)
    device(lambda: story.ran(0, node, at=53, until=60))
    device(lambda: story.end(0, at=61))

    (_, worker) = find_utilization(story.trace(), 0).threads
    assert worker.unknown_ns == 41


def test_a_kernel_that_is_launched_twice_is_one(story):
    story.begin(0, [story.node(1)], at=0)
    for at in (5, 30):
        story.kernel(1, "sim:0/0", at=at, ran=(10, 20))
    story.recorder.stream_synchronized("sim:0/0")
    story.end(0, at=50)

    (device,) = find_utilization(story.trace(), 0).devices
    assert (device.num_kernels, device.busy_ns) == (1, 10)
