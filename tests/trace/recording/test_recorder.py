import errno
import gc
import itertools
import subprocess
import sys
import textwrap
import threading
import weakref

import msgspec
import pytest

from gradviz.trace import probe
from gradviz.trace.events import MAX_SEQUENCE_NR, kind_name
from gradviz.trace.probe import METHODS, Push
from gradviz.trace.reading.reader import load_trace, parse_trace
from gradviz.trace.recording.recorder import Recorder, alone
from gradviz.trace.recording.sink import MemorySink
from tests.trace.reports import CALLS, KEPT_OTHERWISE, parameters_of


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("method", CALLS)
def test_a_reported_event_is_read_unchanged(bench, method, by_name):
    fields = CALLS[method]
    named = {
        one.name: fields[one.name]
        for one in parameters_of(method)
        if by_name or one.kind is one.KEYWORD_ONLY
    }
    positional = [value for name, value in fields.items() if name not in named]

    getattr(bench.recorder, method)(*positional, **named)
    line = sys._getframe().f_lineno - 1

    (event,) = bench.events()
    expected = {"seq": 0, "t_ns": event.t_ns, "thread": 0, "task": -1, "node": -1}
    expected["inferred"] = False
    if hasattr(event, "location"):
        expected["location"] = f"{__file__}:{line}"
    if hasattr(event, "thread_time_ns"):
        expected["thread_time_ns"] = -1  # of the bench nobody knows it
    assert kind_name(type(event)) == method
    assert msgspec.structs.asdict(event) == expected | fields


#: `task_begun` takes all by name, and calls of modules have arguments with defaults.
OTHERWISE = {"task_begun", "forward_begun", "forward_ended"}


@pytest.mark.parametrize("method", sorted(CALLS.keys() - OTHERWISE))
def test_a_report_with_one_argument_too_few_or_too_many_is_refused(bench, method):
    report, fields = getattr(bench.recorder, method), CALLS[method]

    for wrong in ([*fields.values()][:-1], [*fields.values(), 0]):
        with pytest.raises(TypeError, match="argument"):
            report(*wrong)
    assert bench.events() == []


def test_a_node_is_read_with_the_line_that_made_it(bench, make_node):
    bench.recorder.node_created(make_node(4, sequence_nr=17))
    line = sys._getframe().f_lineno - 1

    (event,) = bench.events()
    assert (event.node, event.sequence_nr) == (4, 17)
    assert event.location == f"{__file__}:{line}"


def test_every_method_of_a_probe_is_recorded():
    without_event = {
        *("call_returned", "model_defined", "nodes_defined", "nodes_placed"),
        *("queue_defined", "rows_reported"),
    }
    assert set(METHODS) == {*CALLS, *KEPT_OTHERWISE, *without_event}
    assert all(
        getattr(Recorder, one) is not getattr(probe.Probe, one) for one in METHODS
    )


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("", "nothing reports NodeParked: give Probe a method node_parked"),
        (
            "probe.Probe.node_parked = lambda self, task, node, how_deep: None",
            "Probe.node_parked takes task, node, how_deep; expected the columns",
        ),
    ],
)
def test_a_kind_that_is_not_reported_as_it_is_kept_fails_at_import(
    run_python, method, told
):
    result = run_python(f"""
        from gradviz.trace import events, probe, rules

        class NodeParked(events.Event, frozen=True, kw_only=True):
            code = 35
            depth: int

        events.KINDS[35] = NodeParked
        {method}
        import gradviz.trace.recording.recorder
    """)

    assert f"TypeError: {told}" in result.stderr


def test_that_handovers_are_heard_is_said_by_who_listens_and_where_it_matters(bench):
    bench.recorder.handovers_heard()
    bench.recorder.mark("nothing")
    other = threading.Thread(target=bench.recorder.handed_over, args=(7,))
    other.start()
    other.join()
    bench.recorder.kernel_launched(1, "sim:0/0", "add")
    bench.recorder.taken_over(7)

    assert [(kind_name(type(one)), one.thread) for one in bench.events()] == [
        ("mark", 0),
        ("handed_over", 1),
        ("handovers_heard", 0),
        ("kernel_launched", 0),
        ("taken_over", 0),
    ]


def test_a_stream_is_named_once_and_its_line_before_that():
    sink, names = MemorySink(), iter(["", "", "side"])
    recorder = Recorder(
        sink, flush_every_s=None, describe_stream=lambda *_: (next(names), "a.py:3")
    )
    recorder.kernel_launched(1, "sim:0/1", "add")
    recorder.kernel_launched(2, "sim:0/1", "add")
    for kernel in range(3, 6):
        recorder.kernel_launched(kernel, "sim:0/1", "add")
    recorder.close()

    table = parse_trace(sink.contents()).columns["stream_named"]
    assert table.num_rows == 2


