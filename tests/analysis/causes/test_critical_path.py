from collections import Counter
from itertools import pairwise

import msgspec
import pytest

from gradviz.analysis.causes import critical_path
from gradviz.analysis.causes.causal_graph import find_causes
from gradviz.analysis.causes.critical_path import document_of, find_critical_path
from gradviz.trace.format.model import Trace
from tests.analysis.conftest import START_NS
from tests.analysis.pass_model import Model
from tests.analysis.random_passes import random_trace

SEEDS = [
    *range(8),
    *(pytest.param(seed, marks=pytest.mark.stress) for seed in range(8, 200)),
]


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed {seed}")
def recorded(request):
    trace = random_trace(request.param, num_devices=1 + request.param % 4)
    return trace, [(task, Model(trace, task)) for task in trace.tasks]


def segments(path):
    return [(one.kind, one.node, one.begin_ns, one.end_ns) for one in path.segments]


def if_free(path):
    return {one.node: one.if_free_ns for one in path.nodes}


def slack(path):
    return {one.node: one.slack_ns for one in path.nodes}


def own_nodes(trace, task, model):
    """The nodes that ran in a pass and in those called from inside it."""
    tasks = find_causes(trace, task).tasks
    return {key: end for key, end in model.runs().items() if key[0] in tasks}


def test_the_path_of_a_random_graph_is_found_event_by_event_too(recorded):
    trace, models = recorded
    for task, model in models:
        path = find_critical_path(trace, task)
        nodes = own_nodes(trace, task, model)
        busy, told = Counter(), Counter()
        for begin, end in pairwise(model.path()):
            # From one thread to another no node ran.
            own = model.owner[end] if model.on_thread[end] == begin else None
            took = model.times[end] - model.times[begin]
            busy[own if own in nodes else None] += took
        for one in path.segments:
            ran = one.kind in {"running", "occupied"}
            key = (one.task, one.node) if ran else None
            told[key if key in nodes else None] += one.took_ns

        assert +told == +busy


def test_the_segments_lie_end_to_end_and_are_the_pass(recorded):
    trace, models = recorded
    for task, model in models:
        path = find_critical_path(trace, task)

        assert path.duration_ns == model.times[-1]
        assert path.segments[0].begin_ns == 0
        assert path.segments[-1].end_ns == path.duration_ns
        for one, other in pairwise(path.segments):
            assert one.end_ns == other.begin_ns
        assert sum(one.took_ns for one in path.segments) == path.duration_ns
        assert sum(path.totals.values()) == path.duration_ns


def test_with_nothing_changed_the_model_takes_as_long_as_the_pass_did(recorded):
    trace, models = recorded
    for task, model in models:
        causes = find_causes(trace, task)
        ways = {}
        for source, target in zip(causes.source, causes.target, strict=True):
            ways.setdefault(target, []).append(source)
        reached = [0]
        for moment in range(1, len(causes.t_ns)):
            waited_for = (causes.before[moment], *ways.get(moment, ()))
            came = max(reached[one] for one in waited_for)
            reached.append(came + causes.took_ns[moment])

        assert reached == (causes.t_ns - causes.t_ns[0]).tolist()
        assert model.duration() == model.times[-1]


def test_without_a_node_the_pass_takes_what_going_through_all_events_anew_says(
    recorded,
):
    trace, models = recorded
    for task, model in models:
        path = find_critical_path(trace, task)

        nodes = own_nodes(trace, task, model)
        assert {(one.task, one.node) for one in path.nodes} == set(nodes)
        for one in path.nodes:
            assert one.if_free_ns == model.duration(free=(one.task, one.node))
            assert one.own_ns == model.own_time((one.task, one.node))


