import errno
import gc
import itertools
import subprocess
import sys
import textwrap
import threading
import weakref

import pytest

from gradviz.trace import probe
from gradviz.trace.events import KINDS, MAX_SEQUENCE_NR, kind_name
from gradviz.trace.probe import METHODS, Hook, How, Push, Role, Skip
from gradviz.trace.reader import load_trace, parse_trace
from gradviz.trace.recorder import Recorder
from gradviz.trace.sink import MemorySink

CALLS = {
    "tensor_saved": ((4, 80), {"node": 4, "size_bytes": 80}),
    "dependencies_counted": (
        (3, 5, 6),
        {"task": 3, "num_nodes": 5, "num_edges": 6},
    ),
    "task_completed": ((3,), {"task": 3}),
    "task_failed": ((3, 4, "boom"), {"task": 3, "node": 4, "error": "boom"}),
    "callback_run": ((3, 9), {"task": 3, "index": 9}),
    "capture_taken": ((3, 4, 9), {"task": 3, "node": 4, "output_index": 9}),
    "task_pushed": (
        (3, 4, 5, 6, 7, 8, 9, 10, Push.ROOT),
        {
            "task": 3,
            "node": 4,
            "queue": 5,
            "reentrant_depth": 6,
            "sequence_nr": 7,
            "queue_length": 8,
            "outstanding": 9,
            "pushed_by": 10,
            "what": Push.ROOT,
        },
    ),
    "task_popped": (
        (3, 4, 5, 6),
        {"task": 3, "node": 4, "queue": 5, "queue_length": 6},
    ),
    "queue_waited": ((5, 900), {"queue": 5, "waited_ns": 900}),
    "node_started": ((3, 4), {"task": 3, "node": 4}),
    "node_completed": ((3, 4), {"task": 3, "node": 4}),
    "node_failed": ((3, 4, "boom"), {"task": 3, "node": 4, "error": "boom"}),
    "node_skipped": (
        (3, 4, Skip.ERROR),
        {"task": 3, "node": 4, "reason": Skip.ERROR},
    ),
    "hook_called": (
        (3, 4, Hook.POST, 2),
        {"task": 3, "node": 4, "hook": Hook.POST, "index": 2},
    ),
    "gradient_buffered": (
        (3, 4, 5, 6, 7, 8, How.STOLEN),
        {
            "task": 3,
            "node": 4,
            "producer": 5,
            "input_nr": 6,
            "remaining": 7,
            "size_bytes": 8,
            "how": How.STOLEN,
        },
    ),
    "gradient_accumulated": (
        (3, 4, How.COPIED),
        {"task": 3, "node": 4, "how": How.COPIED},
    ),
    "buffer_freed": ((3, 4, 80), {"task": 3, "node": 4, "size_bytes": 80}),
    "event_recorded": (
        (3, 4, "sim:0/1", 5),
        {"task": 3, "node": 4, "stream": "sim:0/1", "event": 5},
    ),
    "leaf_stream_synced": (
        (3, "sim:0/1", "sim:0/0", 5),
        {"task": 3, "stream": "sim:0/1", "caller_stream": "sim:0/0", "event": 5},
    ),
    "event_synchronized": ((5,), {"event": 5}),
    "stream_synchronized": (("sim:0/1",), {"stream": "sim:0/1"}),
    "device_synchronized": (("sim:0",), {"device": "sim:0"}),
    "array_accessed": (
        (5, 6, "0;2,3;24,8;8", True),
        {"kernel": 5, "memory": 6, "layout": "0;2,3;24,8;8", "writes": True},
    ),
    "stream_named": (
        ("sim:0/1", "side", "a.py:3"),
        {"stream": "sim:0/1", "name": "side", "location": "a.py:3"},
    ),
    "program_thread_begun": ((7,), {"key": 7}),
    "program_thread_entered": ((7,), {"key": 7}),
    "program_thread_left": ((7,), {"key": 7}),
    "handed_over": ((7,), {"key": 7}),
    "taken_over": ((7,), {"key": 7}),
    "kernel_ran": ((5, 60, 70), {"kernel": 5, "began_ns": 60, "ended_ns": 70}),
    "memory_allocated": (
        (6, "sim:0/1", 80),
        {"memory": 6, "stream": "sim:0/1", "size_bytes": 80},
    ),
    "memory_shared": ((6, "sim:0/1"), {"memory": 6, "stream": "sim:0/1"}),
    "memory_freed": ((6, "sim:0/1"), {"memory": 6, "stream": "sim:0/1"}),
    "thread_started": ((1, Role.DEVICE), {"device": 1, "role": Role.DEVICE}),
    "thread_exited": ((1, Role.POOL), {"device": 1, "role": Role.POOL}),
    "reentrant_entered": ((3, 2), {"task": 3, "depth": 2}),
    "reentrant_left": ((3, 2), {"task": 3, "depth": 2}),
    "pool_thread_spawned": ((2,), {"num_threads": 2}),
    "mark": (("epoch 1",), {"text": "epoch 1"}),
    "step_begun": ((12,), {"step": 12}),
}


