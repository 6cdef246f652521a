"""The kernels that latencies see, and the preset's times for them."""

import numpy as np
import pytest

import gradviz as gv
from gradviz.backends.stream import Event, current_stream
from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from tests.backends.simulated.bench import SIM0

MEGABYTE = 1 << 20


@pytest.fixture
def asked():
    """The kernels that a latency has been asked for, on stepped devices."""
    kernels = []

    def latency(stream, kernel):
        kernels.append(kernel)
        return len(kernels) * 1000

    with gv.sim.stepped():
        gv.sim.set_latency(latency)
        yield kernels
        gv.sim.set_latency(None)


def ran(call):
    """Return the durations of a call's launches, from the trace."""
    gv.synchronize(SIM0)
    with gv.record() as recording:
        call()
        gv.synchronize(SIM0)
    events = list(recording.events())
    names = {
        one.kernel: one.name for one in events if type(one).__name__ == "KernelLaunched"
    }
    return [
        (names[one.kernel], one.began_ns, one.ended_ns)
        for one in events
        if type(one).__name__ == "KernelRan"
    ]


def test_a_latency_is_told_what_a_kernel_moves(asked):
    x = gv.zeros(4, 5, device="sim:0")
    gv.synchronize(SIM0)
    asked.clear()

    (x + 1).sum()
    x.expand(3, 4, 5).exp()
    x.cpu()

    assert [
        (one, one.bytes_read, one.bytes_written, one.elements) for one in asked
    ] == [
        ("add", 80, 80, 20),
        ("sum", 80, 4, 1),
        ("exp", 80, 240, 60),
        ("Memcpy DtoH", 80, 0, 20),
    ]
    assert all(one.dtype == np.float32 for one in asked)


def test_it_is_told_how_much_is_computed(asked):
    a, b = gv.zeros(2, 3, 4, device="sim:0"), gv.zeros(4, 5, device="sim:0")
    x, w = gv.zeros(2, 3, 8, 8, device="sim:0"), gv.zeros(6, 3, 3, 3, device="sim:0")
    x.requires_grad_(), w.requires_grad_()

    a @ b
    gv.einsum("ij,jk->ik", a[0], b)
    out = F.conv2d(x, w)
    out.backward(out.detach())
    gv.linalg.solve(gv.eye(4, device="sim:0"), b)
    gv.synchronize(SIM0)

    convolved = 2 * (2 * 6 * 6 * 6) * 3 * 3 * 3
    assert [(str(one), one.flops) for one in asked if one.flops] == [
        ("matmul", 2 * 2 * 3 * 4 * 5),
        ("matmul", 2 * 3 * 4 * 5),
        ("convolution", convolved),
        ("convolution_backward_input", convolved),
        ("convolution_backward_weight", convolved),
        ("solve", 2 * 4 * 4 * 4),
    ]


def test_of_a_table_only_the_rows_count(asked):
    table = gv.zeros(1000, 10, device="sim:0")
    rows = gv.tensor([1, 2], device="sim:0")
    gv.synchronize(SIM0)
    asked.clear()

    F.embedding(rows, table)
    gv.synchronize(SIM0)

    (take,) = (one for one in asked if one == "take")
    assert (take.bytes_read, take.bytes_written) == (96 + 16, 80)


def test_stepped_devices_have_modeled_times(asked):
    """Each kernel takes what the latency says, to the nanosecond."""
    x = gv.zeros(3, device="sim:0")
    gv.synchronize(SIM0)
    count = len(asked)

    times = ran(lambda: x.exp().sin())

    assert [end - begin for _, begin, end in times] == [
        (count + 1) * 1000,
        (count + 2) * 1000,
    ]
    (_, _, exp_ended), (_, sin_began, _) = times
    assert sin_began >= exp_ended


def test_another_latency_forgets_what_the_one_before_made_of_time(asked):
    """Or a thread would sleep for what has taken long only in a model."""
    gv.sim.set_latency(gv.sim.fixed(3_600_000_000_000))
    x = gv.zeros(3, device="sim:0")
    ((_, _, slow_ended),) = ran(x.exp)

    gv.sim.set_latency(gv.sim.fixed(1000))
    ((_, quick_began, _),) = ran(x.exp)

    assert quick_began < slow_ended


