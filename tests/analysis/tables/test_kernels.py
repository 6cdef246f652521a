from pathlib import Path

from gradviz.analysis.tables.executions import as_list, execution_columns
from gradviz.analysis.tables.kernels import kernels, launchers, stream_order_key


def launching_nodes(story):
    trace = story.trace()
    found = launchers(kernels(trace), as_list(trace, execution_columns(trace)))
    return {kernel: (run.task, run.node) for kernel, run in found.items()}


def test_kernels_come_in_the_order_in_which_they_began(story):
    story.kernel(1, "sim:0/0", at=0, ran=(50, 60))
    story.kernel(2, "sim:0/1", at=2, ran=(10, 30), name="add")

    first, second = kernels(story.trace())
    assert (first.kernel, first.name, first.stream) == (2, "add", "sim:0/1")
    assert (first.launched_ns, first.start_ns, first.end_ns) == (1_002, 1_010, 1_030)
    assert first.location.startswith(str(Path(__file__).parents[1]))
    assert (second.kernel, second.device) == (1, "sim:0")


def test_a_kernel_that_never_ran_is_left_out(story):
    story.recorder.kernel_launched(1, "sim:0/0", "mul")
    story.recorder.kernel_ran(2, 5, 6)

    assert kernels(story.trace()) == []


def test_a_kernel_is_launched_by_the_innermost_node_of_its_thread(story):
    outer, inner = story.node(1), story.node(2)
    story.kernel(0, "sim:0/0", at=1, ran=(90, 91))
    story.begin(0, [outer], at=5)
    story.start(0, outer, at=10)
    story.kernel(1, "sim:0/0", at=11, ran=(90, 91))
    story.begin(1, [inner], at=20, parent=0)
    story.start(1, inner, at=30)
    story.kernel(2, "sim:0/0", at=31, ran=(90, 91))
    story.on_thread("other", lambda: story.kernel(3, "sim:0/0", at=34, ran=(90, 91)))
    story.complete(1, inner, at=40)
    story.end(1, at=50)
    story.kernel(4, "sim:0/0", at=51, ran=(90, 91))
    story.complete(0, outer, at=60)
    story.end(0, at=70)
    story.kernel(5, "sim:0/0", at=71, ran=(90, 91))

    assert launching_nodes(story) == {1: (0, 1), 2: (1, 2), 4: (0, 1)}


def test_a_node_launches_nothing_after_it_failed(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.start(0, node, at=10)
    story.kernel(1, "sim:0/0", at=11, ran=(90, 91))
    story.fail(0, node, "no", at=20)
    story.kernel(2, "sim:0/0", at=30, ran=(90, 91))

    assert launching_nodes(story) == {1: (0, 1)}


def test_streams_are_sorted_as_people_count():
    streams = ["sim:10/0", "sim:2/10", "sim:2/9", "cuda:0/0", "odd"]

    assert sorted(streams, key=stream_order_key) == [
        "odd",
        "cuda:0/0",
        "sim:2/9",
        "sim:2/10",
        "sim:10/0",
    ]
