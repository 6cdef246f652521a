import itertools

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradviz.analysis.races.byte_ranges import overlap, parse_extent
from gradviz.analysis.races.happens_before import HappensBefore
from gradviz.analysis.races.race_reports import NodeOrigin

A, B, C = "sim:0/0", "sim:0/1", "sim:1/0"
MAIN, WORKER = "main", "worker"
WHOLE = "0;8;8;8"


class Program:
    """Reports of a program, written as a program."""

    def __init__(self):
        self.machine = HappensBefore(self.origin)
        self.origins = {}
        self._numbers = itertools.count()

    def origin(self, node):
        return self.origins.get(node, NodeOrigin())

    def launch(self, stream, *, reads=(), writes=(), layout=WHOLE, **where):
        """A kernel that reads some memory and then writes some."""
        kernel = next(self._numbers)
        self.machine.kernel_launched(
            where.get("thread", MAIN),
            kernel,
            stream,
            where.get("name", "kernel"),
            where.get("location", ""),
        )
        for memory in reads:
            self.machine.array_accessed(kernel, memory, layout, writes=False)
        for memory in writes:
            self.machine.array_accessed(kernel, memory, layout, writes=True)

    def record(self, stream):
        event = next(self._numbers)
        self.machine.event_recorded(stream, event)
        return event

    def wait(self, stream, event, location="", task=-1, node=-1):
        self.machine.stream_waited(task, node, stream, event, location)

    def wait_stream(self, late, early, location=""):
        self.wait(late, self.record(early), location)

    def races(self):
        """The streams of each race, and what both did."""
        return [
            (
                race.first.stream,
                race.first.action,
                race.second.stream,
                race.second.action,
            )
            for race, _ in self.machine.findings.races
        ]

    def needless(self):
        return [
            (wait.stream, wait.producer)
            for wait, _ in self.machine.findings.needless_waits
        ]


@pytest.fixture
def program():
    return Program()


RACE = [(A, "kernel", B, "kernel")]


def test_work_of_one_stream_is_in_order(program):
    program.launch(A, writes=[1])
    program.launch(A, reads=[1], writes=[1])

    assert program.races() == []


def test_two_streams_may_read_the_same(program):
    program.launch(A, reads=[1])
    program.launch(B, reads=[1])

    assert program.races() == []


@pytest.mark.parametrize(
    ("first", "then"), [("reads", "writes"), ("writes", "reads"), ("writes", "writes")]
)
def test_a_write_that_nothing_orders_is_a_race(program, first, then):
    program.launch(A, **{first: [1]})
    program.launch(B, **{then: [1]})

    assert program.races() == RACE


def test_a_stream_that_waits_for_an_event_is_after_what_it_marks(program):
    program.launch(A, writes=[1])
    program.wait_stream(B, A)
    program.launch(B, reads=[1])

    assert program.races() == []


def test_an_event_marks_nothing_that_comes_later(program):
    event = program.record(A)
    program.launch(A, writes=[1])
    program.wait(B, event)
    program.launch(B, reads=[1])

    assert program.races() == RACE


def test_a_wait_orders_nothing_that_was_launched_before_it(program):
    program.launch(A, writes=[1])
    event = program.record(A)
    program.launch(B, reads=[1])
    program.wait(B, event)

    assert program.races() == RACE


def test_a_wait_is_not_mutual(program):
    program.launch(B, reads=[1])
    program.wait_stream(B, A)
    program.launch(A, writes=[1])

    assert program.races() == [(B, "kernel", A, "kernel")]


def test_waits_make_a_chain(program):
    program.launch(A, writes=[1])
    program.wait_stream(B, A)
    program.wait_stream(C, B)
    program.launch(C, reads=[1])

    assert program.races() == []


def test_a_chain_of_waits_has_to_be_in_order(program):
    program.launch(A, writes=[1])
    program.wait_stream(C, B)
    program.wait_stream(B, A)
    program.launch(C, reads=[1])

    assert program.races() == [(A, "kernel", C, "kernel")]


@pytest.mark.parametrize("wait", ["event", "stream", "device"])
def test_work_that_the_host_waited_for_comes_before_all_its_later_launches(
    program, wait
):
    program.launch(A, writes=[1])
    match wait:
        case "event":
            program.machine.event_synchronized(program.record(A))
        case "stream":
            program.machine.stream_synchronized(A)
        case "device":
            program.machine.device_synchronized("sim:0")
    program.launch(B, reads=[1])
    program.launch(C, reads=[1])

    assert program.races() == []


