import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import gradviz as gv
from gradviz.backends import simulated
from gradviz.backends.current_streams import on_streams
from gradviz.backends.stream import Event, Stream, synchronize
from tests.backends.simulated.bench import SIM0, SIM1, held, on, put, queue_of


def workers_of(device):
    return [
        one.name
        for one in threading.enumerate()
        if one.name.startswith(f"gv_{device}/")
    ]


# --- errors of kernels --------------------------------------------------------------


def out_of_range(device):
    """Launch a kernel that fails; nobody can know before it runs."""
    x = on(device, [1.0, 2.0])
    return np.take(x, on(device, [7]))


@pytest.mark.parametrize("executor", ["threads", "stepped"])
def test_an_error_of_a_kernel_comes_with_the_next_wait_and_once(spare, executor):
    simulated.set_executor(executor)
    try:
        y = out_of_range(spare)
        with pytest.raises(RuntimeError) as info:
            synchronize(spare)
        assert str(info.value).startswith(
            f"kernel 'take' failed on stream sim:3/0, launched at {__file__}:"
        )
        assert "IndexError: index 7 is out of bounds" in str(info.value)
        assert type(info.value.__cause__) is IndexError

        synchronize(spare)
        assert (on(spare, [1.0]) + 1).tolist() == [2.0]
        assert np.isnan(y.tolist()).all()
    finally:
        simulated.set_executor("threads")


def test_an_error_of_a_kernel_may_come_with_a_launch(spare, stepped):
    x = on(spare, [1.0])
    stream = Stream(spare)
    work = put(stream, lambda: 1 / 0, "divide")
    simulated.devices.machine.machine.wait(work)

    with pytest.raises(RuntimeError, match=r"'divide' failed .* ZeroDivisionError"):
        x + x
    assert (x + x).tolist() == [2.0]


def test_only_the_first_of_several_errors_is_told(spare, stepped):
    stream = Stream(spare)
    put(stream, lambda: 1 / 0, "first")
    put(stream, lambda: 1 / 0, "second")

    with pytest.raises(RuntimeError, match="'first'"):
        stream.synchronize()
    stream.synchronize()


def test_an_error_is_told_by_its_device_only(spare, stepped):
    out_of_range(spare)

    synchronize(SIM0)
    with pytest.raises(RuntimeError, match="'take' failed"):
        synchronize(spare)


def test_a_call_that_waits_raises_the_error_of_its_kernel():
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        np.linalg.inv(on(SIM0, np.zeros((2, 2))))
    synchronize(SIM0)


# --- loss and reset -----------------------------------------------------------------


def test_a_lost_device_says_so_until_it_is_reset(spare):
    x = on(spare, [1.0])
    stream = Stream(spare)
    event = stream.record_event()
    simulated.lose(spare, "the fan broke")

    lost = r"sim:3 is lost: the fan broke; gv\.sim\.reset\('sim:3'\) makes a new one"
    for use in (
        lambda: x + x,
        lambda: on(spare, [1.0]),
        x.tolist,
        lambda: synchronize(spare),
        lambda: Stream(spare),
        stream.synchronize,
        stream.query,
        stream.record_event,
        event.synchronize,
        lambda: gv.current_stream(SIM0).wait_event(event),
    ):
        with pytest.raises(RuntimeError, match=lost):
            use()

    simulated.reset(spare)
    assert (on(spare, [1.0]) + 1).tolist() == [2.0]


def test_arrays_streams_and_events_from_before_a_reset_raise_after_it(spare):
    x = on(spare, [1.0])
    stream = Stream(spare)
    event = stream.record_event()
    simulated.reset(spare)

    gone = "of before sim:3 was reset"
    with pytest.raises(RuntimeError, match=gone):
        x + 1
    with pytest.raises(RuntimeError, match=gone):
        x[0] = on(spare, 1.0)
    with pytest.raises(RuntimeError, match=gone):
        event.synchronize()
    with pytest.raises(
        RuntimeError, match="sim:3 was reset or removed after the stream"
    ):
        stream.synchronize()
    with (
        pytest.raises(
            RuntimeError, match="sim:3 was reset or removed after the stream"
        ),
        on_streams((stream,)),
    ):
        on(spare, [1.0])
    del x
    assert (on(spare, [1.0]) + 1).tolist() == [2.0]