def test_the_largest_sequence_number_survives(bench, make_node):
    leaf = make_node(4, "AccumulateGrad", MAX_SEQUENCE_NR)
    bench.recorder.node_created(leaf)
    bench.recorder.nodes_defined([leaf])
    bench.recorder.task_pushed(0, 4, 0, 0, MAX_SEQUENCE_NR, 1, 1, 3, Push.NODE)

    trace = bench.trace()
    created, pushed = trace.events()
    assert created.sequence_nr == pushed.sequence_nr == MAX_SEQUENCE_NR
    assert trace.nodes[4].sequence_nr == MAX_SEQUENCE_NR
    assert trace.columns["task_pushed"]["sequence_nr"].tolist() == [-1]


def test_events_are_in_the_order_in_which_they_were_reported(bench):
    for number in range(100):
        bench.recorder.node_started(0, number)
        bench.recorder.node_completed(0, number)

    events = bench.events()
    assert [event.node for event in events] == [n for n in range(100) for _ in "ab"]
    assert [event.seq for event in events] == list(range(200))


def test_times_increase_although_the_clock_stands_still():
    sink = MemorySink()
    recorder = Recorder(sink, clock=lambda: 5, flush_every_s=None)
    for number in range(50):
        recorder.task_popped(0, number, 0, 0)
        recorder.node_started(0, number)
    recorder.close()

    events = list(parse_trace(sink.contents()).events())
    assert all(a.t_ns < b.t_ns for a, b in itertools.pairwise(events))
    assert [event.node for event in events] == [n for n in range(50) for _ in "ab"]


def test_each_thread_has_its_number_and_its_name(bench):
    def report(node):
        bench.recorder.node_started(0, node)

    report(0)
    for node in (1, 2):
        thread = threading.Thread(target=report, args=(node,), name=f"worker {node}")
        thread.start()
        thread.join()

    trace = bench.trace()
    events = list(trace.events())
    assert [event.thread for event in events] == [0, 1, 2]
    assert [trace.threads[number].name for number in (1, 2)] == ["worker 1", "worker 2"]


def test_threads_may_be_anything_that_has_storage_of_its_own():
    class Everybody:
        """A thread-local in which all threads are the same."""

    sink = MemorySink()
    recorder = Recorder(
        sink, local=Everybody, thread_name=lambda: "green", flush_every_s=None
    )
    thread = threading.Thread(target=recorder.node_started, args=(0, 1))
    thread.start()
    thread.join()
    recorder.node_started(0, 2)
    recorder.close()

    trace = parse_trace(sink.contents())
    assert [event.thread for event in trace.events()] == [0, 0]
    assert [thread.name for thread in trace.threads.values()] == ["green"]