def test_a_host_wait_orders_streams_that_have_waited_for_others_as_well(program):
    program.launch(A, writes=[1])
    program.wait_stream(B, C)
    program.machine.stream_synchronized(A)
    program.launch(B, reads=[1])

    assert program.races() == []


@pytest.mark.parametrize("wait", ["event", "stream", "device"])
def test_the_host_waits_for_what_a_stream_has_waited_for(program, wait):
    program.launch(C, writes=[1])
    program.wait_stream(A, C)
    match wait:
        case "event":
            program.machine.event_synchronized(program.record(A))
        case "stream":
            program.machine.stream_synchronized(A)
        case "device":
            program.machine.device_synchronized("sim:0")
    program.launch(B, reads=[1])

    assert program.races() == []


def test_a_host_that_waits_for_one_device_knows_nothing_of_another(program):
    program.launch(A, writes=[1])
    program.machine.device_synchronized("sim:1")
    program.launch(B, reads=[1])

    assert program.races() == RACE


def test_a_device_is_not_another_whose_number_begins_like_its_own(program):
    program.launch("sim:10/0", writes=[1])
    program.machine.device_synchronized("sim:1")
    program.launch("sim:10/1", reads=[1])

    assert len(program.races()) == 1


def test_a_host_wait_orders_nothing_that_was_launched_before_it(program):
    program.launch(A, writes=[1])
    program.launch(B, reads=[1])
    program.machine.stream_synchronized(A)

    assert program.races() == RACE


def test_a_host_wait_of_one_thread_orders_what_another_launches(program):
    program.launch(A, writes=[1], thread=WORKER)
    program.machine.stream_synchronized(A)
    program.launch(B, reads=[1], thread=MAIN)

    assert program.races() == []


def test_a_copy_is_as_any_kernel(program):
    """From sim:0 to sim:1 on the source's stream, and then used there."""
    program.launch(A, writes=[1])
    program.launch(A, reads=[1], writes=[2], name="copy")
    program.launch(C, reads=[2])

    assert program.races() == [(A, "copy", C, "kernel")]


def test_slices_that_share_no_byte_may_be_written_in_any_order(program):
    program.launch(A, writes=[1], layout="0;4;8;8")
    program.launch(B, writes=[1], layout="32;4;8;8")

    assert program.races() == []


def test_columns_that_lie_between_one_another_are_told_apart(program):
    program.launch(A, writes=[1], layout="0;4;16;8")
    program.launch(B, writes=[1], layout="8;4;16;8")

    assert program.races() == []


def test_slices_that_share_a_byte_are_not(program):
    program.launch(A, writes=[1], layout="0;4;8;8")
    program.launch(B, writes=[1], layout="24;4;8;8")

    assert program.races() == RACE


def test_the_earlier_of_two_slices_is_not_forgotten_over_the_later(program):
    program.launch(A, writes=[1], layout="0;4;8;8")
    program.launch(A, writes=[1], layout="32;4;8;8")
    program.launch(B, reads=[1], layout="0;1;8;8")

    assert program.races() == RACE


def test_a_write_is_not_forgotten_over_a_later_read(program):
    program.launch(A, writes=[1])
    program.launch(A, reads=[1])
    program.launch(B, reads=[1])

    assert program.races() == RACE


def test_reads_of_several_streams_are_all_remembered(program):
    program.launch(A, reads=[1])
    program.launch(B, reads=[1])
    program.wait_stream(C, B)
    program.launch(C, writes=[1])

    assert program.races() == [(A, "kernel", C, "kernel")]


def test_an_empty_array_is_in_nobodys_way(program):
    program.launch(A, writes=[1], layout="0;0;8;8")
    program.launch(B, writes=[1], layout="0;8;8;8")

    assert program.races() == []


def test_memory_is_written_by_being_allocated(program):
    program.machine.memory_allocated(1, A, 64)
    program.launch(B, writes=[1])

    assert program.races() == [(A, "allocation", B, "kernel")]


def test_memory_that_is_used_where_it_was_allocated_is_in_order(program):
    program.machine.memory_allocated(1, A, 64)
    program.launch(A, writes=[1])

    assert program.races() == []


