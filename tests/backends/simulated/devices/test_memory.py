import gc
import threading

import numpy as np
import pytest

import gradviz as gv
from gradviz.backends import simulated
from gradviz.backends.base import accelerator_of
from gradviz.backends.current_streams import on_streams
from gradviz.backends.stream import Stream, keep_for, synchronize
from gradviz.errors import OutOfMemoryError
from gradviz.trace import probe
from tests.backends.simulated.bench import SIM0, Ear, on, put


def memory_of(array):
    return array.allocation.block.address


def use(device):
    return accelerator_of(device).memory_use(device)


def test_a_stream_uses_its_memory_again(spare, stepped):
    x = on(spare, np.zeros(100))
    address = memory_of(x)
    del x

    assert memory_of(on(spare, np.ones(100))) == address
    with on_streams((Stream(spare),)):
        assert memory_of(on(spare, np.ones(100))) != address


def test_a_view_keeps_the_memory(spare, stepped):
    x = on(spare, np.zeros(100))
    address = memory_of(x)
    view = x[:2]
    del x

    assert memory_of(on(spare, np.ones(100))) != address
    assert view.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("data", [[1.5, 2.5], [1, 2], [1j, 2j]])
def test_free_memory_is_poisoned(spare, data):
    x = on(spare, data)
    raw = x.raw
    del x
    gc.collect()
    on(spare, [0.0] * 200)  # whoever launches next notices
    synchronize(spare)

    assert raw.tolist() != data
    assert raw.dtype.kind == "i" or np.isnan(raw).all()


def test_work_launched_before_the_memory_was_freed_still_sees_it(spare, stepped):
    x = on(spare, [1.0, 2.0])
    y = x + 1
    del x
    z = on(spare, [7.0, 7.0])

    assert y.tolist() == [2.0, 3.0]
    assert z.tolist() == [7.0, 7.0]


def test_another_stream_that_was_not_named_finds_poison(spare):
    def run(seed, keeps):
        with simulated.stepped(seed):
            side = Stream(spare)
            x = on(spare, np.arange(4.0))
            side.wait_stream(gv.current_stream(spare))
            with on_streams((side,)):
                y = x + 1
            if keeps:
                keep_for(x, side)
            del x
            on(spare, [5.0] * 4)
            synchronize(spare)
            with on_streams((side,)):
                return y.tolist()

    assert all(run(seed, keeps=True) == [1.0, 2.0, 3.0, 4.0] for seed in range(20))
    assert any(run(seed, keeps=False) != [1.0, 2.0, 3.0, 4.0] for seed in range(20))


def test_memory_of_a_named_stream_comes_back_when_that_has_come_so_far(spare, stepped):
    side = Stream(spare)
    x = on(spare, np.zeros(100))
    address = memory_of(x)
    put(side, lambda: None)
    keep_for(x, side)
    del x

    assert memory_of(on(spare, np.ones(100))) != address
    side.synchronize()
    put(side, lambda: None)  # later work does not matter
    taken = [on(spare, np.ones(100)) for _ in range(2)]
    assert address in map(memory_of, taken)


def test_memory_in_use_is_counted(spare):
    assert use(spare).allocated == 0
    x = on(spare, np.zeros(100))
    assert use(spare)[:2] == (1024, 1024)
    y = on(spare, 1.0)
    assert use(spare).allocated == 1024 + 512

    del x
    assert use(spare) == (512, 1536, 1536)
    accelerator_of(spare).reset_peak_memory(spare)
    assert use(spare).peak == 512

    simulated.empty_cache()
    assert use(spare).reserved == 512
    assert y.tolist() == 1.0


def test_a_device_runs_out_of_memory(spare):
    simulated.set_memory_limit(spare, 10 * 1024**2)
    x = on(spare, np.zeros(2**20))
    with pytest.raises(OutOfMemoryError) as info:
        x + x

    assert str(info.value) == (
        "sim:3 out of memory. Tried to allocate 8.00 MiB for 'add'. sim:3 has a total "
        "capacity of 10.00 MiB of which 2.00 MiB is free. 8.00 MiB is allocated by "
        "arrays, and 0 bytes is reserved but unallocated. Let go of some tensors, or "
        "give it more by gv.sim.set_memory_limit()."
    )
    assert isinstance(info.value, RuntimeError)
    x += 1  # it works on
    assert x[0].item() == 1


def test_memory_kept_for_later_is_given_back_first(spare):
    simulated.set_memory_limit(spare, 10 * 1024**2)
    on(spare, np.zeros(2**20))
    side = Stream(spare)
    with on_streams((side,)):
        x = on(spare, np.zeros(2**20 - 200))
        keep_for(x, gv.default_stream(spare))
        del x
        assert on(spare, np.ones(2**20 + 200)).shape == (2**20 + 200,)


def test_allocations_are_reported(spare, stepped):
    ear = Ear()
    side = Stream(spare)
    with probe.installed(ear):
        x = on(spare, np.zeros(3))
        number = x.allocation.id
        keep_for(x, side)
        keep_for(x, gv.current_stream(spare))  # its own: nothing to keep
        del x
        synchronize(spare)

    stream = "sim:3/0"
    assert ear.of("memory_allocated") == [[number, stream, 24]]
    assert ear.of("memory_shared") == [[number, str(side)]]
    assert ear.of("memory_freed") == [[number, stream]]


def test_a_finaliser_may_free_in_the_middle_of_anything(spare):
    class Finalized:
        def __init__(self):
            self.array = on(SIM0, [1.0])
            self.cycle = self

        def __del__(self):
            if threading.current_thread() is threading.main_thread():
                assert (self.array + 1).tolist() == [2.0]
            else:  # the collector chose a stream's
                with pytest.raises(RuntimeError, match="would wait for itself"):
                    self.array.tolist()

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(50):
            Finalized()
            (on(SIM0, [1.0, 2.0]) * 2).tolist()
    finally:
        gc.set_threshold(*threshold)
        gc.collect()  # or others' tests had those that were in use at each collection