def test_a_launch_after_a_wait_begins_after_the_work_that_was_waited_for(asked):
    """In modeled time too: what is launched then begins later."""
    gv.sim.set_latency(gv.sim.fixed(3_600_000_000_000))
    x = gv.zeros(3, device="sim:0")
    side = gv.Stream("sim:0")
    begin, end = Event(enable_timing=True), Event(enable_timing=True)
    begin.record(current_stream(SIM0))

    x.exp().tolist()
    with side:
        x.sin()
        end.record(side)
    gv.synchronize(SIM0)

    # A copy to the device was before `begin`; exp, a copy back and sin came after.
    assert begin.elapsed_time(end) == pytest.approx(3 * 3_600_000, rel=1e-6)


def test_streams_overlap_and_waits_order_them(asked):
    gv.sim.set_latency(gv.sim.fixed(3_600_000_000_000))
    x = gv.zeros(3, device="sim:0")
    main, side = current_stream(SIM0), gv.Stream("sim:0")
    side.wait_stream(main)

    def both():
        x.exp()
        with side:
            x.sin()
        main.wait_stream(side)
        x.cos()

    (_, *exp), (_, *sin), (_, *cos) = sorted(ran(both), key=lambda one: one[1:])
    assert exp[0] == sin[0] or sin[0] < exp[1]
    assert cos[0] == max(exp[1], sin[1])


def test_a_latency_that_fails_fails_the_kernel():
    gv.sim.set_latency(lambda stream: 0)
    try:
        gv.zeros(3, device="sim:0")
        with pytest.raises(
            RuntimeError, match=r"kernel 'Memcpy HtoD' failed.*TypeError"
        ):
            gv.synchronize(SIM0)
    finally:
        gv.sim.set_latency(None)


def test_an_event_on_a_stream_without_work_has_a_time(spare):
    begin, end = Event(enable_timing=True), Event(enable_timing=True)
    stream = gv.Stream(spare)

    begin.record(stream)
    end.record(stream)

    assert 0 <= begin.elapsed_time(end) < 60_000


class TestThePreset:
    """The proportions of its data sheet, by a pure function."""

    latency = staticmethod(gv.sim.preset("h100-like"))

    def microseconds(self, name, **sizes):
        return self.latency("sim:0/0", gv.sim.Kernel(name, **sizes)) / 1000

    def test_small_kernels_take_as_long_as_their_launch(self):
        assert self.microseconds("add", bytes_read=8, bytes_written=4) <= 2.1

    def test_elementwise_kernels_go_by_bytes(self):
        size = 512 * MEGABYTE
        one = self.microseconds("add", bytes_read=2 * size, bytes_written=size)
        half = self.microseconds("add", bytes_read=size, bytes_written=size // 2)

        assert one == pytest.approx(3 * size / 2.7e6, rel=0.01)
        assert one == pytest.approx(2 * half, rel=0.01)

    def test_large_products_go_by_operations_and_dtype(self):
        sizes = {"bytes_read": 2 * 4096**2 * 4, "flops": 2 * 4096**3}
        single = self.microseconds("matmul", **sizes)
        half = self.microseconds("matmul", **sizes, dtype=np.float16)

        assert single == pytest.approx(2 * 4096**3 / 50e6, rel=0.01)
        assert single > 10 * half

    def test_thin_products_go_by_bytes(self):
        weights = 4096**2 * 4

        one = self.microseconds("matmul", bytes_read=weights, flops=2 * 4096**2)
        assert one == pytest.approx(2 + weights / 2.7e6, rel=0.01)

    def test_the_host_is_farther_than_a_peer_and_that_than_memory(self):
        size = {"bytes_read": 64 * MEGABYTE}
        there = self.microseconds("Memcpy HtoD", bytes_written=64 * MEGABYTE)
        back = self.microseconds("Memcpy DtoH", **size)
        peer = self.microseconds("Memcpy PtoP", **size, bytes_written=64 * MEGABYTE)
        here = self.microseconds("Memcpy DtoD", **size, bytes_written=64 * MEGABYTE)

        assert there == back
        assert back > 5 * peer > 15 * here

    def test_another_name_is_refused(self):
        with pytest.raises(ValueError, match="no preset 'abacus': there is h100-like"):
            gv.sim.preset("abacus")
