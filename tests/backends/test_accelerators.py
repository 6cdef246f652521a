"""Behavior of every accelerator: over simulated devices, and over CUDA.

CUDA without a GPU is CuPy's fake, see `fake_cupy`; with one it is real (``-m gpu``).
"""

import asyncio
import threading
from contextlib import nullcontext

import numpy as np
import pytest

import gradviz as gv
from gradviz.backends import base
from gradviz.backends.cuda.backend import CudaBackend
from tests.backends import fake_cupy
from tests.backends.isolation import backends_as_they_were

pytestmark = pytest.mark.usefixtures("streams_in_order")


@pytest.fixture(
    params=["sim", "stepped", "fake cuda", pytest.param("cuda", marks=pytest.mark.gpu)]
)
def kind(request):
    """The name of a type of device of which there are two at least."""
    if request.param in ("sim", "stepped"):
        with gv.sim.stepped(seed=1) if request.param == "stepped" else nullcontext():
            yield "sim"
            gv.sim.synchronize(0)
            gv.sim.synchronize(1)
        return
    with backends_as_they_were():
        if request.param == "fake cuda":
            cupy = fake_cupy.make()
            base.register(CudaBackend(cupy, cupy.cupyx.errstate))
        elif gv.cuda.device_count() == 0:
            pytest.skip("no CUDA device, or no CuPy")
        yield "cuda"


@pytest.fixture
def devices(kind):
    """The module of functions for that type of device."""
    return {"sim": gv.sim, "cuda": gv.cuda}[kind]


@pytest.fixture
def two(kind, devices):
    """Two devices; skips where there is but one."""
    if devices.device_count() < 2:
        pytest.skip("needs two devices")
    return gv.device(kind, 0), gv.device(kind, 1)


# --- devices ------------------------------------------------------------------------


def test_there_are_devices_with_names(kind, devices):
    assert devices.is_available()
    assert devices.device_count() >= 1
    assert devices.get_device_name(0)


def test_a_name_without_an_index_means_the_current_device(kind, devices, two):
    assert devices.current_device() == 0
    with devices.device(1):
        assert devices.current_device() == 1
        assert gv.zeros(1, device=kind).device is two[1]
        assert gv.device(kind) is two[1]
        assert devices.current_stream().device is two[1]
    assert gv.device(kind) is two[0]


@pytest.mark.parametrize("form", ["index", "name", "device"])
def test_a_device_may_be_said_in_every_way(kind, devices, two, form):
    said = {"index": 1, "name": f"{kind}:1", "device": two[1]}[form]

    devices.set_device(said)
    try:
        assert devices.current_device() == 1
        assert devices.current_stream(said) == devices.default_stream(said)
        assert devices.memory_allocated(said) >= 0
        devices.synchronize(said)
    finally:
        devices.set_device(0)


def test_a_negative_index_changes_nothing(devices, two):
    with devices.device(1):
        devices.set_device(-1)
        with devices.device(-1), devices.device(None):
            assert devices.current_device() == 1
    with pytest.raises(ValueError, match="Expected a device with a specified index"):
        devices.set_device(None)


def test_a_device_of_another_type_is_refused(devices):
    with pytest.raises(ValueError, match=r"Expected a .* device, but got: cpu"):
        devices.set_device("cpu")


def test_a_device_beyond_the_last_is_named(kind, devices):
    for use in (
        lambda: gv.zeros(1, device=f"{kind}:99"),
        lambda: devices.set_device(99),
        lambda: devices.Stream(99),
        lambda: devices.synchronize(99),
        lambda: devices.memory_allocated(99),
    ):
        with pytest.raises(RuntimeError, match=rf"no device '{kind}:99': there are"):
            use()


def test_the_current_device_is_a_contexts_own(devices, two):
    seen = []

    async def choose(index):
        devices.set_device(index)
        await asyncio.sleep(0)
        seen.append(devices.current_device())

    async def both():
        await asyncio.gather(choose(1), choose(0))

    asyncio.run(both())

    assert seen == [1, 0]
    assert devices.current_device() == 0


# --- streams ------------------------------------------------------------------------


def test_the_default_stream_is_current_at_first(devices, two):
    stream = devices.current_stream(1)

    assert stream == devices.default_stream(1)
    assert stream.stream_id == 0
    assert stream.device is two[1]


def test_streams_have_their_class(kind, devices):
    for stream in (devices.Stream(), devices.current_stream()):
        assert isinstance(stream, devices.Stream)
        assert isinstance(stream, gv.Stream)
    assert repr(gv.Stream(f"{kind}:0")).startswith(
        f"gradviz.Stream(device='{kind}:0', id="
    )


