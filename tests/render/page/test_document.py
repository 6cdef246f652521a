"""The tables of a page, against the events of the passes replayed one by one."""

import sys
from collections import defaultdict
from pathlib import Path

import pytest

import gradviz as gv
from gradviz import sim
from gradviz.analysis.graphs.backward_graph import build_graph
from gradviz.analysis.memory.allocations import holdings
from gradviz.analysis.memory.memory_use import build_memory
from gradviz.render import style
from gradviz.render.graph.coloring import coloring
from gradviz.render.page.document import build_page, pack_page
from gradviz.render.words.purposes import STACKED
from gradviz.trace.events import (
    GradientBuffered,
    NodeCompleted,
    NodeFailed,
    NodeSkipped,
    NodeStarted,
    TaskPopped,
    TaskPushed,
)
from gradviz.trace.format.model import ThreadDefinition
from gradviz.trace.reading.reader import load_trace
from tests.analysis.conftest import Story

GALLERY = Path(__file__).parents[3] / "docs" / "gallery"


def two_devices():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    a, b = x.to("sim:0"), x.to("sim:1")
    for _ in range(3):
        a, b = a.sin() * a, b.cos() + b
    (a.to("cpu") + b.to("cpu")).sum().backward()


def nested():
    x = gv.tensor([1.0, 2.0], requires_grad=True)

    def inner(y):
        return (y.sin() * y).exp()

    y = gv.utils.checkpoint.checkpoint(inner, x * 2.0, use_reentrant=True)
    y.sum().backward()


def failing():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    y = x.sin()
    y.register_hook(lambda grad: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (y * x).sum().backward()


@pytest.fixture(params=[two_devices, nested, failing])
def trace(request):
    count = sim.device_count()
    sim.set_device_count(2)
    with gv.record() as recording:
        request.param()
    sim.set_device_count(count)
    return recording.trace


def wanted(trace, tasks):
    return [event for event in trace.events() if event.task in set(tasks)]


def test_events_are_those_of_the_passes_in_their_order(trace) -> None:
    page = build_page(trace, trace.tasks)

    events = wanted(trace, trace.tasks)
    kinds = [page.header.kinds[kind] for kind in page.events.kind]
    assert kinds == [snake(type(event).__name__) for event in events]
    origin = min(event.t_ns for event in events)
    assert page.events.at_ns.tolist() == [event.t_ns - origin for event in events]
    assert page.events.thread.tolist() == [event.thread for event in events]
    nodes = page.nodes.id.tolist()
    assert [nodes[at] if at >= 0 else -1 for at in page.events.node] == [
        event.node for event in events
    ]


def test_a_page_is_the_same_after_others_of_its_trace(trace) -> None:
    held = holdings(trace)
    alone = {task: pack_page(build_page(trace, (task,))) for task in trace.tasks}

    for task in reversed(trace.tasks):
        assert pack_page(build_page(trace, (task,), held)) == alone[task]


def test_queues_and_countdowns_at_every_moment_are_those_of_a_replay(trace) -> None:
    page = build_page(trace, trace.tasks)
    over = {
        task: max(
            at
            for at, event in enumerate(wanted(trace, trace.tasks))
            if event.task == task
        )
        for task in trace.tasks
    }
    queues, waiting = defaultdict(list), {}
    for at, event in enumerate(wanted(trace, trace.tasks)):
        key = (event.task, event.node)
        match event:
            case TaskPushed():
                queues[event.queue].append(key)
            case TaskPopped():
                queues[event.queue].remove(key)
            case GradientBuffered():
                waiting[key] = event.remaining
            case NodeStarted() | NodeSkipped():
                waiting.pop(key, None)
        for task in [task for task, last in over.items() if last < at]:
            for content in queues.values():
                content[:] = [one for one in content if one[0] != task]
            waiting = {one: left for one, left in waiting.items() if one[0] != task}

        assert queued_at(page, at) == {
            q: sorted(one) for q, one in queues.items() if one
        }
        assert countdowns_at(page, at) == waiting


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["train.py", "--epochs"], ("train.py", "--epochs")),
        (["/env/ipykernel_launcher.py", "-f", "kernel.json"], ()),
        ([], ()),
    ],
)
def test_a_page_names_the_recorded_program_but_no_kernel_of_notebooks(
    argv, shown, monkeypatch
) -> None:
    monkeypatch.setattr(sys, "argv", argv)
    with gv.record() as recording:
        gv.ones(1, requires_grad=True).sum().backward()

    trace = recording.trace
    assert build_page(trace, [*trace.tasks]).header.argv == shown