def test_memory_is_written_by_being_freed(program):
    program.launch(B, reads=[1])
    program.machine.memory_freed(1, A)

    assert program.races() == [(B, "kernel", A, "free")]
    assert "record_stream(s1)" in program.machine.findings.races[0][0].remedy


def test_memory_may_be_freed_once_its_stream_has_waited(program):
    program.launch(B, reads=[1])
    program.wait_stream(A, B)
    program.machine.memory_freed(1, A)

    assert program.races() == []


def test_memory_may_be_freed_while_a_stream_uses_it_that_is_recorded(program):
    program.launch(A, writes=[1])
    program.wait_stream(B, A)
    program.launch(B, reads=[1])
    program.machine.memory_shared(1, B)
    program.machine.memory_freed(1, A)

    assert program.races() == []


def test_to_record_one_stream_says_nothing_of_another(program):
    program.launch(B, reads=[1])
    program.launch(C, reads=[1])
    program.machine.memory_shared(1, B)
    program.machine.memory_freed(1, A)

    assert program.races() == [(C, "kernel", A, "free")]


def test_memory_that_goes_too_early_is_told_once_a_stream(program):
    program.launch(B, reads=[1], layout="0;4;8;8", name="early")
    program.launch(B, reads=[1], layout="32;4;8;8", name="late")
    program.machine.memory_freed(1, A)

    assert program.races() == [(B, "late", A, "free")]


def test_the_next_to_have_the_memory_has_nothing_to_do_with_the_last(program):
    program.machine.memory_allocated(1, A, 64)
    program.launch(A, writes=[1])
    program.machine.memory_freed(1, A)
    program.machine.memory_allocated(2, B, 64)
    program.launch(B, writes=[2])

    assert program.races() == []


def test_a_missing_wait_is_told_once(program):
    program.launch(A, writes=[1, 2])
    program.launch(B, reads=[1])
    program.launch(B, reads=[1, 2])
    program.launch(B, writes=[1])

    assert program.races() == RACE


def test_another_missing_wait_is_another_race(program):
    program.launch(A, writes=[1])
    program.launch(B, reads=[1], name="early")
    program.launch(A, writes=[2])
    program.launch(B, reads=[2], name="late")

    assert program.races() == [(A, "kernel", B, "early"), (A, "kernel", B, "late")]


def test_the_same_race_in_every_step_is_listed_once_and_counted(program):
    for _ in range(5):
        program.launch(A, writes=[1])
        program.wait_stream(A, B)
        program.launch(B, reads=[1])
        program.wait_stream(A, B)

    ((_, times),) = program.machine.findings.races
    assert times == 5


def test_the_same_lines_on_other_streams_are_the_same_race(program):
    for number in range(1, 5):
        program.launch(f"sim:0/{number}", writes=[number], location="a.py:1")
        program.launch(f"sim:1/{number}", reads=[number], location="a.py:2")

    ((_, times),) = program.machine.findings.races
    assert times == 4


def test_races_beyond_number_are_counted_only(program):
    for number in range(1002):
        program.launch(A, writes=[1], location=f"a.py:{number}")
        program.launch(B, writes=[1])
        program.machine.device_synchronized("sim:0")

    findings = program.machine.findings
    assert (len(findings.races), findings.num_unlisted) == (1000, 2)


STREAMS = [A, B, C, "sim:1/1"]
SLICES = ["0;8;8;8", "0;4;8;8", "32;4;8;8", "0;4;16;8", "8;4;16;8"]

steps = st.one_of(
    st.tuples(
        st.just("launch"),
        st.sampled_from(STREAMS),
        st.integers(0, 5),
        st.sampled_from(SLICES),
        st.booleans(),
    ),
    st.tuples(st.just("order"), st.sampled_from(STREAMS), st.sampled_from(STREAMS)),
    st.tuples(st.just("order"), st.sampled_from(STREAMS), st.sampled_from(STREAMS)),
    st.tuples(st.just("record"), st.sampled_from(STREAMS)),
    st.tuples(st.just("wait"), st.sampled_from(STREAMS), st.integers(0, 3)),
    st.tuples(st.just("event"), st.integers(0, 3)),
    st.tuples(st.just("stream"), st.sampled_from(STREAMS)),
    st.tuples(st.just("device"), st.sampled_from(["sim:0", "sim:1"])),
)