def test_nothing_is_lost_between_threads_and_a_busy_writer():
    num_threads, num_events = 4, 5_000
    sink = MemorySink()
    recorder = Recorder(sink, flush_every_s=0.001)

    def report(task):
        for node in range(num_events):
            recorder.node_started(task, node)
            recorder.task_popped(task, node, task, 1)

    threads = [threading.Thread(target=report, args=(n,)) for n in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close()

    trace = parse_trace(sink.contents())
    assert trace.losses.is_complete
    for task in range(num_threads):
        nodes = [event.node for event in trace.events(task=task)]
        assert nodes == [node for node in range(num_events) for _ in "ab"]


def test_flushed_events_can_be_read_before_the_end(bench):
    bench.engine.backward()
    bench.recorder.flush()

    trace = parse_trace(bench.sink.contents())
    assert trace.tasks == (0,)
    assert not trace.losses.closed


def test_counts_say_how_much_there_is(bench):
    bench.engine.backward(task=0, length=3)
    bench.engine.backward(task=1, length=4, first_id=3)
    trace = bench.trace()

    assert bench.recorder.counts == (2, 7, trace.num_events, 0)


def test_closing_twice_is_closing_once(bench):
    once = bench.data()
    bench.recorder.close()

    assert bench.sink.contents() == once


def test_reports_after_the_end_are_ignored(bench, make_node):
    bench.recorder.node_started(0, 1)
    data = bench.data()
    bench.engine.backward()

    assert bench.sink.contents() == data
    assert len(list(parse_trace(data).events())) == 1


def test_a_thread_that_comes_after_the_end_is_not_kept(bench):
    bench.recorder.close()
    thread = threading.Thread(target=bench.engine.backward)
    thread.start()
    thread.join()

    assert parse_trace(bench.sink.contents()).num_events == 0


def test_a_node_is_not_kept_alive(bench, make_node):
    class Weak:
        id, sequence_nr, topological_nr, runs_on, module_path = 1, 0, 0, "cpu", ""
        next_edges = input_metadata = ()

        def name(self):
            return "Weak"

    node = Weak()
    gone = weakref.ref(node)
    bench.recorder.node_created(node)
    bench.recorder.nodes_defined([node])
    del node
    gc.collect()

    assert gone() is None


def test_a_node_says_which_part_of_a_model_made_it(bench, make_node):
    named, nameless = make_node(1, module_path="encoder.0.linear"), make_node(2)
    bench.recorder.nodes_defined([named, nameless])
    bench.recorder.close()

    nodes = parse_trace(bench.sink.contents()).nodes
    assert (nodes[1].module, nodes[2].module) == ("encoder.0.linear", "")


def test_the_writer_thread_ends_with_the_recording():
    before = set(threading.enumerate())
    recorder = Recorder(MemorySink())
    (writer,) = (
        one for one in set(threading.enumerate()) - before if "writer" in one.name
    )
    recorder.close()

    assert not writer.is_alive()


def test_a_flood_is_cut_and_the_loss_is_told(bench, monkeypatch):
    monkeypatch.setattr("gradviz.trace.recording.recorder.MANY", 40)
    monkeypatch.setattr("gradviz.trace.recording.recorder.TOO_MANY", 400)
    for number in range(500):
        bench.recorder.handed_over(number)
    bench.recorder.flush()
    bench.recorder.node_started(0, 7)

    trace = bench.trace()
    events = list(trace.events())
    kept = len(trace.columns["handed_over"]["seq"])
    assert 100 <= kept < 110
    assert trace.losses.dropped == 500 - kept
    assert events[-1].node == 7
    assert bench.recorder.counts.dropped == 500 - kept


def test_a_long_list_calls_the_writer_before_its_time(monkeypatch):
    monkeypatch.setattr("gradviz.trace.recording.recorder.MANY", 40)
    written = threading.Event()

    class Bell(MemorySink):
        def write(self, data):
            super().write(data)
            if parse_trace(self.contents()).num_events:
                written.set()

    recorder = Recorder(Bell(), flush_every_s=3_600)
    for number in range(20):
        recorder.handed_over(number)

    assert written.wait(30)
    recorder.close()


def test_an_invalid_number_costs_its_event_and_no_other(bench):
    bench.recorder.node_started(0, "one")
    bench.recorder.node_started(0, 2**64)
    bench.recorder.node_completed(0, 2)

    trace = bench.trace()
    assert [event.node for event in trace.events()] == [2]
    assert trace.losses.dropped == 2


class FailingSink(MemorySink):
    """A disk that is full after the header."""

    def __init__(self, error):
        super().__init__()
        self.error = error
        self.is_closed = False

    def write(self, data):
        if self.contents():
            raise self.error
        super().write(data)

    def close(self):
        self.is_closed = True


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EIO, "Input/output error"),
        BrokenPipeError(),
        ValueError("I/O operation on closed file"),
    ],
)
def test_a_sink_that_fails_is_dropped_with_one_warning(error):
    """F12."""
    sink = FailingSink(error)
    recorder = Recorder(sink, flush_every_s=None)
    recorder.node_started(0, 1)
    with pytest.warns(RuntimeWarning, match="the trace is incomplete"):
        recorder.flush()
    recorder.node_started(0, 2)
    recorder.flush()
    recorder.close()

    assert sink.is_closed
    assert recorder.failure is error
    assert not parse_trace(sink.contents()).losses.is_complete


def test_a_sink_that_fails_at_the_end_is_told():
    class NoEnd(MemorySink):
        def close(self):
            raise OSError(errno.EDQUOT, "Disk quota exceeded")

    recorder = Recorder(NoEnd(), flush_every_s=None)
    with pytest.warns(RuntimeWarning, match="Disk quota exceeded"):
        recorder.close()


def test_a_sink_that_hangs_does_not_hold_up_the_end(monkeypatch):
    monkeypatch.setattr("gradviz.trace.recording.recorder._CLOSE_TIMEOUT_S", 0.01)
    release = threading.Event()
    hangs = threading.Event()

    class Hanging(MemorySink):
        def write(self, data):
            if self.contents():
                hangs.set()
                release.wait(30)
            super().write(data)

    recorder = Recorder(Hanging(), flush_every_s=0.001)
    recorder.node_started(0, 1)
    assert hangs.wait(30)
    with pytest.warns(RuntimeWarning, match="did not return"):
        recorder.close()
    release.set()


class Interrupted(MemorySink):
    """In the middle of its second write somebody calls the recorder."""

    def __init__(self):
        super().__init__()
        self.calls = [lambda: None, lambda: None]

    def write(self, data):
        if self.calls:
            self.calls.pop()()
        super().write(data)


def test_a_flush_inside_a_flush_is_done_when_that_one_is():
    sink = Interrupted()
    recorder = Recorder(sink, flush_every_s=None)

    def handler():
        recorder.node_started(0, 2)
        recorder.flush()

    sink.calls = [handler]
    recorder.node_started(0, 1)
    recorder.flush()

    trace = parse_trace(sink.contents())
    assert [event.node for event in trace.events()] == [1, 2]
    recorder.close()
    assert parse_trace(sink.contents()).losses.is_complete