def test_slack_is_what_a_node_can_run_longer_and_not_a_nanosecond_more(recorded):
    trace, models = recorded
    for task, model in models:
        path = find_critical_path(trace, task)
        ends = model.runs()
        for one in path.nodes[:: max(len(path.nodes) // 10, 1)]:
            last = ends[one.task, one.node]
            while model.owner[model.on_thread[last]] == (one.task, one.node):
                last = model.on_thread[last]
            as_it_was = model.duration(later=last, by=one.slack_ns)
            longer = model.duration(later=last, by=one.slack_ns + 1)

            assert (as_it_was, longer) == (path.duration_ns, path.duration_ns + 1)


def test_of_a_chain_each_node_is_a_piece_of_the_path(pair):
    story, *_ = pair

    path = find_critical_path(story.trace(), 7)

    assert segments(path) == [
        ("set-up", -1, 0, 10),
        ("engine", -1, 10, 20),
        ("running", 2, 20, 80),
        ("engine", -1, 80, 90),
        ("running", 1, 90, 95),
        ("engine", -1, 95, 100),
    ]
    assert (path.status, path.duration_ns, path.is_whole) == ("completed", 100, True)
    assert if_free(path) == {2: 40, 1: 95}
    assert slack(path) == {2: 0, 1: 0}


def test_a_node_that_finds_its_thread_busy_waits_for_what_that_runs(story, device):
    """Node 1 gives its gradient to 3, on a thread that runs 4, of another pass."""
    three, four = story.node(3), story.node(4)
    one = story.node(1, three)
    story.begin(8, [four], at=-50)
    story.begin(7, [one, three], at=0)
    device(lambda: story.start(8, four, at=2))
    story.take(7, one, at=(5, 6, 10))
    story.push(7, three, at=22, queue=2, pushed_by=one)
    story.complete(7, one, at=30)

    def work():
        story.complete(8, four, at=70)
        story.pop(7, three, at=78, queue=2)
        story.ran(7, three, at=80, until=190)

    device(work)
    story.end(7, at=200)

    path = find_critical_path(story.trace(), 7)

    assert segments(path) == [
        ("unknown", -1, 0, 2),
        ("occupied", 4, 2, 70),
        ("engine", -1, 70, 80),
        ("running", 3, 80, 190),
        ("engine", -1, 190, 200),
    ]
    assert if_free(path) == {1: 200, 3: 90}
    # From 70 on it is in the way: then node 3 would have to wait for it.
    assert slack(path) == {1: 70 - 22, 3: 0}


def test_a_node_that_finds_its_thread_asleep_waits_for_who_made_it_ready(story, device):
    """Node 1 gives its gradient to 2 on its own thread, and to 3 on another one."""
    two, three = story.node(2), story.node(3)
    one = story.node(1, two, three)
    story.begin(7, [one, two, three], at=0)
    story.take(7, one, at=(5, 6, 10))
    story.push(7, two, at=20, pushed_by=one)
    story.push(7, three, at=22, queue=2, pushed_by=one)
    story.complete(7, one, at=30)
    story.pop(7, two, at=35)
    story.start(7, two, at=37)
    device(lambda: story.waited(500, until=40))
    story.complete(7, two, at=60)

    def work():
        story.pop(7, three, at=78, queue=2)
        story.ran(7, three, at=80, until=190)

    device(work)
    story.end(7, at=200)

    path = find_critical_path(story.trace(), 7)

    assert segments(path) == [
        ("set-up", -1, 0, 5),
        ("engine", -1, 5, 10),
        ("running", 1, 10, 22),
        ("waking up", -1, 22, 40),
        ("engine", -1, 40, 80),
        ("running", 3, 80, 190),
        ("engine", -1, 190, 200),
    ]
    assert if_free(path) == {1: 188, 2: 200, 3: 90}
    assert slack(path) == {1: 0, 2: 190 - 60, 3: 0}


def test_without_the_node_that_came_last_the_next_one_waits_for_another(story, device):
    """Node 3 waits for 1, whose gradient comes at 50, and for 2, whose comes at 80."""
    three = story.node(3)
    one, two = story.node(1, three), story.node(2, three)
    story.begin(7, [one, two, three], at=0)
    story.push(7, one, at=5, queue=2)
    story.push(7, two, at=6)
    story.pop(7, two, at=8)
    device(lambda: story.pop(7, one, at=9, queue=2))
    device(lambda: story.start(7, one, at=10))
    story.start(7, two, at=11)
    device(lambda: story.give(7, three, one, at=50, remaining=1))
    device(lambda: story.complete(7, one, at=52))
    story.give(7, three, two, at=80, remaining=0)
    story.push(7, three, at=81, pushed_by=two)
    story.complete(7, two, at=82)
    story.pop(7, three, at=83)
    story.ran(7, three, at=84, until=90)
    story.end(7, at=100)

    path = find_critical_path(story.trace(), 7)

    # Then its thread takes node 3 when the gradient of node 1 has come.
    assert if_free(path)[2] == 50 + (100 - 82)
    assert slack(path)[1] == 82 - 50


def test_a_thread_that_waits_for_a_stream_waits_for_its_kernels(story):
    node = story.node(1)
    story.begin(7, [node], at=0)
    story.take(7, node, at=(5, 6, 7))
    story.kernel(1, "sim:0/0", at=10, ran=(15, 60))
    story.kernel(2, "sim:0/0", at=20, ran=(62, 80))
    story.now = 1_000 + 90
    story.recorder.stream_synchronized("sim:0/0")
    story.complete(7, node, at=95)
    story.end(7, at=100)

    path = find_critical_path(story.trace(), 7)

    assert segments(path) == [
        ("set-up", -1, 0, 5),
        ("engine", -1, 5, 7),
        ("running", 1, 7, 10),
        ("stream", -1, 10, 15),
        ("kernel", 1, 15, 60),
        ("stream", -1, 60, 62),
        ("kernel", 1, 62, 80),
        ("stream", 1, 80, 90),
        ("running", 1, 90, 95),
        ("engine", -1, 95, 100),
    ]
    assert if_free(path) == {1: 100 - 3 - 45 - 18 - 5}


def test_a_kernel_waits_for_what_its_stream_was_made_to_wait_for(story):
    node = story.node(1)
    story.begin(7, [node], at=0)
    story.take(7, node, at=(5, 6, 7))
    story.kernel(1, "sim:0/0", at=10, ran=(15, 60))
    story.record(5, "sim:0/0")
    story.wait(5, "sim:0/1")
    story.kernel(2, "sim:0/1", at=20, ran=(62, 80))
    story.now = 1_000 + 90
    story.recorder.device_synchronized("sim:0")
    story.complete(7, node, at=95)
    story.end(7, at=100)

    path = find_critical_path(story.trace(), 7)

    assert [one.stream for one in path.segments if one.kind == "kernel"] == [
        "sim:0/0",
        "sim:0/1",
    ]


def test_of_a_pass_that_failed_the_path_leads_to_the_error(story):
    node = story.node(1)
    story.begin(7, [node], at=0)
    story.take(7, node, at=(5, 6, 7))
    story.fail(7, node, "no", at=50)

    path = find_critical_path(story.trace(), 7)

    assert (path.status, path.duration_ns) == ("failed", 51)
    assert ("running", 1, 7, 50) in segments(path)


def test_of_a_pass_that_was_cut_the_path_leads_to_the_last_event(pair):
    story, root, leaf = pair
    story.begin(9, [root, leaf], at=200)
    story.take(9, root, at=(205, 206, 210))

    path = find_critical_path(story.trace(), 9)

    assert (path.status, path.duration_ns) == ("unfinished", 10)
    assert sum(path.totals.values()) == 10
    assert path.nodes == ()


def test_of_very_long_paths_the_middle_is_told_as_one(story, monkeypatch):
    monkeypatch.setattr(critical_path, "MAX_SEGMENTS", 4)
    nodes = [story.node(number) for number in range(10)]
    story.begin(7, nodes, at=0)
    for number, node in enumerate(nodes):
        story.take(
            7,
            node,
            at=(10 * number + 10, 10 * number + 11, 10 * number + 12),
            until=10 * number + 19,
        )
    story.end(7, at=120)

    path = find_critical_path(story.trace(), 7)

    assert [one.kind for one in path.segments] == [
        *("set-up", "engine", "omitted", "running", "engine")
    ]
    assert path.num_segments == 22
    for one, other in pairwise(path.segments):
        assert one.end_ns == other.begin_ns


def test_it_tells_what_is_usual_for_a_node_in_passes_of_the_same_shape(story):
    for task, took in ((0, 60), (1, 100), (2, 300)):
        node = story.node(task + 1)
        begin = 1_000 * task
        story.begin(task, [node], at=begin)
        story.take(
            task, node, at=(begin + 10, begin + 20, begin + 30), until=begin + 30 + took
        )
        story.end(task, at=begin + 500)

    path = find_critical_path(story.trace(), 2)

    assert path.num_alike == 3
    assert [(one.node, one.usual_ns) for one in path.nodes] == [(3, 100)]


def test_of_the_only_pass_of_its_shape_nothing_is_usual(pair):
    story, *_ = pair

    path = find_critical_path(story.trace(), 7)

    assert path.num_alike == 1
    assert {one.usual_ns for one in path.nodes} == {None}


def test_the_document_is_the_path_under_its_schema(pair):
    story, *_ = pair
    path = find_critical_path(story.trace(), 7)

    document = document_of(path)

    assert document.pop("schema") == "gradviz.critical"
    assert document.pop("version") == 1
    assert document == msgspec.to_builtins(path, str_keys=True)


def test_a_pass_of_which_only_its_begin_is_there_has_no_path(story):
    story.begin(7, [], at=0)
    trace = story.trace()
    begun = trace.columns["task_begun"]
    columns = {kind: table.at(slice(0)) for kind, table in trace.columns.items()}
    cut = Trace(
        path=None,
        header=trace.header,
        clocks=trace.clocks,
        nodes=trace.nodes,
        threads=trace.threads,
        queues=trace.queues,
        losses=trace.losses,
        strings=trace.strings,
        columns={**columns, "task_begun": begun},
    )

    path = find_critical_path(cut, 7)

    assert (path.segments, path.nodes, path.totals, path.duration_ns) == ((), (), {}, 0)


@pytest.fixture
def distributed(story, device):
    """Pass 1 of worker 0 sends gradients to worker 1, whose pass 2 takes longer."""
    receive = story.node(1, name="RecvRpcBackward")
    leaf = story.node(2, name="AccumulateGrad")
    send = story.node(3, leaf, name="SendRpcBackward")
    message = (9, 5, 4)  # its number, its context, its pass

    def elsewhere():
        story.now = START_NS + 50
        story.recorder.message_received(-1, send.id, 1, 0, *message, 12)
        story.begin(2, [send, leaf], at=52)
        story.take(2, send, at=(55, 56, 60), until=70)
        story.take(2, leaf, at=(65, 72, 75), until=175)
        story.end(2, at=180)

    story.begin(1, [receive], at=0)
    story.take(1, receive, at=(5, 6, 10))
    story.now = START_NS + 30
    story.recorder.message_sent(1, receive.id, 0, 1, *message, 12)
    story.complete(1, receive, at=40)
    device(elsewhere)
    story.end(1, at=200)
    return story.trace()


def test_the_path_of_a_distributed_pass_leads_over_its_messages(distributed):
    path = find_critical_path(distributed, 1)

    assert segments(path) == [
        ("set-up", -1, 0, 5),
        ("engine", -1, 5, 10),
        ("running", 1, 10, 30),
        ("message", -1, 30, 50),
        ("engine", -1, 50, 52),
        ("set-up", -1, 52, 55),
        ("engine", -1, 55, 60),
        ("running", 3, 60, 70),
        ("engine", -1, 70, 75),
        ("running", 2, 75, 175),
        ("engine", -1, 175, 180),
        ("engine", -1, 180, 200),
    ]
    assert path.totals["message"] == 20
    assert slack(path) == {1: 0, 2: 0, 3: 0}
    assert if_free(path)[2] == 100


def test_a_distributed_pass_ends_where_the_last_worker_is_done(story, device):
    receive, send = story.node(1), story.node(2)
    message = (9, 5, 4)  # its number, its context, its pass

    def elsewhere():
        story.now = START_NS + 20
        story.recorder.message_received(-1, send.id, 1, 0, *message, 12)
        story.begin(2, [send], at=25)
        story.start(2, send, at=30)

    story.begin(1, [receive], at=0)
    story.start(1, receive, at=5)
    story.now = START_NS + 10
    story.recorder.message_sent(1, receive.id, 0, 1, *message, 12)
    story.complete(1, receive, at=15)
    device(elsewhere)
    story.end(1, at=40)
    device(lambda: story.complete(2, send, at=90))
    device(lambda: story.end(2, at=100))
    trace = story.trace()

    path = find_critical_path(trace, 1)
    assert (path.duration_ns, path.num_nodes, path.status) == (100, 2, "completed")
    assert path.segments[-2].node == send.id
    assert find_critical_path(trace, 2) == path  # a part means its pass


def test_of_a_distributed_pass_it_is_told_how_much_of_the_path_is_on_which_worker(
    distributed,
):
    path = find_critical_path(distributed, 1)

    assert path.workers == {0: 30 + 20, 1: 180 - 50}


def test_a_pass_of_one_worker_names_none(pair):
    story, *_ = pair

    assert find_critical_path(story.trace(), 7).workers == {}