def first_race(program):
    """The first kernel that is in a race, by sets of all that is done before."""
    done = {stream: frozenset() for stream in STREAMS}
    events, launched = [], []
    for step in program:
        match step:
            case "launch", stream, memory, layout, writes:
                extent, name = parse_extent(layout), str(len(launched))
                if any(
                    where == memory
                    and (writes or wrote)
                    and overlap(extent, what)
                    and other not in done[stream]
                    for other, where, what, wrote in launched
                ):
                    return name
                launched.append((name, memory, extent, writes))
                done[stream] |= {name}
            case "order", late, early:
                done[late] |= done[early]
            case "record", stream:
                events.append(done[stream])
            case "wait", stream, back if back < len(events):
                done[stream] |= events[-1 - back]
            case "event", back if back < len(events):
                done = {one: before | events[-1 - back] for one, before in done.items()}
            case "stream", stream:
                done = {one: before | done[stream] for one, before in done.items()}
            case "device", device:
                finished = frozenset().union(
                    *(before for one, before in done.items() if one.startswith(device))
                )
                done = {one: before | finished for one, before in done.items()}
    return None


@hypothesis.settings(max_examples=400)
@given(st.lists(steps, min_size=10, max_size=60))
def test_the_first_race_is_that_which_sets_of_all_that_is_before_find(steps):
    program, events, num_launched = Program(), [], 0
    for step in steps:
        match step:
            case "launch", stream, memory, layout, writes:
                access = {"writes" if writes else "reads": [memory]}
                program.launch(stream, layout=layout, name=str(num_launched), **access)
                num_launched += 1
            case "order", late, early:
                program.wait_stream(late, early)
            case "record", stream:
                events.append(program.record(stream))
            case "wait", stream, back if back < len(events):
                program.wait(stream, events[-1 - back])
            case "event", back if back < len(events):
                program.machine.event_synchronized(events[-1 - back])
            case "stream", stream:
                program.machine.stream_synchronized(stream)
            case "device", device:
                program.machine.device_synchronized(device)

    races = program.machine.findings.races
    assert (races[0][0].second.action if races else None) == first_race(steps)


# --- what is told ---------------------------------------------------------------------


def test_a_race_says_who_what_and_where(program):
    program.origins[7] = NodeOrigin(
        name="MulBackward0", location="model.py:5", module="net.0"
    )
    program.launch(A, writes=[1], name="add", location="model.py:9")
    program.machine.task_begun(MAIN, 3, "train.py:7")
    program.machine.node_started(WORKER, 3, 7)
    program.launch(B, reads=[1], name="mul", thread=WORKER)

    ((race, times),) = program.machine.findings.races
    assert times == 1
    assert str(race) == (
        "memory 1 is used by two streams in no order:\n"
        "  first:   add on sim:0/0 writes it, at model.py:9\n"
        "  then:    mul on sim:0/1 reads it in MulBackward0 of net.0 "
        "(id 7 of task 3, made at model.py:5, backward called at train.py:7)\n"
        "  missing: sim:0/1 must wait for sim:0/0 before this: "
        's1.wait_stream(gv.default_stream("sim:0"))'
    )


def test_a_remedy_distinguishes_streams_of_the_same_number_on_two_devices(program):
    program.launch("sim:0/1", writes=[1])
    program.launch("sim:1/1", reads=[1])

    ((race, _),) = program.machine.findings.races
    assert race.remedy == (
        "sim:1/1 must wait for sim:0/1 before this: later.wait_stream(earlier)"
    )


def nodes_of(program):
    """The node of each stream's kernel in the only race."""
    ((race, _),) = program.machine.findings.races
    return race.first.node, race.second.node


def test_a_kernel_is_its_threads_node(program):
    program.machine.node_started(MAIN, 0, 4)
    program.machine.node_started(WORKER, 0, 5)
    program.launch(A, writes=[1], thread=WORKER)
    program.launch(B, writes=[1], thread=MAIN)

    assert nodes_of(program) == (5, 4)


def test_a_kernel_inside_a_nested_node_is_the_inner_ones(program):
    program.machine.node_started(MAIN, 0, 4)
    program.machine.node_started(MAIN, 1, 5)
    program.launch(A, writes=[1])
    program.machine.node_ended(MAIN, 1, 5)
    program.launch(B, writes=[1])

    assert nodes_of(program) == (5, 4)