def test_a_loss_drops_what_is_pending_and_ends_the_threads(spare):
    stream, other = Stream(spare), Stream(SIM0)
    seen = []
    gate = threading.Event()
    begun = threading.Event()

    def first():
        begun.set()
        gate.wait(30)

    put(stream, first)
    put(stream, lambda: seen.append(1))
    event = stream.record_event()
    other.wait_event(event)
    after = put(other, lambda: seen.append(2))
    begun.wait(30)
    losing = threading.Thread(target=simulated.lose, args=(spare,))
    losing.start()
    while not simulated.devices.machine.machine.device(spare).lost:
        pass
    gate.set()
    losing.join(30)
    other.synchronize()

    assert seen == [2]  # the others go on
    assert after.is_done
    assert workers_of(spare) == []


def test_a_thread_that_waits_for_a_device_gets_an_error_when_it_is_lost(spare):
    stream = Stream(spare)
    told = []

    def wait():
        try:
            stream.synchronize()
        except RuntimeError as error:
            told.append(str(error))

    gate = threading.Event()
    put(stream, lambda: gate.wait(30))
    waiting = threading.Thread(target=wait)
    waiting.start()
    while not queue_of(stream).tail.waiters:
        pass
    losing = threading.Thread(target=simulated.lose, args=(spare,))
    losing.start()
    while not simulated.devices.machine.machine.device(spare).lost:
        pass
    gate.set()
    losing.join(30)
    waiting.join(30)

    assert len(told) == 1
    assert "sim:3 is lost" in told[0]


def test_a_stream_that_waits_for_another_device_can_be_lost(spare):
    stream, other = Stream(spare), Stream(SIM1)
    with held(other):
        stream.wait_event(other.record_event())
        put(stream, lambda: None)
        simulated.reset(spare)
        assert workers_of(spare) == []


def test_stepped_devices_are_lost_as_well(spare, stepped):
    stream = Stream(spare)
    seen = []
    put(stream, lambda: seen.append(1))
    simulated.reset(spare)

    assert (on(spare, [1.0]) + 1).tolist() == [2.0]
    assert not seen


def test_a_pass_on_a_lost_device_fails_and_the_next_does_not(spare):
    x = gv.ones(3, device=str(spare), requires_grad=True)
    y = (x * 2).sum()
    y.register_hook(lambda grad: simulated.lose(spare))
    with pytest.raises(RuntimeError, match="sim:3 is lost"):
        y.backward()
    simulated.reset(spare)

    x = gv.ones(3, device=str(spare), requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_streams_are_taken_in_turn_from_a_pool(spare):
    low = [Stream(spare).stream_id for _ in range(33)]
    high = Stream(spare, priority=-1).stream_id

    assert len(set(low)) == 32
    assert low[0] == low[32]
    assert 0 not in low
    assert high not in low


# --- processes ----------------------------------------------------------------------


def run(program, complaint=""):
    """Return the output of a process; `complaint` ends its stderr, if given."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stderr.strip().rpartition("\n")[2] == complaint
    assert ended.returncode == 0
    return ended.stdout


_FORK = textwrap.dedent(
    """
    import os, sys
    import gradviz as gv
    {before}
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            print((gv.ones(2, device="sim:0") + 1).tolist(), flush=True)
        except RuntimeError as error:
            print(error, flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
    """
)


def test_a_forked_child_of_a_user_of_a_device_is_refused_it():
    assert run(_FORK.format(before="x = gv.ones(2, device='sim:0'); x.tolist()")) == (
        "Cannot re-initialize sim in forked subprocess. To use sim with "
        "multiprocessing, you must use the 'spawn' start method\n"
    )


def test_a_forked_child_of_who_used_none_has_devices():
    assert run(_FORK.format(before="")) == "[2.0, 2.0]\n"


def test_a_process_ends_with_work_pending():
    program = """
import threading, numpy as np, gradviz as gv
from gradviz.backends import simulated
simulated.set_latency(simulated.fixed(3_600_000_000_000))
x = gv.ones(2, device="sim:0")
y = x + x
event = gv.current_stream("sim:0").record_event()
gv.current_stream("sim:1").wait_event(event)
z = gv.ones(2, device="sim:1")
print("end")
"""
    assert run(program) == "end\n"


def test_a_finaliser_that_waits_does_not_keep_a_process_from_ending():
    program = """
import gradviz as gv
class Finalized:
    def __init__(self):
        self.me = self
    def __del__(self):
        self.x.tolist()
finalized = Finalized()
gv.sim.set_latency(gv.sim.fixed(3_600_000_000_000))
finalized.x = gv.ones(3, device="sim:0")
print("end")
"""
    complaint = "RuntimeError: the interpreter shuts down: devices do no more work"
    assert run(program, complaint) == "end\n"


def test_an_event_that_was_never_recorded_has_happened():
    assert Event().query()
