"""One pass, several workers: the same pass in every view."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing

import msgspec
import pytest

import gradviz as gv
from gradviz.analysis.causes.critical_path import find_critical_path
from gradviz.analysis.causes.simulation import simulate
from gradviz.analysis.causes.utilization import find_utilization
from gradviz.analysis.changes.pass_comparison import compare
from gradviz.analysis.findings.advice import build_advice
from gradviz.analysis.graphs.backward_graph import build_graph
from gradviz.analysis.memory.memory_use import build_memory
from gradviz.analysis.moments.event_replay import Replay
from gradviz.analysis.moments.explanation import explain
from gradviz.analysis.moments.story import Filter
from gradviz.analysis.nodes.execution_order import execution_orders
from gradviz.analysis.nodes.predicted_order import predicted_orders
from gradviz.analysis.queues.queue_activity import build_queues
from gradviz.analysis.queues.queue_contents import contents_at
from gradviz.analysis.queues.queues_over_time import queues_over_time
from gradviz.analysis.races.stream_order import stream_order
from gradviz.analysis.tables.passes import passes, select_task
from gradviz.analysis.tables.worker_parts import MAX_PARTS, numbers_of, worker_parts
from gradviz.analysis.timelines.timeline_lanes import build_timeline
from gradviz.analysis.training.steps import find_steps
from gradviz.analysis.training.summary import summarize
from gradviz.distributed import autograd, rpc
from gradviz.export import chrome, sqlite
from gradviz.export.excerpt import excerpt
from gradviz.trace.reading.reader import parse_trace
from tests.analysis.conftest import START_NS
from tests.analysis.sent_messages import received, sent
from tests.cli import bad_files
from tests.distributed.called import leaf
from tests.distributed.company import idle
from tests.distributed.connected import Connected


@rpc.register
def onwards(x, others, calls=False):
    """Part of the way there, and the rest on other workers."""
    if others:
        return rpc.rpc_sync(others[0], onwards, (x.tanh(), others[1:], calls))
    return Calls.apply(x) if calls else x.exp()


@rpc.register
def wrong(x):
    return Fails.apply(x)


class Calls(gv.autograd.Function):
    """Runs a pass inside of a pass."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        with gv.enable_grad():
            leaf(1, 2).exp().sum().backward()
        return gradient


