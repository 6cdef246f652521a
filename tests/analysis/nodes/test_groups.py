import math
import statistics
from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradviz.analysis.nodes.groups import GROUP_KEYS, document_of, group_nodes
from gradviz.analysis.nodes.labels import LABELS
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.sink import MemorySink
from tests.analysis.conftest import Story

#: Nodes of a pass: which name and device, how long it took; None: it has no end.
NODES = st.lists(
    st.tuples(
        st.sampled_from(["MulBackward0", "AddBackward0", "AccumulateGrad"]),
        st.sampled_from(["cpu", "sim:0", "sim:1", "sim:3"]),
        st.none() | st.integers(1, 300),
    ),
    max_size=60,
)


def told(nodes):
    """A trace of one pass over these nodes, one after the other."""
    story = Story()
    written = [
        story.node(number, name=name, device=device)
        for number, (name, device, _) in enumerate(nodes)
    ]
    story.begin(0, written, at=0)
    at = 10
    for node, (_, _, took) in zip(written, nodes, strict=True):
        story.start(0, node, at=at)
        if took is not None:
            story.complete(0, node, at=at + took)
        at += 1_000
    return story.trace()


def brute_force(trace, of):
    """The durations of the nodes of each label, from the events alone."""
    started, took = {}, defaultdict(list)
    for event in trace.events():
        match type(event).__name__:
            case "NodeStarted":
                started[event.node] = event
            case "NodeCompleted" | "NodeFailed":
                begun, known = started[event.node], trace.nodes[event.node]
                label = {
                    "name": known.name,
                    "module": known.module,
                    "line": known.location,
                    "depth": known.topological_nr,
                    "device": known.device,
                    "thread": begun.thread,
                    "status": "completed",
                }[of]
                took[str(label)].append(event.t_ns - begun.t_ns)
    return took


def nearest_rank(times):
    """The least of `times` that nine of ten are not longer than."""
    return min(
        one
        for one in times
        if Fraction(sum(other <= one for other in times), len(times)) >= Fraction(9, 10)
    )


@given(NODES, st.sampled_from(["name", "device", "line", "status"]))
def test_the_figures_of_groups_are_those_of_their_nodes(nodes, by):
    trace = told(nodes)
    expected = brute_force(trace, by)

    groups = group_nodes(trace, by=by)

    assert {one.label for one in groups.groups} == set(expected)
    for one in groups.groups:
        times = expected[one.label]
        assert one.runs == len(times)
        assert one.total_ns == sum(times)
        assert math.isclose(one.mean_ns, statistics.mean(times))
        assert one.median_ns == int(statistics.median(times))
        assert one.p90_ns == nearest_rank(times)
        assert one.longest_ns == max(times)
    assert groups.num_runs == sum(map(len, expected.values()))
    assert groups.total_ns == sum(map(sum, expected.values()))
    assert groups.num_unfinished == sum(took is None for _, _, took in nodes)
    totals = [one.total_ns for one in groups.groups]
    assert totals == sorted(totals, reverse=True)


SOME = [
    ("MulBackward0", "cpu", 5),
    ("AddBackward0", "cpu", 9),
    ("MulBackward0", "sim:0", 7),
    ("AccumulateGrad", "cpu", 2),
]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("total", ["MulBackward0", "AddBackward0", "AccumulateGrad"]),
        ("runs", ["MulBackward0", "AccumulateGrad", "AddBackward0"]),
        ("mean", ["AddBackward0", "MulBackward0", "AccumulateGrad"]),
        ("longest", ["AddBackward0", "MulBackward0", "AccumulateGrad"]),
        ("label", ["AccumulateGrad", "AddBackward0", "MulBackward0"]),
    ],
)
def test_groups_are_sorted_by_what_is_asked_for(sort, expected):
    groups = group_nodes(told(SOME), by="name", sort=sort)

    assert [one.label for one in groups.groups] == expected


@pytest.mark.parametrize("by", LABELS)
@pytest.mark.parametrize("sort", GROUP_KEYS)
def test_there_are_groups_by_all_labels_sorted_by_all_keys(by, sort):
    groups = group_nodes(told(SOME), by=by, sort=sort)

    assert sum(one.total_ns for one in groups.groups) == 23


def test_numbers_are_labels_in_their_order(story):
    nodes = [story.node(number, *[None] * (11 - number)) for number in range(12)]
    story.begin(0, nodes, at=0)
    for number, node in enumerate(nodes):
        story.ran(0, node, at=10 * number + 1, until=10 * number + 5)

    groups = group_nodes(story.trace(), by="depth", sort="label")

    assert [one.label for one in groups.groups] == list(map(str, range(12)))


def test_only_some_nodes_are_in_groups_and_those_left_out_are_counted():
    trace = told([*SOME, ("PowBackward0", "cpu", 1)])

    groups = group_nodes(trace, by="name", filters=[("device", "cpu")], limit=2)

    assert [(one.label, one.runs) for one in groups.groups] == [
        ("AddBackward0", 1),
        ("MulBackward0", 1),
    ]
    assert (groups.omitted, groups.num_runs, groups.total_ns) == (2, 4, 17)


def test_a_node_that_was_only_captured_counts_as_no_run(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.capture(0, node, at=5)

    groups = group_nodes(story.trace(), by="name")

    assert (groups.groups, groups.num_runs, groups.num_unfinished) == ((), 0, 0)


def test_only_the_nodes_of_some_passes_are_counted(pair):
    story, root, leaf = pair
    story.begin(8, [root, leaf], at=200)
    story.ran(8, leaf, at=210, until=217)
    story.end(8, at=230)

    groups = group_nodes(story.trace(), [8], by="name")

    assert [(one.label, one.total_ns) for one in groups.groups] == [
        ("AccumulateGrad", 7)
    ]
    assert document_of(groups)["tasks"] == (8,)


def test_a_group_says_how_long_its_threads_were_running():
    sink = MemorySink()
    clocks = {"wall": 0, "thread": 0}
    recorder = Recorder(
        sink,
        clock=lambda: clocks["wall"],
        thread_clock=lambda: clocks["thread"],
        flush_every_s=None,
    )
    story = Story()
    story.recorder, story._sink = recorder, sink
    node = story.node(1)
    story.begin(0, [node], at=0)
    for wall, thread in ((1_000_000, 1_000_000), (3_000_000, 1_500_000)):
        clocks["wall"], clocks["thread"] = wall, thread
        (recorder.node_started if wall == 1_000_000 else recorder.node_completed)(0, 1)

    (known,) = group_nodes(story.trace(), by="name").groups
    (unknown,) = group_nodes(told(SOME[:1]), by="name").groups

    assert known.total_ns == 2_000_000
    assert known.running_ns is not None
    assert abs(known.running_ns - 500_000) <= 100_000
    assert unknown.running_ns is None