def test_a_stream_is_current_in_its_block_and_so_is_its_device(devices, two):
    stream = devices.Stream(1)

    with stream:
        assert devices.current_stream(1) == stream
        assert devices.current_device() == 1
        with gv.stream(None):
            assert devices.current_stream() == stream
        with gv.stream(devices.default_stream(1)):
            assert devices.current_stream() == devices.default_stream(1)
        assert devices.current_stream() == stream
    assert devices.current_device() == 0
    assert devices.current_stream(1) == devices.default_stream(1)


def test_a_stream_may_be_entered_within_itself(devices):
    stream = devices.Stream()

    with stream, stream:
        pass

    assert devices.current_stream() == devices.default_stream()


def test_two_coroutines_may_be_in_blocks_of_one_stream(devices):
    side = devices.Stream()
    seen = []

    async def work(outer, turns):
        with outer:
            with side:
                for _ in range(turns):
                    await asyncio.sleep(0)
            seen.append(devices.current_stream() == outer)

    async def both():
        await asyncio.gather(work(devices.Stream(), 1), work(devices.Stream(), 2))

    asyncio.run(both())

    assert seen == [True, True]


def test_a_thread_begins_with_the_default_streams(devices):
    seen = []

    with devices.Stream():
        thread = threading.Thread(target=lambda: seen.append(devices.current_stream()))
        thread.start()
        thread.join()

    assert seen == [devices.default_stream()]


def test_streams_come_from_a_pool(devices):
    streams = {devices.Stream() for _ in range(100)}

    assert 1 < len(streams) < 100
    assert devices.default_stream() not in streams


def test_a_stream_of_high_priority_is_another_one(devices):
    usual = {devices.Stream() for _ in range(40)}

    assert devices.Stream(priority=-1) not in usual


def test_a_stream_that_was_waited_for_is_idle(devices, kind):
    stream = devices.Stream()
    with stream:
        x = gv.ones(100, device=kind) * 2

    stream.synchronize()

    assert stream.query()
    assert x.sum().item() == 200


def test_streams_are_equal_by_device_and_number(kind, devices, two):
    stream = devices.Stream(0)

    assert stream == gv.backends.stream.stream_at(two[0], stream.stream_id)
    assert stream != devices.default_stream(0)
    assert devices.default_stream(0) != devices.default_stream(1)
    assert stream != 0
    assert hash(devices.default_stream(0)) == hash(gv.default_stream(f"{kind}:0"))


# --- events -------------------------------------------------------------------------


def test_a_stream_that_waits_for_an_event_sees_the_work_before_it(kind, devices):
    side = devices.Stream()
    with side:
        x = gv.full((1000,), 3.0, device=kind) * 2
        done = side.record_event()

    done.wait()
    x.record_stream(devices.current_stream())
    y = x + 1

    assert y.tolist() == [7.0] * 1000


def test_streams_wait_for_streams(kind, devices):
    first, second = devices.Stream(), devices.Stream()
    x = gv.ones(1000, device=kind)
    first.wait_stream(devices.current_stream())
    with first:
        y = x * 2
    second.wait_stream(first)
    with second:
        z = y * 3
    devices.current_stream().wait_stream(second)

    assert z.sum().item() == 6000


def test_streams_of_two_devices_wait_for_each_other(kind, devices, two):
    event = gv.Event()
    x = gv.ones(8, device=two[0]) * 2
    event.record(devices.current_stream(0))

    devices.current_stream(1).wait_event(event)

    assert event.device is two[0]
    assert x.to(two[1]).tolist() == [2.0] * 8


def test_an_event_never_recorded_has_happened(devices):
    event = devices.Event()

    event.wait()
    event.synchronize()

    assert event.query()
    assert event.device is None


def test_an_event_that_was_waited_for_has_happened(kind, devices):
    gv.ones(10, device=kind).exp()
    event = devices.Event()
    event.record()

    event.synchronize()

    assert event.query()
    assert event.device is gv.device(kind)


def test_events_measure_time(kind, devices):
    begin, end = devices.Event(enable_timing=True), gv.Event(enable_timing=True)
    begin.record()
    gv.ones(1000, device=kind).exp()
    end.record(devices.current_stream())
    end.synchronize()

    assert begin.elapsed_time(end) >= 0


def test_events_without_time_measure_none(devices):
    begin, end = devices.Event(), devices.Event(enable_timing=True)
    with pytest.raises(ValueError, match="created with argument 'enable_timing=True'"):
        begin.elapsed_time(end)

    begin = devices.Event(enable_timing=True)
    with pytest.raises(ValueError, match="must be recorded before calculating"):
        begin.elapsed_time(end)