def test_runs_begin_and_end_where_their_events_are(trace) -> None:
    page = build_page(trace, trace.tasks)

    expected, open_runs = [], {}
    for at, event in enumerate(wanted(trace, trace.tasks)):
        if isinstance(event, NodeStarted):
            open_runs[event.task, event.node] = len(expected)
            expected.append([event.task, event.node, event.thread, at, -1])
        elif isinstance(event, NodeCompleted | NodeFailed):
            expected[open_runs.pop((event.task, event.node))][-1] = at
    runs, nodes = page.runs, page.nodes.id.tolist()
    found = [
        [page.header.passes[task].task, nodes[node], thread, begin, end]
        for node, task, thread, begin, end in zip(*runs[:5], strict=True)
    ]
    assert found == expected


def test_edges_are_those_of_the_definitions(trace) -> None:
    page = build_page(trace, trace.tasks)

    nodes = page.nodes.id.tolist()
    expected = {
        (node, consumer, input_nr)
        for node in nodes
        for consumer, input_nr in trace.nodes[node].edges
        if consumer >= 0
    }
    found = {
        (nodes[one], nodes[other], nr)
        for one, other, nr in zip(*map(list, page.edges), strict=True)
    }
    assert found == expected


def test_families_are_the_colors_that_a_picture_of_the_graph_has(trace) -> None:
    page = build_page(trace, trace.tasks)
    graph = build_graph(trace, trace.tasks[0])

    colors = coloring(graph, "op").colors
    ids, families = page.nodes.id.tolist(), page.nodes.family.tolist()
    of_page = [*style.FAMILIES, style.LEAF]
    found = {id_: of_page[at] for id_, at in zip(ids, families, strict=True)}
    assert len(set(colors.values())) > 1
    assert {id_: found[id_] for id_ in colors} == colors


def test_a_packed_page_holds_the_values_of_its_tables(trace, unpacked) -> None:
    page = build_page(trace, trace.tasks)

    header, columns = unpacked(pack_page(page))

    assert header["texts"] == list(page.texts)
    assert columns["runs.start_ns"] == page.runs.start_ns.tolist()
    assert columns["stops.y"] == page.drawings.stops.y.tolist()


def queued_at(page, moment):
    stays, nodes = page.stays, page.nodes.id.tolist()
    found = defaultdict(list)
    for at in range(len(stays.queue)):
        if stays.pushed[at] <= moment and not 0 <= stays.popped[at] <= moment:
            task = page.header.passes[stays.task[at]].task
            node = nodes[stays.node[at]] if stays.node[at] >= 0 else -1
            found[int(stays.queue[at])].append((task, node))
    return {queue: sorted(one) for queue, one in found.items()}


def countdowns_at(page, moment):
    given, nodes = page.gradients, page.nodes.id.tolist()
    return {
        (
            page.header.passes[given.task[at]].task,
            nodes[given.node[at]],
        ): given.remaining[at]
        for at in range(len(given.at))
        if given.at[at] <= moment and not 0 <= given.until[at] <= moment
    }


def snake(name):
    return "".join("_" + c.lower() if c.isupper() else c for c in name)[1:]


def test_work_that_a_pass_left_for_a_device_is_on_its_page():
    story = Story()
    node = story.node(1)
    story.kernel(1, "sim:0/0", at=0, ran=(1, 2))
    story.begin(7, [node], at=10)
    story.take(7, node, at=(12, 13, 14))
    story.kernel(2, "sim:0/0", at=20, ran=(25, 60))
    story.kernel(3, "sim:0/0", at=21, ran=(160, 180))
    story.complete(7, node, at=30)
    story.end(7, at=100)
    story.kernel(4, "sim:0/0", at=120, ran=(190, 200))

    page = build_page(story.trace(), (7,))

    assert page.kernels.end_ns.tolist() == [60 - 10, 180 - 10]
    assert page.header.duration_ns == 180 - 10
    assert page.header.passes[0].end_ns == 100 - 10