@pytest.mark.parametrize("method", CALLS)
def test_what_is_reported_is_what_is_read(bench, method):
    arguments, fields = CALLS[method]

    getattr(bench.recorder, method)(*arguments)

    (event,) = bench.events()
    common = {"seq": 0, "thread": 0, "task": -1, "node": -1}
    expected = {**common, "t_ns": event.t_ns, **fields}
    assert kind_name(type(event)) == method
    assert {name: getattr(event, name) for name in event.__struct_fields__} == expected


def test_a_task_is_read_as_it_was_begun(bench):
    bench.recorder.task_begun(
        3,
        parent=2,
        reentrant_depth=1,
        owner=-1,
        num_roots=4,
        num_outputs=5,
        keep_graph=True,
        create_graph=False,
    )
    line = sys._getframe().f_lineno - 10

    (event,) = bench.events()
    assert event.location == f"{__file__}:{line}"
    assert (event.task, event.parent, event.reentrant_depth) == (3, 2, 1)
    assert (event.owner, event.num_roots, event.num_outputs) == (-1, 4, 5)
    assert (event.keep_graph, event.create_graph) == (True, False)


def test_a_node_is_read_with_the_line_that_made_it(bench, make_node):
    bench.recorder.node_created(make_node(4, sequence_nr=17))
    line = sys._getframe().f_lineno - 1

    (event,) = bench.events()
    assert (event.node, event.sequence_nr) == (4, 17)
    assert event.location == f"{__file__}:{line}"


def test_a_kernel_is_read_with_the_line_that_launched_it(bench):
    bench.recorder.kernel_launched(5, "sim:0/1", "mul")
    line = sys._getframe().f_lineno - 1

    (event,) = bench.events()
    assert (event.kernel, event.stream, event.name) == (5, "sim:0/1", "mul")
    assert event.location == f"{__file__}:{line}"


def test_an_access_of_the_host_is_read_with_its_line(bench):
    bench.recorder.host_accessed(6, "0;2,3;24,8;8", True)
    line = sys._getframe().f_lineno - 1

    (event,) = bench.events()
    assert (event.memory, event.layout, event.writes) == (6, "0;2,3;24,8;8", True)
    assert event.location == f"{__file__}:{line}"


def test_a_wait_is_read_with_the_line_that_asked_for_it(bench):
    bench.recorder.stream_waited(3, 4, "sim:0/1", 5, 6)
    line = sys._getframe().f_lineno - 1

    (event,) = bench.events()
    assert (event.task, event.node, event.producer) == (3, 4, 6)
    assert (event.stream, event.event) == ("sim:0/1", 5)
    assert event.location == f"{__file__}:{line}"


def test_every_method_of_a_probe_is_recorded():
    definitions = {"nodes_defined", "queue_defined"}
    others = {
        *("task_begun", "node_created", "kernel_launched", "stream_waited"),
        *("host_accessed", "handovers_heard"),
    }

    assert set(METHODS) == set(CALLS) | definitions | others
    assert {kind_name(kind) for kind in KINDS.values()} == set(METHODS) - definitions
    assert all(
        getattr(Recorder, one) is not getattr(probe.Probe, one) for one in METHODS
    )


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


def test_what_was_flushed_can_be_read_before_the_end(bench):
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


def test_what_comes_after_the_end_goes_to_nobody(bench, make_node):
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
    before = threading.active_count()
    recorder = Recorder(MemorySink())
    recorder.close()

    assert threading.active_count() == before


def test_a_flood_is_cut_and_the_loss_is_told(bench, monkeypatch):
    monkeypatch.setattr("gradviz.trace.recorder.MANY", 100)
    monkeypatch.setattr("gradviz.trace.recorder.TOO_MANY", 1_000)
    for number in range(500):
        bench.recorder.task_pushed(0, number, 0, 0, 0, 1, 1, -1, Push.NODE)
    bench.recorder.flush()
    bench.recorder.node_started(0, 7)

    trace = bench.trace()
    events = list(trace.events())
    pushed = len(trace.columns["task_pushed"]["seq"])
    assert 100 <= pushed < 110
    assert trace.losses.dropped == 500 - pushed
    assert events[-1].node == 7
    assert bench.recorder.counts.dropped == 500 - pushed


def test_a_long_list_calls_the_writer_before_its_time(monkeypatch):
    monkeypatch.setattr("gradviz.trace.recorder.MANY", 50)
    written = threading.Event()

    class Bell(MemorySink):
        def write(self, data):
            super().write(data)
            if parse_trace(self.contents()).num_events:
                written.set()

    recorder = Recorder(Bell(), flush_every_s=3_600)
    for number in range(20):
        recorder.task_pushed(0, number, 0, 0, 0, 1, 1, -1, Push.NODE)

    assert written.wait(30)
    recorder.close()


def test_what_is_no_number_costs_its_events_and_nothing_else(bench):
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
    monkeypatch.setattr("gradviz.trace.recorder._CLOSE_TIMEOUT_S", 0.01)
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
    from gradviz.trace.recorder import Recorder
    from gradviz.trace.sink import FileSink

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