def test_a_kernel_after_a_node_is_nobodys(program):
    program.machine.node_started(MAIN, 0, 4)
    program.launch(A, writes=[1])
    program.machine.node_ended(MAIN, 0, 4)
    program.launch(B, writes=[1])

    assert nodes_of(program) == (4, -1)


def test_a_node_that_an_interrupt_left_open_ends_with_the_one_around_it(program):
    program.machine.node_started(MAIN, 0, 4)
    program.machine.node_started(MAIN, 1, 5)
    program.machine.node_ended(MAIN, 0, 4)
    program.launch(A, writes=[1])
    program.launch(B, writes=[1])

    assert nodes_of(program) == (-1, -1)


def test_a_node_that_an_interrupt_left_open_ends_with_its_thread(program):
    program.machine.node_started(MAIN, 0, 4)
    program.machine.thread_exited(MAIN)
    program.launch(A, writes=[1])
    program.launch(B, writes=[1])

    assert nodes_of(program) == (-1, -1)


# --- threads of the host --------------------------------------------------------------


@pytest.fixture
def threads():
    """A program of two threads, who are told apart."""
    program = Program()
    program.machine = HappensBefore(program.origin)
    program.machine.handovers_heard(MAIN)
    program.machine.program_thread_begun(MAIN, 1)
    program.machine.program_thread_entered(WORKER, 1)
    return program


def test_a_wait_of_one_thread_orders_nothing_for_another(threads):
    threads.launch(A, writes=[1], thread=WORKER)
    threads.machine.stream_synchronized(A, WORKER)
    threads.launch(B, reads=[1], thread=MAIN)

    assert threads.races() == RACE


def test_a_handover_passes_the_waits_of_one_thread_to_another(threads):
    threads.launch(A, writes=[1], thread=WORKER)
    threads.machine.stream_synchronized(A, WORKER)
    threads.machine.handed_over(WORKER, "queue")
    threads.machine.taken_over(MAIN, "queue")
    threads.launch(B, reads=[1], thread=MAIN)

    assert threads.races() == []


def test_a_wait_after_a_handover_is_not_passed_on(threads):
    threads.launch(A, writes=[1], thread=WORKER)
    threads.machine.handed_over(WORKER, "queue")
    threads.machine.stream_synchronized(A, WORKER)
    threads.machine.taken_over(MAIN, "queue")
    threads.launch(B, reads=[1], thread=MAIN)

    assert threads.races() == RACE


def test_a_thread_begins_with_what_its_starter_knows(threads):
    threads.launch(A, writes=[1], thread=MAIN)
    threads.machine.stream_synchronized(A, MAIN)
    threads.machine.program_thread_begun(MAIN, 2)
    threads.machine.program_thread_entered("third", 2)
    threads.launch(B, reads=[1], thread="third")
    assert threads.races() == []

    threads.launch(C, reads=[1], thread=WORKER)
    assert threads.races() == [(A, "kernel", C, "kernel")]


def test_a_thread_that_joins_another_inherits_its_waits(threads):
    threads.launch(A, writes=[1], thread=WORKER)
    threads.machine.stream_synchronized(A, WORKER)
    threads.machine.program_thread_left(WORKER, 1)
    threads.machine.taken_over(MAIN, 1)
    threads.launch(B, reads=[1], thread=MAIN)

    assert threads.races() == []


def test_a_thread_that_nobody_has_begun_may_have_been_told_anything(threads):
    threads.launch(A, writes=[1], thread=WORKER)
    threads.machine.stream_synchronized(A, WORKER)
    threads.launch(B, reads=[1], thread="unknown")

    assert threads.races() == []


def test_nodes_come_after_who_has_called_their_pass_and_before_what_it_does_next(
    threads,
):
    threads.launch(A, writes=[1], thread=MAIN)
    threads.machine.stream_synchronized(A, MAIN)
    threads.machine.task_begun(MAIN, 3, "train.py:7")
    threads.machine.node_started("engine", 3, 7)
    threads.launch(B, reads=[1], writes=[2], thread="engine")
    threads.machine.stream_synchronized(B, "engine")
    threads.machine.node_ended("engine", 3, 7)
    threads.machine.task_left(MAIN, 3)
    threads.launch(C, reads=[2], thread=MAIN)
    assert threads.races() == []

    threads.launch("sim:1/1", reads=[2], thread=WORKER)
    assert threads.races() == [(B, "kernel", "sim:1/1", "kernel")]


