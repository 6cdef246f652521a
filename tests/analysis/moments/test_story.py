"""Stories of recorded programs, against a look at each of their events."""

import pytest

import gradviz as gv
from gradviz import sim
from gradviz.analysis.moments.story import (
    Filter,
    NoSuchKindError,
    kinds_named,
    origin_of,
    select_events,
)
from gradviz.analysis.moments.subjects import Subject
from gradviz.capture.session import record
from gradviz.trace import events as e
from tests.analysis.reentrant import Inner


@pytest.fixture(scope="module")
def trace():
    """Two devices, a backward inside a backward, and one that fails."""

    def refuse(grad):
        raise ValueError("no")

    count = sim.device_count()
    sim.set_device_count(2)
    with record() as recording:
        x = gv.tensor([1.0, 2.0], requires_grad=True)
        a, b = x.to("sim:0"), x.to("sim:1")
        (a.sin().to("cpu") + (b.cos() + a.to("sim:1")).to("cpu")).sum().backward()
        (Inner.apply(x) * x).sum().backward()
        y = x * x
        y.register_hook(refuse)
        with pytest.raises(ValueError, match="no"):
            y.sum().backward()
    sim.set_device_count(count)
    return recording.trace


def told(trace, wanted, **options):
    origin, _ = origin_of(trace, wanted)
    story = select_events(trace, wanted, origin, **options)
    return [one.seq for one in trace.events_of(story.tables)]


def having(trace, *names, number):
    """The events of which one of these fields has this number."""
    return [
        one.seq
        for one in trace.events()
        if any(getattr(one, name, None) == number for name in names)
    ]


def test_the_story_of_a_node_is_what_it_did_and_what_was_done_to_it(trace):
    for node in trace.nodes:
        subject = Subject("node", node, "")
        expected = having(trace, "node", "producer", "pushed_by", number=node)
        assert told(trace, Filter(subject)) == expected
        assert len(expected) > 3


@pytest.mark.parametrize(
    ("kind", "ids", "fields"),
    [
        ("queue", "queues", ["queue"]),
        ("thread", "threads", ["thread"]),
        ("pass", "tasks", ["task", "parent"]),
    ],
)
def test_the_story_of_a_queue_a_thread_or_a_pass_is_all_that_names_it(
    kind, ids, fields, trace
):
    numbers = list(getattr(trace, ids))
    assert len(numbers) > 2
    for number in numbers:
        expected = having(trace, *fields, number=number)
        assert told(trace, Filter(Subject(kind, number, ""))) == expected


def test_the_story_of_a_stream_has_its_kernels_and_who_waits_for_its_events(trace):
    streams = {getattr(one, "stream", "") for one in trace.events()} - {""}
    assert len(streams) > 1
    waited = 0
    for stream in streams:
        own, marks, expected = set(), {}, []
        for one in trace.events():
            if isinstance(one, e.EventRecorded):
                marks[one.event] = one.stream
            if isinstance(one, e.KernelLaunched) and one.stream == stream:
                own.add(one.kernel)
            others = marks.get(getattr(one, "event", None)) == stream
            waited += others and isinstance(one, e.StreamWaited)
            if (
                stream
                in {getattr(one, "stream", ""), getattr(one, "caller_stream", "")}
                or getattr(one, "kernel", None) in own
                or others
            ):
                expected.append(one.seq)
        assert told(trace, Filter(Subject("stream", -1, stream))) == expected
    # A stream of an earlier test's thread may be there too: nobody waits for it.
    assert waited


def test_without_a_subject_it_is_everything(trace):
    assert told(trace, Filter()) == list(range(trace.num_events))


def test_passes_include_those_inside_of_them(trace):
    begun = trace.columns["task_begun"]
    (pair,) = (one for one in begun.rows("parent", "task") if one[0] >= 0)

    seqs = set(told(trace, Filter(tasks=pair[:1])))

    assert seqs == {one.seq for one in trace.events() if one.task in pair}


def test_times_are_counted_from_the_begin_of_the_pass_asked_for(trace):
    second = trace.tasks[1]
    begin = next(
        one.t_ns for one in trace.events(task=second) if isinstance(one, e.TaskBegun)
    )
    subject = Subject("pass", second, "")

    for wanted in (Filter(tasks=(second,)), Filter(subject)):
        assert origin_of(trace, wanted) == (begin, f"pass {second} began")
    assert origin_of(trace, Filter(Subject("node", 3, "")))[0] == min(
        one.t_ns for one in trace.events()
    )


def test_it_begins_and_ends_when_asked_to_both_times_included(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    for at in (10, 20, 30, 40):
        story.push(0, node, at=at)

    wanted = Filter(kinds=("task_pushed",), tasks=(0,), begin_ns=20, end_ns=30)
    trace = story.trace()

    assert [
        one.t_ns - 1_000
        for one in trace.events_of(
            select_events(trace, wanted, origin_of(trace, wanted)[0]).tables
        )
    ] == [20, 30]


@pytest.mark.parametrize("limit", [0, 1, 7, 50])
def test_of_more_than_the_limit_the_first_are_told(limit, trace):
    story = select_events(trace, Filter(), 0, limit)

    assert [one.seq for one in trace.events_of(story.tables)] == list(range(limit))
    assert (story.num_events, story.omitted) == (limit, trace.num_events - limit)


def test_kinds_are_called_by_their_names_or_by_a_pattern():
    assert kinds_named(["task_pushed", "task_p*"]) == ("task_pushed", "task_popped")
    with pytest.raises(
        NoSuchKindError, match="'task_poped': did you mean 'task_popped'"
    ):
        kinds_named(["task_poped"])
    with pytest.raises(NoSuchKindError, match="kinds are node_created, tensor_saved"):
        kinds_named(["!"])


def test_a_trace_without_events_has_no_story(story):
    trace = story.trace()

    assert told(trace, Filter()) == []
    assert told(trace, Filter(Subject("stream", -1, "sim:0/0"))) == []
