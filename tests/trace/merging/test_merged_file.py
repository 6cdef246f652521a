"""Traces of several processes in one file."""

import itertools
from collections import defaultdict

import msgspec
import pytest

from gradviz import sim
from gradviz.analysis.findings.check import check_trace
from gradviz.capture.session import record
from gradviz.errors import UserError
from gradviz.trace.events import KernelRan, own_columns
from gradviz.trace.format.clock import ClockPair
from gradviz.trace.format.model import Trace
from gradviz.trace.format.scope import Scope
from gradviz.trace.merging.compared_clocks import ClockMap
from gradviz.trace.merging.identities import IDENTITIES, MOMENTS, PLACES
from gradviz.trace.merging.merged_file import merged
from gradviz.trace.merging.placement import place
from gradviz.trace.probe import Model, ModelParameter
from gradviz.trace.reading.reader import parse_trace
from tests.analysis.conftest import Story
from tests.analysis.moments.test_engine_state import PROGRAMS


def merge(*traces):
    return parse_trace(b"".join(merged(place(traces))))


def of(trace, *, clocks=None, **header):
    """The same trace of another process."""
    clocks = clocks or trace.clocks
    header = {"boot_id": "", **header}  # else all are of this machine
    return Trace(
        path=trace.path,
        header=msgspec.structs.replace(trace.header, clock=clocks[0], **header),
        clocks=clocks,
        nodes=trace.nodes,
        threads=trace.threads,
        queues=trace.queues,
        losses=trace.losses,
        strings=trace.strings,
        columns=trace.columns,
        models=trace.models,
    )


def told():
    """A pass of two nodes on the CPU and a stream, as a file."""
    story = Story()
    leaf = story.node(1, name="AccumulateGrad", shape=(3,))
    root = story.node(2, leaf, device="sim:0", shape=(3, 2))
    story.begin(7, [root, leaf], at=0)
    story.take(7, root, at=(10, 15, 20))
    story.kernel(3, "sim:0/0", at=30, ran=(32, 40))
    story.gradient(7, leaf, root, 24, at=60)
    story.push(7, leaf, at=70)
    story.complete(7, root, at=80)
    story.pop(7, leaf, at=82)
    story.ran(7, leaf, at=90, until=95)
    story.end(7, at=100)
    return story.contents()


@pytest.fixture(scope="module")
def recorded():
    """A trace of each program, as if each had run in a process of its own."""
    count = sim.device_count()
    sim.set_device_count(2)
    traces = []
    for pid, program in enumerate(PROGRAMS, 100):
        with record() as recording:
            program()
        traces.append(of(recording.trace, pid=pid))
    sim.set_device_count(count)
    return traces


def at(ns):
    return ClockPair(monotonic_ns=1_000, wall_ns=ns)


def test_one_trace_stays_what_it_is(recorded):
    for trace in recorded:
        alone = merge(trace)

        assert alone.header == trace.header
        assert alone.clocks == trace.clocks
        assert [*alone.events()] == [*trace.events()]
        assert {**alone.nodes} == {**trace.nodes}
        assert alone.threads == trace.threads
        assert alone.queues == trace.queues
        assert alone.processes == trace.processes
        assert alone.losses == trace.losses


def test_the_order_of_arguments_does_not_matter(recorded):
    files = {
        b"".join(merged(place(some))) for some in itertools.permutations(recorded[:3])
    }

    assert len(files) == 1