def test_a_node_does_not_know_what_another_thread_has_waited_for(threads):
    threads.launch(A, writes=[1], thread=WORKER)
    threads.machine.stream_synchronized(A, WORKER)
    threads.machine.task_begun(MAIN, 3, "train.py:7")
    threads.machine.node_started("engine", 3, 7)
    threads.launch(B, reads=[1], thread="engine")

    assert threads.races() == RACE


def test_an_access_that_one_thread_does_not_know_to_be_done_is_not_forgotten(threads):
    for part in range(200):
        layout = f"{8 * part};1;8;8"
        threads.launch(A, writes=[1], layout=layout, name=str(part), thread=MAIN)
        threads.machine.stream_synchronized(A, MAIN)
    threads.launch(B, reads=[1], layout="0;1;8;8", thread=WORKER)

    assert threads.races() == [(A, "0", B, "kernel")]


# --- memory of the host ---------------------------------------------------------------


@pytest.mark.parametrize("writes", [False, True])
def test_the_host_has_to_wait_for_a_copy_into_its_memory(program, writes):
    program.launch(A, writes=[1])
    program.machine.host_accessed(MAIN, 1, WHOLE, writes, "a.py:4")

    assert program.races() == [(A, "kernel", "host", "host")]


def test_the_host_may_read_what_is_being_copied_and_not_write_it(program):
    program.launch(A, reads=[1])
    program.machine.host_accessed(MAIN, 1, WHOLE, False, "")
    assert program.races() == []

    program.machine.host_accessed(MAIN, 1, WHOLE, True, "")
    assert program.races() == [(A, "kernel", "host", "host")]


def test_a_host_that_has_waited_may_use_its_memory(program):
    program.launch(A, writes=[1])
    program.machine.stream_synchronized(A)
    program.machine.host_accessed(MAIN, 1, WHOLE, True, "")
    program.launch(A, reads=[1])
    program.launch(B, reads=[1])

    assert program.races() == []


def test_other_bytes_of_the_memory_may_be_used_meanwhile(program):
    program.launch(A, writes=[1], layout="0;4;8;8")
    program.machine.host_accessed(MAIN, 1, "32;4;8;8", True, "")

    assert program.races() == []


def test_a_host_write_races_with_a_kernel_that_another_thread_launches(threads):
    threads.machine.host_accessed(WORKER, 1, WHOLE, True, "")
    threads.launch(A, reads=[1], thread=MAIN)

    assert threads.races() == [("host (1)", "host", A, "kernel")]


def test_two_threads_of_the_host_may_do_with_their_memory_what_they_like(threads):
    threads.machine.host_accessed(WORKER, 1, WHOLE, True, "")
    threads.machine.host_accessed(MAIN, 1, WHOLE, True, "")

    assert threads.races() == []


def test_memory_of_the_host_may_go_while_it_is_copied(program):
    program.launch(A, reads=[1])
    program.machine.memory_freed(1, "")

    assert program.races() == []


# --- waits that were not needed -------------------------------------------------------


def test_a_wait_for_new_work_is_needed(program):
    for _ in range(3):
        program.launch(A, writes=[1])
        program.wait_stream(B, A)
        program.launch(B, reads=[1])
        program.wait_stream(A, B)

    assert program.needless() == []


def test_a_second_wait_for_the_same_is_not(program):
    program.launch(A, writes=[1])
    program.wait_stream(B, A)
    program.wait_stream(B, A, "a.py:3")

    ((wait, times),) = program.machine.findings.needless_waits
    assert (wait.stream, wait.producer, times) == (B, A, 1)
    assert wait.location == "a.py:3"
    assert str(wait) == "sim:0/1 need not wait for sim:0/0 at a.py:3: it does already"


@pytest.mark.parametrize("wait", ["event", "stream", "device"])
def test_a_wait_for_what_the_host_has_waited_for_is_not(program, wait):
    program.launch(A, writes=[1])
    event = program.record(A)
    match wait:
        case "event":
            program.machine.event_synchronized(event)
        case "stream":
            program.machine.stream_synchronized(A)
        case "device":
            program.machine.device_synchronized("sim:0")
    program.wait(B, event)

    assert program.needless() == [(B, A)]