def test_an_event_is_of_one_device(devices, two):
    event = devices.current_stream(0).record_event()

    with pytest.raises(RuntimeError, match=r"Event device .* does not match recording"):
        event.record(devices.current_stream(1))


def test_an_event_of_another_backend_is_refused(kind, devices):
    if kind == "sim":
        pytest.skip("asked of the other one")
    event = gv.sim.current_stream().record_event()

    with pytest.raises(
        RuntimeError,
        match="Event device type sim does not match blocking stream's device type cuda",
    ):
        devices.current_stream().wait_event(event)


# --- copies -------------------------------------------------------------------------


ARRAYS = {
    "plain": np.arange(6.0).reshape(2, 3),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "strided": np.arange(12.0)[::2],
    "reversed": np.arange(5)[::-1],
    "number": np.array(2.5),
    "empty": np.zeros((0, 3)),
    "bools": np.array([True, False]),
    "complex": np.array([1 + 2j, 3j]),
    "half": np.array([1, 2], np.float16),
    "bytes": np.arange(3, dtype=np.uint8),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("non_blocking", [False, True])
def test_an_array_goes_to_a_device_and_comes_back(kind, devices, name, non_blocking):
    array = ARRAYS[name]
    host = gv.from_numpy(array)

    there = host.to(kind, non_blocking=non_blocking)
    back = there.to("cpu", non_blocking=non_blocking)
    devices.synchronize()

    assert there.device is gv.device(kind)
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back.numpy(), array)
    assert not np.shares_memory(back.numpy(), array)


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_goes_from_device_to_device(kind, two, name):
    x = gv.from_numpy(ARRAYS[name]).to(two[0])

    y = x.to(two[1])

    assert y.device is two[1]
    np.testing.assert_array_equal(y.cpu().numpy(), ARRAYS[name])


def test_a_copy_to_another_device_is_in_the_order_of_both(kind, devices, two):
    """Nobody has to wait for a copy between devices; the same in PyTorch."""
    with devices.Stream(0) as source, devices.Stream(1) as target:
        x = gv.full((1000,), 2.0, device=two[0]) * 3
        y = x.to(two[1]) + 1
        assert devices.current_stream(0) == source
        assert devices.current_stream(1) == target
        assert y.tolist() == [7.0] * 1000


def test_a_host_array_may_change_as_soon_as_it_was_copied(kind):
    array = np.ones(1000)

    x = gv.from_numpy(array).to(kind)
    array[:] = 5

    assert x.sum().item() == 1000


def test_pinned_memory_is_copied_from_later(kind, devices):
    x = gv.arange(5.0).pin_memory()
    assert x.is_pinned()
    assert not gv.arange(5.0).is_pinned()
    assert x.pin_memory() is x
    assert x[1:].is_pinned()

    y = x.to(kind, non_blocking=True)
    back = y.to("cpu", non_blocking=True)
    devices.synchronize()

    assert back.is_pinned()
    assert back.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.usefixtures("devices")
def test_gradients_go_through_the_copy_in_pinned_memory():
    x = gv.arange(3.0, requires_grad=True)

    y = x.pin_memory()
    (y * y).sum().backward()

    assert y.grad_fn.name() == "PinMemoryBackward0"
    assert x.grad.tolist() == [0.0, 2.0, 4.0]
    with gv.no_grad():
        assert not x.pin_memory().requires_grad


def test_tensors_are_made_in_pinned_memory(kind):
    assert gv.zeros(3, pin_memory=True).is_pinned()
    assert gv.tensor([1.0], pin_memory=True).is_pinned()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        gv.zeros(3, device=kind).pin_memory()


def test_copies_are_differentiable(kind, two):
    x = gv.arange(4.0, requires_grad=True)

    y = x.to(two[0], non_blocking=True) * 2
    (y.to(two[1]) * 3).cpu().sum().backward()

    assert x.grad.tolist() == [6.0] * 4
    assert x.grad.device is gv.device("cpu")


# --- memory -------------------------------------------------------------------------


def test_memory_in_use_is_counted(kind, devices):
    before = devices.memory_allocated()
    x = gv.zeros(1024, device=kind)
    held = devices.memory_allocated() - before

    assert held >= x.nbytes
    assert devices.memory_reserved() >= 0
    view = x[:10]
    assert devices.memory_allocated() - before == held
    del x
    assert devices.memory_allocated() - before == held
    del view
    assert devices.memory_allocated() == before


def test_the_peak_of_memory_is_kept_until_it_is_reset(kind, devices):
    devices.reset_peak_memory_stats()
    before = devices.memory_allocated()
    gv.zeros(1 << 16, device=kind)

    assert devices.max_memory_allocated() - before >= 4 << 16
    devices.reset_peak_memory_stats()
    assert devices.max_memory_allocated() == devices.memory_allocated()
    devices.empty_cache()