def test_every_event_is_there_and_no_two_processes_share_an_identity(recorded):
    whole = merge(*recorded)
    by_thread = defaultdict(list)
    for event in whole.events():
        by_thread[event.thread].append(event)
    taken = defaultdict(set)
    for trace, process in zip(recorded, whole.processes, strict=True):
        assert process.pid == trace.header.pid
        numbers = defaultdict(dict)
        own = defaultdict(list)
        for event in trace.events():
            own[event.thread].append(event)
        for thread, after in zip(sorted(own), sorted(process.threads), strict=True):
            compare(own[thread], by_thread[after], numbers, f"pid {process.pid} / ")
        for what, known in numbers.items():
            assert len({*known.values()}) == len(known)
            assert taken[what].isdisjoint(known.values())
            taken[what] |= {*known.values()}
        for node, number in numbers["node"].items():
            if node in trace.nodes:
                one, other = trace.nodes[node], whole.nodes[number]
                assert (one.name, one.location) == (other.name, other.location)
                assert [nr for _, nr in one.edges] == [nr for _, nr in other.edges]
    assert whole.num_events == sum(trace.num_events for trace in recorded)


def compare(events, others, numbers, label):
    """Two threads' events are the same, up to the numbers of what they tell of."""
    assert [type(one) for one in events] == [type(one) for one in others]
    for one, other in zip(events, others, strict=True):
        names = [column.name for column in own_columns(type(one))]
        for name in ("t_ns", "task", "node", "thread", *names):
            a, b = getattr(one, name), getattr(other, name)
            if name in IDENTITIES and a != -1:
                assert numbers[IDENTITIES[name]].setdefault(a, b) == b
            elif isinstance(a, str) and name in PLACES and a != "cpu":
                assert b == label + a
            else:
                assert a == b


def test_a_merged_trace_passes_the_check(recorded):
    for one, other in itertools.pairwise(recorded):
        check = check_trace(merge(one, other))

        assert not check.history.num_violations
        assert not check.violations
        assert check.losses.is_complete


def test_a_merged_trace_can_be_merged_again(recorded):
    a, b, c = recorded[:3]
    at_once, one_by_one = merge(a, b, c), merge(merge(a, b), c)

    assert at_once.processes == one_by_one.processes
    assert {one.name for one in at_once.threads.values()} == {
        one.name for one in one_by_one.threads.values()
    }
    assert [one.t_ns for one in at_once.events()] == [
        one.t_ns for one in one_by_one.events()
    ]


def test_models_of_all_processes_are_there():
    traces = []
    for name in ("Net", "Head"):
        story = Story()
        weight = ModelParameter(
            (f"{name}.a", f"{name}.b"), None, "float32", "cpu", True
        )
        story.recorder.model_defined(Model(name, (weight,), 7))
        traces.append(parse_trace(story.contents()))
    whole = merge(of(traces[0], pid=1), of(traces[1], pid=2))

    assert whole.models == traces[0].models | traces[1].models
    (weight,) = whole.models["Head"].parameters
    assert (weight.names, weight.shape) == (("Head.a", "Head.b"), None)
    assert whole.models["Head"].num_parameters == 7


@pytest.mark.parametrize(
    ("headers", "label"),
    [
        ([{"rank": 0}, {"rank": 1}], "rank"),
        ([{"pid": 11}, {"pid": 12}], "pid"),
        ([{"pid": 11, "host": "a"}, {"pid": 11, "host": "b"}], "process"),
    ],
)
def test_threads_are_called_after_their_process(headers, label):
    whole = merge(*(of(parse_trace(told()), **header) for header in headers))

    names = {one.name for one in whole.threads.values()}
    numbers = sorted(header.get(label, n) for n, header in enumerate(headers, 1))
    assert names == {f"{label} {number} / MainThread" for number in numbers}
    assert len(whole.processes) == 2


def test_times_of_one_machine_stay_as_they_are():
    one, other = parse_trace(told()), parse_trace(told())
    second = of(other, clocks=(at(one.clocks[0].wall_ns - one.clocks[0].monotonic_ns),))
    placed = place([one, of(second, pid=1, clocks=one.clocks)])

    assert [part.clock for part in placed] == [ClockMap(), ClockMap()]
    assert [part.doubt for part in placed] == ["", ""]


def test_a_clock_that_was_set_is_told_and_times_stay():
    one = of(parse_trace(told()), pid=1, clocks=(at(5_000_000_000),))
    other = of(parse_trace(told()), pid=2, clocks=(at(5_200_000_000),))
    _, late = place([one, other])

    assert late.clock == ClockMap()
    assert "the time of day was set by 200 ms" in late.doubt