def test_a_recorder_closed_inside_a_flush_is_closed_after_it():
    sink = Interrupted()
    recorder = Recorder(sink, flush_every_s=None)
    sink.calls = [recorder.close]
    recorder.node_started(0, 1)
    recorder.flush()

    trace = parse_trace(sink.contents())
    assert [event.node for event in trace.events()] == [1]
    assert trace.losses.is_complete


def test_a_signal_that_strikes_a_flush_may_flush(tmp_path):
    path = tmp_path / "x.gvt"
    end = """
    signal.signal(signal.SIGUSR1, lambda *_: recorder.flush())
    write, strikes = os.write, [signal.SIGUSR1]

    def struck(file, data):
        if strikes:
            signal.raise_signal(strikes.pop())
        return write(file, data)

    os.write = struck
    recorder.flush()
    """
    result = run(PROGRAM + end, path)

    assert (result.returncode, result.stderr) == (0, "")
    assert load_trace(path).losses.is_complete


def test_a_child_that_is_forked_during_a_write_does_not_wait_for_it(tmp_path):
    path = tmp_path / "x.gvt"
    end = """
    import threading, warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # there are threads, yes
    writes, forked = threading.Event(), threading.Event()
    write = os.write

    def slow(file, data):
        writes.set()
        forked.wait(30)
        return write(file, data)

    os.write = slow
    writer = threading.Thread(target=recorder.flush)
    writer.start()
    writes.wait(30)
    pid = os.fork()
    if pid == 0:
        recorder.flush()
        recorder.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    forked.set()
    writer.join()
    """
    result = run(PROGRAM + end, path)

    assert (result.returncode, result.stderr) == (0, "")
    assert load_trace(path).num_events == 1


def test_a_sink_that_takes_no_header_is_the_callers_error():
    class Full(MemorySink):
        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        Recorder(Full())


def run(program, *args):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, args)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


PROGRAM = """
    import os, signal, sys
    from pathlib import Path
    from gradviz.trace import probe
    from gradviz.trace.recording.recorder import Recorder
    from gradviz.trace.recording.sink import FileSink

    recorder = Recorder(FileSink(Path(sys.argv[1])), flush_every_s=None)
    probe.install(recorder)
    recorder.node_started(0, 1)
"""


def test_a_program_that_ends_without_closing_leaves_a_whole_trace(tmp_path):
    path = tmp_path / "x.gvt"
    result = run(PROGRAM, path)

    assert (result.returncode, result.stderr) == (0, "")
    assert load_trace(path).losses.is_complete
    assert load_trace(path).num_events == 1


def test_a_killed_program_leaves_everything_that_was_flushed(tmp_path):
    path = tmp_path / "x.gvt"
    end = """
    recorder.flush()
    recorder.node_completed(0, 1)
    os.kill(os.getpid(), signal.SIGKILL)
    """
    run(PROGRAM + end, path)

    trace = load_trace(path)
    assert [type(event).__name__ for event in trace.events()] == ["NodeStarted"]
    assert not trace.losses.closed
    assert not trace.losses.truncated


def test_the_child_of_a_fork_leaves_its_parents_trace_alone(tmp_path):
    path = tmp_path / "x.gvt"
    end = """
    pid = os.fork()
    if pid == 0:
        assert probe.current is None
        recorder.node_completed(0, 1)
        recorder.flush()
        recorder.close()
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    recorder.node_skipped(0, 2, 0)
    """
    result = run(PROGRAM + end, path)

    assert (result.returncode, result.stderr) == (0, "")
    trace = load_trace(path)
    kinds = [type(event).__name__ for event in trace.events()]
    assert kinds == ["NodeStarted", "NodeSkipped"]
    assert trace.losses.is_complete


def test_a_recording_is_alone_while_only_its_writer_could_run(tmp_path):
    """A search among all objects would break what other threads construct."""
    code = """
import threading
from gradviz.trace.recording.recorder import Recorder, alone
from gradviz.trace.recording.sink import MemorySink

recorder = Recorder(MemorySink())
with alone() as is_alone:
    print(is_alone)
go_on = threading.Event()
thread = threading.Thread(target=go_on.wait)
thread.start()
with alone() as is_alone:
    print(is_alone)
go_on.set()
thread.join()
recorder.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )

    assert done.stdout == "True\nFalse\n"


def test_nothing_is_written_while_all_writers_are_paused(bench):
    with alone():
        bench.recorder.node_started(0, 7)
        bench.recorder.flush()
        assert not bench.recorder.counts.events
    bench.recorder.flush()

    assert bench.recorder.counts.events == 1