def test_a_tensor_used_on_another_stream_lives_until_that_is_done(kind, devices):
    side = devices.Stream()
    x = gv.full((1 << 12,), 3.0, device=kind)
    side.wait_stream(devices.current_stream())
    with side:
        y = x * 2
    x.record_stream(side)
    del x
    for _ in range(4):  # would take its memory
        gv.zeros(1 << 12, device=kind)
    side.synchronize()

    with side:
        assert y.sum().item() == 6 << 12


def test_only_a_stream_of_its_type_can_use_a_tensor(kind, devices):
    x = gv.zeros(1, device=kind)

    with pytest.raises(TypeError, match="'stream' must be a Stream, not NoneType"):
        x.record_stream(None)
    with pytest.raises(RuntimeError, match="cannot use a tensor on cpu"):
        gv.zeros(1).record_stream(devices.current_stream())


# --- work ---------------------------------------------------------------------------


def test_gradients_are_those_of_the_cpu(kind, two):
    def loss(first, second):
        w = gv.tensor([[1.0, 2.0], [3.0, 4.0]], device=first, requires_grad=True)
        b = gv.tensor([1.0, -1.0], device=second, requires_grad=True)
        x = gv.tensor([[1.0, 0.0], [2.0, 1.0]], device=first)
        y = ((x @ w).to(second) + b).relu()
        (y * y).sum().backward()
        return w, b

    w, b = loss(*two)
    expected_w, expected_b = loss("cpu", "cpu")

    assert w.grad.device is two[0]
    assert b.grad.device is two[1]
    assert w.grad.tolist() == expected_w.grad.tolist()
    assert b.grad.tolist() == expected_b.grad.tolist()


def test_a_gradient_that_a_hook_keeps_does_not_change(kind):
    """The engine adds gradients in place, where nobody else has them or a view."""
    x = gv.ones(3, device=kind, requires_grad=True)
    kept = []

    def keep(grads, _):
        kept.append(grads[0][1:].detach())

    y = x * 1
    a, b = y * 2, y * 3
    a.grad_fn.register_hook(keep)
    b.grad_fn.register_hook(keep)
    (a + b).sum().backward()

    assert sorted(one.tolist() for one in kept) == [[2.0, 2.0], [3.0, 3.0]]
    assert x.grad.tolist() == [5.0] * 3


def test_backward_over_two_streams_gives_the_gradient(kind, devices):
    x = gv.ones(8, device=kind, requires_grad=True)
    side = devices.Stream()
    side.wait_stream(devices.current_stream())
    with side:
        y = (x * x).sum()
    devices.current_stream().wait_stream(side)

    (grad,) = gv.autograd.grad(y, x)

    assert grad.tolist() == [2.0] * 8


def test_a_mask_and_indices_may_come_from_the_host(kind):
    x = gv.arange(6.0, device=kind)

    x[gv.tensor([0, 1])] = 9.0

    assert x[gv.tensor([True] * 2 + [False] * 4)].tolist() == [9.0, 9.0]
    assert x[[2, 3]].tolist() == [2.0, 3.0]


def test_indices_are_of_the_same_device_or_the_host(kind, two):
    x, index = gv.ones(2, device=two[0]), gv.tensor([0], device=two[1])

    with pytest.raises(
        RuntimeError, match="indices should be either on cpu or on the same device"
    ):
        x[index]
    with pytest.raises(RuntimeError, match=r"on cpu or on the same|all tensors"):
        x.gather(0, index)


def test_two_devices_do_not_mix(kind, two):
    x, y = gv.ones(2, device=two[0]), gv.ones(2, device=two[1])
    words = "Expected all tensors to be on the same device, but found at least two"

    for op, mix in (
        ("add", lambda: x + y),
        ("add", lambda: x + gv.ones(2)),
        ("cat", lambda: gv.cat([x, y])),
        ("add", lambda: x.add_(y)),
        ("dot", lambda: x.matmul(y)),
        ("where", lambda: gv.where(x > 0, x, y)),
        ("stack", lambda: gv.stack([x, y])),
        ("mseloss", lambda: gv.nn.functional.mse_loss(x, y)),
        ("nativelayernorm", lambda: gv.nn.functional.layer_norm(x, (2,), y)),
    ):
        with pytest.raises(RuntimeError, match=rf"{words} devices, {kind}:0 and") as e:
            mix()
        assert str(e.value).endswith(f"! (when checking the arguments of {op})")
    assert (x + 1 + gv.tensor(1.0)).tolist() == [3.0, 3.0]
