import gc
import threading

import pytest

from gradviz.backends import simulated
from gradviz.backends.simulated.devices.device_worker import StreamThreads
from gradviz.backends.simulated.devices.machine import machine
from gradviz.backends.simulated.devices.work import new_work
from gradviz.backends.stream import Event, Stream, default_stream, synchronize
from gradviz.trace import probe
from tests.backends.simulated.bench import (
    PATIENCE_S,
    SIM0,
    SIM1,
    Ear,
    held,
    on,
    put,
    queue_of,
)


def test_a_launch_returns_before_the_kernel_has_run():
    x = on(SIM0, [1.0, 2.0])
    stream = default_stream(SIM0)

    with held(stream):
        y = x + x
        assert not stream.query()

    assert y.tolist() == [2.0, 4.0]
    assert stream.query()


def test_a_stream_works_in_order_and_on_one_thread():
    stream = Stream(SIM0)
    seen = []

    for i in range(50):
        put(stream, lambda i=i: seen.append((i, threading.current_thread().name)))
    stream.synchronize()

    assert seen == [(i, f"gv_{stream}") for i in range(50)]


def test_two_streams_work_at_the_same_time():
    one, other = Stream(SIM0), Stream(SIM0)
    met = threading.Barrier(2)

    put(one, lambda: met.wait(PATIENCE_S))
    put(other, lambda: met.wait(PATIENCE_S))
    synchronize(SIM0)

    assert not met.broken


@pytest.mark.parametrize("consumer", [SIM0, SIM1])
def test_a_stream_waits_for_the_event_of_another(consumer):
    one, other = Stream(SIM0), Stream(consumer)
    seen = []

    with held(one):
        put(one, lambda: seen.append("before"))
        event = one.record_event()
        put(one, lambda: seen.append("after"))
        other.wait_event(event)
        work = put(other, lambda: seen.append("waited"))
        assert not work.is_done
        assert not event.query()
    other.synchronize()

    assert seen.index("before") < seen.index("waited")


def test_the_host_waits_for_an_event_and_not_for_what_comes_later():
    stream = Stream(SIM0)
    event = Event()
    put(stream, lambda: None)
    event.record(stream)

    with held(stream):
        event.synchronize()
        assert event.query()
        assert not stream.query()


def test_an_event_keeps_time():
    stream = Stream(SIM0)
    begin, end = Event(enable_timing=True), Event(enable_timing=True)
    begin.record(stream)
    put(stream, lambda: None)
    end.record(stream)
    end.synchronize()

    assert begin.elapsed_time(end) > 0


def test_threads_are_daemons():
    on(SIM0, [1.0])
    synchronize(SIM0)

    workers = [one for one in threading.enumerate() if one.name.startswith("gv_sim:0/")]
    assert workers
    assert all(worker.daemon for worker in workers)


def test_a_kernel_sleeps_as_long_as_the_latency_says():
    asked = []
    stream = Stream(SIM0)
    event, later = Event(enable_timing=True), Event(enable_timing=True)

    def latency(stream, kernel):
        asked.append((stream, kernel))
        return 2_000_000

    simulated.set_latency(latency)
    try:
        event.record(stream)
        put(stream, lambda: None, "slow")
        later.record(stream)
        stream.synchronize()
    finally:
        simulated.set_latency(None)

    # Another test's work may still be under way, on another device.
    assert [one for one in asked if one[0] == str(stream)] == [(str(stream), "slow")]
    assert event.elapsed_time(later) >= 2


def test_the_latency_is_time_that_the_kernel_takes():
    ear = Ear()
    simulated.set_latency(simulated.fixed(1_000_000))
    try:
        with probe.installed(ear):
            on(SIM0, [1.0])
            synchronize(SIM0)
    finally:
        simulated.set_latency(None)

    ((_, began_ns, ended_ns),) = ear.of("kernel_ran")
    assert ended_ns - began_ns >= 1_000_000


def test_ctrl_c_while_waiting_leaves_the_device_as_it_is(monkeypatch):
    stream = Stream(SIM0)
    begun = threading.Event()

    class Interrupted:
        """A mailbox in which Ctrl-C comes before anything else."""

        def put(self, item):
            pass

        def get(self, timeout):
            raise KeyboardInterrupt

    with held(stream):
        put(stream, begun.set)
        monkeypatch.setattr(
            "gradviz.backends.simulated.devices.device_worker.queue.SimpleQueue",
            Interrupted,
        )
        with pytest.raises(KeyboardInterrupt):
            stream.synchronize()
        monkeypatch.undo()
    stream.synchronize()

    assert begun.is_set()


def test_a_change_of_executors_waits_for_what_is_pending():
    stream = Stream(SIM0)
    seen = []
    put(stream, lambda: seen.append(1))

    with simulated.stepped(0):
        assert seen == [1]
        put(stream, lambda: seen.append(2))
        assert not [one for one in threading.enumerate() if one.name == f"gv_{stream}"]

    assert seen == [1, 2]
    assert type(machine.executor).__name__ == "StreamThreads"


def test_there_is_one_worker_even_if_two_threads_were_started():
    # As where Ctrl-C came after the thread was started and before anyone knew.
    stream = Stream(SIM0)
    lane = queue_of(stream).lane
    seen = []
    for i in range(20):
        lane._is_manned = False
        put(stream, lambda i=i: seen.append(i))
    stream.synchronize()

    assert seen == list(range(20))


def test_a_thread_that_never_ran_is_replaced(monkeypatch, spare):
    stream = Stream(spare)

    def interrupted(thread):
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    seen = []
    with pytest.raises(KeyboardInterrupt):
        put(stream, lambda: seen.append(1))
    monkeypatch.undo()
    stream.synchronize()

    assert seen == [1]


def test_a_closed_worker_may_be_closed_again():
    worker = StreamThreads(lambda: None).open(queue_of(Stream(SIM0)))
    worker.close()
    work = new_work(queue_of(Stream(SIM0)))
    worker.submit(work)
    worker.close()
    worker.close()

    assert work.is_done


class Finalized:
    """Does something when it is finalized, and tells how that went."""

    def __init__(self, act, told):
        self.act, self.told, self.cycle = act, told, self

    def __del__(self):
        try:
            self.told.append(self.act())
        except RuntimeError as error:
            self.told.append(str(error))


@pytest.mark.parametrize(
    "act",
    [
        lambda x, event: x.tolist(),
        lambda x, event: x + x,
        lambda x, event: event.synchronize(),
        lambda x, event: synchronize(SIM0),
    ],
    ids=["read", "launch", "wait for an event", "wait for a device"],
)
def test_a_finaliser_on_a_streams_own_thread_is_refused_what_would_never_end(act):
    x, stream, told = on(SIM0, [1.0]), Stream(SIM0), []

    def kernel():
        Finalized(lambda: act(x, event), told)
        gc.collect()

    with held(stream):
        put(stream, kernel)
        event = stream.record_event()
    stream.synchronize()

    assert len(told) == 1
    assert f"on the thread of stream {stream}, which would wait for itself" in told[0]
    assert (x + x).tolist() == [2.0]
