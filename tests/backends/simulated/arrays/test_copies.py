import gc

import numpy as np
import pytest

from gradviz.backends.arrays.pinning import PinnedMemory
from gradviz.backends.base import accelerator_of, copy_to
from gradviz.backends.current_streams import on_streams
from gradviz.backends.device import CPU
from gradviz.backends.simulated import settings
from gradviz.backends.stream import Stream, default_stream, synchronize
from gradviz.trace import probe
from tests.backends.simulated.bench import SIM0, SIM1, Ear, held, on


def test_the_host_may_change_what_is_copied():
    host = np.array([1.0, 2.0])
    with held(default_stream(SIM0)):
        x = copy_to(host, SIM0)
        host[:] = 7

    assert x.tolist() == [1.0, 2.0]


def test_pinned_memory_is_read_when_the_device_has_come_so_far():
    host = np.ndarray(2, float, PinnedMemory(16))
    host[:] = 1
    with held(default_stream(SIM0)):
        x = copy_to(host, SIM0, non_blocking=True)
        host[:] = 7

    assert x.tolist() == [7.0, 7.0]


@pytest.mark.parametrize(("data", "is_nonsense"), [([1.0], np.isnan), ([1], np.array)])
def test_a_host_that_does_not_wait_for_a_copy_reads_nonsense(data, is_nonsense):
    x = on(SIM0, data)
    with held(default_stream(SIM0)):
        host = copy_to(x, CPU, non_blocking=True)
        assert host.tolist() != data
        assert is_nonsense(host).all()
    synchronize(SIM0)

    assert host.tolist() == data


def test_a_copy_to_the_host_is_in_c_order():
    x = on(SIM0, np.arange(6.0).reshape(2, 3)).T

    assert copy_to(x, CPU).flags.c_contiguous
    assert copy_to(x, SIM1).flags.c_contiguous
    assert copy_to(np.asfortranarray(np.ones((2, 3))), SIM0).flags.c_contiguous


def test_a_copy_between_devices_returns_at_once():
    x = on(SIM0, [1.0, 2.0])
    with held(default_stream(SIM0)):
        y = copy_to(x, SIM1) + 1
        assert not default_stream(SIM1).query()

    assert y.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("seed", range(20))
def test_a_copy_between_devices_is_in_the_order_of_both(seed):
    with settings.stepped(seed):
        source, target = Stream(SIM0), Stream(SIM1)
        with on_streams((source, target)):
            x = on(SIM0, [1.0, 2.0]) * 2
            y = copy_to(x, SIM1)
            x += 100
            z = y * 2
            del x, y
            on(SIM0, [5.0, 5.0])
            on(SIM1, [6.0, 6.0])
            assert z.tolist() == [4.0, 8.0]


def test_the_waits_of_a_copy_between_devices_are_reported():
    x = on(SIM0, [1.0])
    ear = Ear()
    with probe.installed(ear):
        copy_to(x, SIM1)

    # What other tests have left may be let go meanwhile.
    other = "kernel_ran", "memory_freed"
    assert [report[0] for report in ear.heard if report[0] not in other] == [
        "memory_allocated",
        "event_recorded",
        "stream_waited",
        "kernel_launched",
        "array_accessed",
        "array_accessed",
        "event_recorded",
        "stream_waited",
    ]
    (_, _, waiting, _, _), (_, _, then_waiting, _, _) = ear.of("stream_waited")
    assert (waiting, then_waiting) == ("sim:0/0", "sim:1/0")
    assert ear.of("kernel_launched")[0][1:] == ["sim:0/0", "Memcpy PtoP"]


def test_a_copy_on_the_same_device_waits_for_nobody():
    x = on(SIM0, [1.0])
    ear = Ear()
    with probe.installed(ear):
        y = copy_to(x, SIM0)

    assert y.allocation is not x.allocation
    assert not ear.of("stream_waited")
    assert y.tolist() == [1.0]


def test_pinned_memory_is_of_a_class_of_its_own():
    assert type(accelerator_of(SIM0).pinned_memory(8)) is PinnedMemory


@pytest.mark.parametrize("seed", range(5))
def test_ctrl_c_in_a_copy_leaves_no_memory_that_is_still_to_be_written(
    monkeypatch, seed
):
    target = default_stream(SIM1)
    wait_stream = Stream.wait_stream

    def interrupted(stream, other):
        if stream == target:
            raise KeyboardInterrupt
        wait_stream(stream, other)

    with settings.stepped(seed), on_streams((Stream(SIM0),)):
        x = on(SIM0, [1.0, 2.0])
        with monkeypatch.context() as patch:
            patch.setattr(Stream, "wait_stream", interrupted)
            try:
                copy_to(x, SIM1)
            except KeyboardInterrupt:
                gc.collect()

        # What would have been the copy is free, but its stream may come late.
        y = on(SIM1, [5.0, 6.0])
        target.synchronize()
        synchronize(SIM0)
        assert y.tolist() == [5.0, 6.0]