def test_a_wait_of_a_stream_for_itself_is_not(program):
    program.launch(A, writes=[1])
    program.wait_stream(A, A)

    assert program.needless() == [(A, A)]


def test_a_wait_for_an_older_event_of_a_chain_is_not(program):
    program.launch(A, writes=[1])
    event = program.record(A)
    program.wait_stream(B, A)
    program.wait_stream(C, B)
    program.wait(C, event)

    assert program.needless() == [(C, A)]


def test_a_wait_for_a_stream_that_has_done_nothing_is_not_called_needless(program):
    program.wait_stream(B, A)

    assert program.needless() == []


def test_a_line_that_was_needed_once_is_not_needless(program):
    program.launch(A, writes=[1])
    for late in (B, B, C):
        program.wait_stream(late, A, "a.py:3")
    program.wait_stream(B, A, "a.py:9")

    assert [wait.location for wait, _ in program.machine.findings.needless_waits] == [
        "a.py:9"
    ]


def test_no_wait_is_called_needless_after_a_race(program):
    """It may be the very wait that came too late."""
    program.launch(A, writes=[1])
    program.launch(B, reads=[1])
    program.wait_stream(B, A)

    assert program.needless() == []


# --- what is not known ----------------------------------------------------------------


def test_work_that_began_before_the_observation_races_with_nothing(program):
    program.machine.array_accessed(99, 1, WHOLE, writes=True)
    program.wait(B, 98)
    program.machine.event_synchronized(98)
    program.machine.memory_freed(1, A)
    program.machine.memory_shared(1, A)
    program.machine.node_ended(MAIN, 0, 4)
    program.machine.thread_exited(MAIN)
    program.launch(B, reads=[1])

    assert program.races() == []


def test_an_access_of_unknown_layout_is_left_out(program):
    program.launch(A, writes=[1], layout="(lost)")
    program.launch(B, writes=[1])

    assert program.races() == []


# --- long runs ------------------------------------------------------------------------


def test_an_event_that_is_long_gone_still_orders_what_it_marks(program):
    program.launch(A, writes=[1])
    event = program.record(A)
    for _ in range(70_000):
        program.record(C)
    program.wait(B, event)
    program.launch(B, reads=[1])

    assert program.races() == []


def test_a_long_run_is_remembered_in_bounded_memory(program):
    def size():
        machine = program.machine
        accesses = sum(map(len, machine._memories.values()))
        return len(machine._kernels) + accesses

    sizes = []
    for step in range(40):
        for part in range(300 * step, 300 * step + 300):
            program.launch(A, reads=[1], layout=f"{8 * part};1;8;8")
        program.machine.memory_allocated(step + 2, A, 8)
        program.launch(A, writes=[step + 2])
        program.machine.memory_freed(step + 2, A)
        program.machine.stream_synchronized(A)
        sizes.append(size())

    assert max(sizes[20:]) == max(sizes[30:]) < 5_000
    assert len(program.machine._memories) == 1


@pytest.mark.parametrize("later", ["reads", "writes"])
def test_the_first_of_very_many_accesses_is_not_forgotten(program, later):
    for part in range(2_000):
        program.launch(A, writes=[1], layout=f"{8 * part};1;8;8", name=f"part{part}")
    program.launch(B, layout="0;1;8;8", **{later: [1]})

    assert program.races() == [(A, "part0", B, "kernel")]


def test_of_very_many_accesses_those_are_forgotten_that_a_later_one_covers(program):
    for part in range(2_000):
        program.launch(A, reads=[1], layout=f"{8 * part};1;8;8")
    program.launch(A, writes=[1], layout="0;2000;8;8")

    (known,) = program.machine._memories.values()
    assert len(known) == 1


def test_the_same_accesses_again_and_again_are_remembered_once(program):
    for part in (0, 1, 2, 3) * 500:
        program.launch(A, reads=[1], layout=f"{8 * part};1;8;8")
        program.launch(B, reads=[1], layout=f"{8 * part};1;8;8")

    (known,) = program.machine._memories.values()
    assert len(known) == 8
