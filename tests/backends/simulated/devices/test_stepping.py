import pytest

from gradviz.backends import simulated
from gradviz.backends.current_streams import on_streams
from gradviz.backends.stream import Stream, synchronize
from gradviz.trace import probe
from gradviz.trace.probe import Probe
from tests.backends.simulated.bench import SIM0, SIM1, on, put


def order(seed, waits=True):
    """Return the order of six kernels: two on each of three streams, one waiting."""
    seen = []
    with simulated.stepped(seed):
        streams = [Stream(SIM0), Stream(SIM0), Stream(SIM1)]
        for i, stream in enumerate(streams):
            put(stream, lambda i=i: seen.append(f"{i}a"))
        if waits:
            streams[2].wait_stream(streams[0])
        for i, stream in enumerate(streams):
            put(stream, lambda i=i: seen.append(f"{i}b"))
        for stream in streams:
            stream.synchronize()
    return seen


def test_a_seed_says_the_order():
    assert order(3) == order(3)
    assert len({tuple(order(seed)) for seed in range(30)}) > 5


@pytest.mark.parametrize("seed", range(30))
def test_streams_and_events_are_obeyed(seed):
    seen = order(seed)

    for stream in "012":
        assert seen.index(f"{stream}a") < seen.index(f"{stream}b")
    assert seen.index("0a") < seen.index("2b")


def test_without_the_wait_the_other_order_comes_up():
    orders = [order(seed, waits=False) for seed in range(30)]

    assert any(seen.index("2b") < seen.index("0a") for seen in orders)


def test_nothing_is_done_before_somebody_waits(stepped):
    stream = Stream(SIM0)
    seen = []
    put(stream, lambda: seen.append(1))

    assert not seen
    stream.synchronize()
    assert seen == [1]


def test_an_event_that_is_queried_repeatedly_completes(stepped):
    stream = Stream(SIM0)
    for _ in range(5):
        put(stream, lambda: None)
    event = stream.record_event()

    asked = 1
    while not event.query():
        asked += 1

    assert asked <= 5 + 1


@pytest.mark.parametrize("seed", range(5))
def test_a_missing_wait_gives_wrong_numbers(seed):
    # Of a few seeds: the consumer may be lucky, but not always.
    def run(seed, waits):
        with simulated.stepped(seed):
            producer, consumer = Stream(SIM0), Stream(SIM0)
            with on_streams((producer,)):
                x = on(SIM0, [1.0, 2.0]) * 2
            if waits:
                consumer.wait_stream(producer)
            with on_streams((consumer,)):
                y = x + 1
                return y.tolist()

    seeds = range(10 * seed, 10 * seed + 10)
    assert all(run(one, waits=True) == [3.0, 5.0] for one in seeds)
    assert any(run(one, waits=False) != [3.0, 5.0] for one in seeds)


def test_ctrl_c_in_a_kernel_leaves_the_device_as_it_is(stepped):
    stream = Stream(SIM0)
    seen = []

    def interrupt():
        raise KeyboardInterrupt

    put(stream, interrupt)
    put(stream, lambda: seen.append(1))
    with pytest.raises(KeyboardInterrupt):
        stream.synchronize()
    assert not seen

    # What the kernel was to write is undefined: that is told.
    with pytest.raises(RuntimeError, match=r"'test' failed .*: KeyboardInterrupt"):
        stream.synchronize()
    assert seen == [1]
    synchronize(SIM0)


def test_ctrl_c_after_a_kernel_does_not_run_it_again(stepped):
    class Struck(Probe):
        def kernel_ran(self, kernel, began_ns, ended_ns):
            raise KeyboardInterrupt

    stream = Stream(SIM0)
    seen = []
    work = put(stream, lambda: seen.append(1))
    work.kernel = 0  # as if it were in a trace

    with probe.installed(Struck()), pytest.raises(KeyboardInterrupt):
        stream.synchronize()
    stream.synchronize()

    assert work.is_done
    assert seen == [1]