def test_one_start_of_a_machine_is_one_clock_whatever_its_containers_are_called():
    trace = parse_trace(told())
    one = of(trace, pid=1, host="web", boot_id="a")
    other = of(trace, pid=2, host="db", boot_id="a")

    assert [placed.doubt for placed in place([one, other])] == ["", ""]


def test_machines_of_one_name_have_clocks_of_their_own():
    one = of(parse_trace(told()), pid=1, host="web", boot_id="a")
    other = of(parse_trace(told()), pid=2, host="web", boot_id="b")

    assert "where the time of day says" in place([one, other])[1].doubt


@pytest.mark.parametrize(
    ("host", "whose"),
    [("here", "another start of the machine"), ("there", "another machine")],
)
def test_other_clocks_are_put_where_the_time_of_day_says_and_that_is_told(host, whose):
    one = of(parse_trace(told()), pid=1, host="here", clocks=(at(5_000_000_000),))
    late = at(9_000_000_000)
    drifted = ClockPair(monotonic_ns=2_000, wall_ns=late.wall_ns + 1_000 + 3_000_000)
    other = of(parse_trace(told()), pid=2, host=host, clocks=(late, drifted))
    whole = merge(one, other)

    moments = [event.t_ns for event in parse_trace(told()).events()]
    shifted = [moment + 4_000_000_000 for moment in moments]
    assert [event.t_ns for event in whole.events()] == moments + shifted
    ran = [event for event in whole.events() if isinstance(event, KernelRan)]
    assert ran[1].began_ns - ran[0].began_ns == 4_000_000_000
    assert {"t_ns", "began_ns", "ended_ns"} == MOMENTS
    (problem,) = whole.losses.problems
    assert problem.startswith(f"pid 2: its clock is of {whose}")
    assert "off by 3 ms within the recordings" in problem


def test_losses_of_one_trace_are_losses_of_the_whole():
    cut = of(parse_trace(told()[:-7]), pid=2)
    lossy = of(parse_trace(told()), pid=3)
    lossy.losses = msgspec.structs.replace(lossy.losses, dropped=5)
    whole = merge(of(parse_trace(told()), pid=1), cut, lossy)

    assert not whole.losses.is_complete
    assert whole.losses.dropped == 5
    assert {
        "pid 2: its end is cut off",
        "pid 2: it goes on or was broken off",
    } <= {*whole.losses.problems}


def test_a_single_lossy_trace_stays_as_lossy_as_it_is():
    trace = parse_trace(told())
    trace.losses = msgspec.structs.replace(
        trace.losses, dropped=5, overwritten=7, problems=("frame 3 is missing",)
    )

    assert merge(trace).losses == trace.losses


def test_the_merged_scope_combines_the_limits_of_all_recordings():
    without = Scope(left_out=("queue_waited",), stacks="none")
    whole = merge(
        of(parse_trace(told()), clocks=(at(1),), pid=1),
        of(parse_trace(told()), clocks=(at(1),), pid=2, scope=without),
        of(
            parse_trace(told()),
            clocks=(at(1),),
            pid=3,
            scope=Scope(only=("Mul*",), ring_bytes=9),
        ),
    )

    assert whole.losses.is_complete
    assert whole.header.scope == Scope(
        left_out=("queue_waited",), only=("Mul*",), stacks="none", ring_bytes=9
    )


def test_a_recording_that_is_given_twice_is_refused():
    trace = parse_trace(told())

    with pytest.raises(UserError, match="are the same recording"):
        place([trace, trace])


def test_numbers_that_leave_no_room_are_refused():
    story = Story()
    story.begin(2**63 - 1, [], at=0)
    large = of(story.trace(), pid=1)

    assert merge(large).tasks == (2**63 - 1,)
    with pytest.raises(UserError, match="numbers so large"):
        place([large, of(parse_trace(told()), pid=2)])