def test_streams_that_wait_for_others_do_so_on_the_page():
    story = Story()
    node = story.node(1)
    story.begin(7, [node], at=10)
    story.take(7, node, at=(12, 13, 14))
    story.kernel(1, "sim:0/0", at=20, ran=(25, 60))
    story.record(5, "sim:0/0")
    story.kernel(2, "sim:0/1", at=21, ran=(22, 40))
    story.wait(5, "sim:0/1", node=node.id, producer=node.id)
    story.kernel(3, "sim:0/1", at=30, ran=(65, 80))
    story.complete(7, node, at=90)
    story.end(7, at=100)
    page = build_page(story.trace(), (7,))

    place = {
        (page.texts[stream], begin + 10): number
        for number, (stream, begin) in enumerate(
            zip(page.kernels.stream, page.kernels.begin_ns, strict=True)
        )
    }
    waits = [one.tolist() for one in page.kernel_waits]
    assert waits == [[place["sim:0/1", 65]], [place["sim:0/0", 25]], [0], [0]]
    blocked = page.blocked
    assert [page.texts[one] for one in blocked.stream] == ["sim:0/1"]
    assert [page.texts[one] for one in blocked.awaited_stream] == ["sim:0/0"]
    assert blocked.begin_ns.tolist() == [40 - 10]
    assert blocked.end_ns.tolist() == [60 - 10]


def test_the_critical_path_goes_over_the_streams_that_threads_wait_for():
    story = Story()
    node = story.node(1)
    story.begin(7, [node], at=0)
    story.take(7, node, at=(5, 6, 7))
    story.kernel(1, "sim:0/0", at=10, ran=(15, 60))
    story.now = 1_000 + 90
    story.recorder.stream_synchronized("sim:0/0")
    story.complete(7, node, at=95)
    story.end(7, at=100)

    page = build_page(story.trace(), (7,))

    segments, texts = page.segments, list(page.texts)
    thread = page.header.threads[0].number
    assert [
        texts[stream] if stream >= 0 else thread for stream in segments.stream.tolist()
    ] == [thread] * 3 + ["sim:0/0"] * 2 + [thread] * 3
    assert segments.end_ns.tolist() == [5, 7, 10, 15, 60, 90, 95, 100]
    on_a_thread = segments.stream < 0
    assert set(segments.thread[on_a_thread].tolist()) == {thread}
    assert set(segments.thread[~on_a_thread].tolist()) == {-1}


def test_threads_of_one_worker_are_together_on_the_page() -> None:
    with gv.record() as recording:
        two_devices()
    trace = recording.trace
    before = [one.number for one in build_page(trace, trace.tasks).header.threads]
    assert len(before) > 2
    first, *others = before
    trace.threads[first] = ThreadDefinition(first, "worker 1 / main")
    for place, number in enumerate(others):
        trace.threads[number] = ThreadDefinition(number, f"worker 0 / call {place}")

    threads = build_page(trace, trace.tasks).header.threads

    assert [one.number for one in threads] == [*others, first]
    assert [one.owner for one in threads] == ["worker 0"] * len(others) + ["worker 1"]
    assert threads[-1].name == "worker 1 / main"
    assert threads[-1].name_at_owner == "main"


@pytest.mark.parametrize(
    ("events", "unknown"),
    [
        ((), ()),
        (
            "!task_p*",
            ("input buffers", "saved tensors", ".grad", "captured results"),
        ),
    ],
)
def test_the_page_says_of_which_memory_nothing_is_known(events, unknown) -> None:
    x = gv.ones(2, requires_grad=True)
    with gv.record(events=events) as recording:
        (x * x).sum().backward()

    page = build_page(recording.trace, recording.trace.tasks)
    assert page.header.unknown_purposes == unknown


def test_the_page_says_which_part_of_memory_is_unknown() -> None:
    trace = load_trace(GALLERY / "pytorch.gvt")

    page = build_page(trace, trace.tasks)
    assert page.header.unknown_purposes == ("saved tensors",)
    assert (page.memory.size_bytes > 0).any()


def test_the_page_stacks_memory_in_the_order_in_which_pictures_do() -> None:
    trace = load_trace(GALLERY / "pytorch.gvt")
    held = build_memory(trace, trace.tasks)
    page = build_page(trace, trace.tasks)

    assert page.header.purposes == (
        *("total", ".grad", "saved tensors", "input buffers", "captured results"),
        "perhaps besides",
    )
    for number, purpose in enumerate(("total", *STACKED)):
        rows = page.memory.purpose == number
        told = zip(page.memory.at_ns[rows], page.memory.size_bytes[rows], strict=True)
        assert [*told] == [*held.curves[purpose]], purpose