class Fails(gv.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("no gradient here")


def chain(steps=2):
    """There and back again, through all workers."""
    for _ in range(steps):
        with autograd.context() as context_id:
            y = rpc.rpc_sync(1, onwards, (leaf(1, 2) * 2, [2, 0]))
            autograd.backward(context_id, [y.sum()], timeout=60)


def wide():
    """Two workers at once, the results of which come together; one pass is local."""
    leaf(1, 2).sum().backward()
    with autograd.context() as context_id:
        x = leaf(1, 2)
        calls = [rpc.rpc_async(to, onwards, (x * to, [])) for to in (1, 2, 1)]
        total = sum(one.wait().sum() for one in calls)
        autograd.backward(context_id, [total], timeout=60)
    leaf(1, 2).sum().backward()


def nested():
    """A worker calls for a pass of its own inside of its part."""
    with autograd.context() as context_id:
        y = rpc.rpc_sync(1, onwards, (leaf(1, 2), [2], True))
        autograd.backward(context_id, [y.sum()], timeout=60)


def failing():
    """The first of two passes fails on another worker."""
    with autograd.context() as context_id:
        y = rpc.rpc_sync(1, wrong, (leaf(1, 2),))
        with pytest.raises(RuntimeError, match="no gradient"):
            autograd.backward(context_id, [y.sum()], timeout=60)
    chain(steps=1)


def recorded(*programs):
    """A recording in which workers begin anew for each program."""
    with gv.record() as recording:
        for program in programs:
            Connected("inproc").run(program, idle, idle)
    return recording.trace


PROGRAMS = [(chain,), (wide,), (nested,), (failing,), (chain, wide, chain)]


@pytest.fixture(
    params=PROGRAMS, ids=lambda some: "_".join(one.__name__ for one in some)
)
def trace(request):
    return recorded(*request.param)


def slices_of(trace):
    document = msgspec.json.decode(b"".join(chrome.parts(trace)))
    return [one for one in document["traceEvents"] if one.get("cat") == "pass"]


def test_all_views_tell_the_same_of_a_pass(trace, tmp_path):
    (tmp_path / "trace.db").write_bytes(b"".join(sqlite.parts(trace)))
    with closing(sqlite3.connect(tmp_path / "trace.db")) as database:
        table = dict(database.execute("SELECT task, took_ns FROM passes"))
        ran = dict(database.execute("SELECT task, count(*) FROM runs GROUP BY task"))
    drawn = {
        one["args"]["task"]: one["dur"]
        for one in slices_of(trace)
        if not one["name"].startswith("part")
    }
    summary = {one.task: one for one in summarize(trace).passes}
    every = passes(trace)
    orders = execution_orders(trace, [one.task for one in every])
    assert set(table) == set(drawn) == {*summary} == {one.task for one in every}
    for one, order in zip(every, orders, strict=True):
        task = one.task
        timeline = build_timeline(trace, [task])
        inside = [each.task for each in timeline.passes]
        nodes = {each.task: summary[each.task].runs for each in timeline.passes}
        assert order.num_nodes == len(order.rows) == nodes[task] == ran[task]
        (mine,) = [each for each in timeline.passes if each.task == task]
        whole = {
            summary[task].duration_ns,
            mine.duration_ns,
            find_critical_path(trace, task).duration_ns,
            find_utilization(trace, task).duration_ns,
            build_memory(trace, [task]).took_ns,
            queues_over_time(trace, [task]).took_ns,
            build_graph(trace, task).duration_ns,
            table[task],
        }
        if one.status == "completed":
            whole.add(simulate(trace, task).measured_ns)
        assert whole == {one.duration_ns}
        assert drawn[task] == pytest.approx(one.duration_ns / 1000)
        assert sum(nodes.values()) == sum(lane.num_runs for lane in timeline.lanes)
        graph = build_graph(trace, task)
        assert sum(node.order is not None for node in graph.nodes) == nodes[task]
        utilization = find_utilization(trace, task)
        ended = sum(each.num_runs for each in utilization.threads)
        # What runs on another worker may outlast a pass that fails.
        assert ended == sum(nodes.values()) or one.status == "failed"
        assert ended <= sum(nodes.values())
        for view in (build_queues, build_memory, queues_over_time):
            assert [*view(trace, [task]).tasks] == inside
        assert [*Replay(trace, Filter(tasks=(task,))).passes] == inside


def numbers_in(view, task):
    """Yield the pass, the node and its number of all that a view tells of nodes."""
    if isinstance(view, Mapping):
        if {"node", "index"} <= {*view}:
            yield view.get("task", task), view["node"], view["index"]
        for name in ("predicted", "actual", "by"):
            if f"{name}_ran" in view:
                yield task, view[name], view[f"{name}_ran"]
        if "by_index" in view:
            assert len(view["by"]) == len(view["by_index"])
        view = [*view.values()]
    if isinstance(view, Sequence) and not isinstance(view, str):
        for part in view:
            yield from numbers_in(part, task)


def test_each_table_numbers_nodes_as_the_order_does(trace):
    every = [one.task for one in passes(trace)]
    known = {
        (order.task, row.node): row.index
        for order in execution_orders(trace, every)
        for row in order.rows
    }
    told = {-1: [*numbers_in(msgspec.to_builtins(summarize(trace)), -1)]}
    advice = build_advice(trace, stream_order(trace))
    told[-1] += numbers_in(msgspec.to_builtins(advice), -1)
    for task in every:
        predicted = list(predicted_orders(trace, [task]))
        views = (
            find_critical_path(trace, task),
            find_utilization(trace, task),
            build_queues(trace, [task]),
            contents_at(trace, [task], 0),
            compare(trace, task, trace, task),
            [one.divergences for one in predicted],
        )
        told[task] = [*numbers_in(msgspec.to_builtins(views), task)]
        told[task] += [
            (task, row.node, row.ran) for one in predicted for row in one.rows
        ]
    assert all(told.values())
    wrong = [
        one for some in told.values() for one in some if known.get(one[:2]) != one[2]
    ]
    assert wrong == []


def test_the_numbers_of_nodes_are_those_of_the_order_on_all_workers(trace):
    for order in execution_orders(trace, select_task(trace, "all")):
        numbers = {row.node: row.index for row in order.rows}
        graph = build_graph(trace, order.task)
        spans = [
            span
            for lane in build_timeline(trace, [order.task]).lanes
            for span in lane.spans
            if span.kind == "node" and span.task == order.task
        ]
        assert [row.index for row in order.rows] == list(range(order.num_nodes))
        assert {span.node: span.index for span in spans} == numbers
        assert {
            node.id: node.order for node in graph.nodes if node.order is not None
        } == numbers


def test_a_row_of_the_order_says_which_worker_ran_the_node():
    trace = recorded(chain)
    (order,) = execution_orders(trace, select_task(trace, "last"))

    workers = [row.worker for row in order.rows]
    assert sorted({*workers}) == [0, 1, 2]
    assert workers[0] == 0
    (mine,) = execution_orders(trace, [order.task], filters=[("worker", "1")])
    assert {row.worker for row in mine.rows} == {1}
    assert len(mine.rows) == workers.count(1)


def test_a_program_makes_as_many_passes_and_steps_as_it_calls_for():
    trace = recorded(lambda: chain(steps=4))

    assert len(passes(trace)) == len(find_steps(trace).steps) == 4
    assert all(one.workers == (0, 1, 2) for one in summarize(trace).passes)
    assert all(one.location for one in summarize(trace).passes)


def test_a_part_means_its_pass_wherever_a_pass_is_asked_for():
    trace = recorded(chain)
    for one in passes(trace):
        for part in one.parts:
            assert select_task(trace, str(part)) == (one.task,)
            assert find_critical_path(trace, part).task == one.task
            assert build_timeline(trace, [part]) == build_timeline(trace, [one.task])


def test_an_explanation_counts_times_from_the_begin_of_the_pass():
    trace = recorded(chain)
    one = passes(trace)[-1]
    (order,) = execution_orders(trace, [one.task])
    for row in order.rows:
        part = next(
            part for part in one.parts if worker_parts(trace)[part].worker == row.worker
        )
        told = explain(trace, part, row.node)
        assert told.task == one.task
        assert told.started_ns == row.start_ns - one.begin_ns


def test_workers_that_begin_anew_share_no_pass_with_those_before():
    trace = recorded(chain, chain)

    assert [len(one.parts) for one in passes(trace)] == [3, 3, 3, 3]


def test_an_excerpt_of_a_pass_has_all_of_its_parts():
    trace = recorded(chain)
    one = passes(trace)[-1]

    (alone,) = passes(excerpt(trace, [one.task]))
    assert alone == one


def late_worker(story, device, *, has_end=True):
    """Worker 0 calls for pass 1 and is done with it before worker 1 is."""
    receive, send = story.node(1), story.node(2)

    def elsewhere():
        received(story, 20, send.id, (0, 1, 9), pass_id=4)
        story.begin(2, [send], at=25)
        story.start(2, send, at=30)

    story.begin(1, [receive], at=0)
    story.start(1, receive, at=5)
    sent(story, 10, 1, receive.id, (0, 1, 9), pass_id=4)
    story.complete(1, receive, at=15)
    device(elsewhere)
    story.end(1, at=40)
    device(lambda: story.complete(2, send, at=90))
    if has_end:
        device(lambda: story.end(2, at=100))
    return story.trace()


def test_a_pass_ends_when_the_last_worker_is_done(story, device):
    (one,) = passes(late_worker(story, device))

    assert (one.begin_ns, one.end_ns) == (START_NS, START_NS + 100)
    assert (one.parts, one.status) == ((1, 2), "completed")


def test_a_pass_of_which_a_worker_never_ended_is_unfinished(story, device):
    (one,) = passes(late_worker(story, device, has_end=False))

    assert (one.status, one.end_ns) == ("unfinished", None)


def test_a_trace_of_one_worker_has_no_parts_of_others(pair):
    story, *_ = pair

    assert worker_parts(story.trace()) == {}
    assert numbers_of(story.trace(), [7]) == (7,)
    assert [one.parts for one in passes(story.trace())] == [(7,)]


def test_a_holder_of_memory_has_the_same_number_as_in_other_views():
    trace = recorded(chain)
    (order,) = execution_orders(trace, select_task(trace, "last"))
    numbers = {row.node: row.index for row in order.rows}

    holders = build_memory(trace, [order.task]).peak.holders
    assert holders
    assert [one.index for one in holders] == [numbers.get(one.node) for one in holders]
    assert any(one.index is not None for one in holders)


def test_a_pass_has_no_more_parts_than_a_cluster_has_workers():
    trace = parse_trace(bad_files.parts_of_one_pass())

    first = passes(trace, limit=1)[0]
    assert first.parts == (*range(MAX_PARTS),)
    assert len(numbers_of(trace, trace.tasks)) == len(trace.tasks) - MAX_PARTS + 1
    assert passes(trace, tasks=[MAX_PARTS])[0].parts == (MAX_PARTS,)
