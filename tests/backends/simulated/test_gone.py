"""Devices that are there no more: what is left of them is of no use, and says so."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pytest

import gradviz as gv

GONE: Final = "sim:2"

#: How a device goes, and what is said of whatever was there.
ENDS: Final[dict[str, tuple[Callable[[], None], str]]] = {
    "removed": (lambda: gv.sim.set_device_count(2), "no device 'sim:2'"),
    "lost": (lambda: gv.sim.lose(GONE), "sim:2 is lost: it was unplugged"),
    "reset": (lambda: gv.sim.reset(GONE), "sim:2 (was reset|is gone)|before sim:2"),
}


def an_event() -> gv.Event:
    event = gv.Event(enable_timing=True)
    event.record(gv.Stream(GONE))
    event.synchronize()
    return event


@dataclass
class Left:
    """A program's remaining references to the device, and to others."""

    x: gv.Tensor = field(default_factory=lambda: gv.arange(4.0, device=GONE))
    w: gv.Tensor = field(
        default_factory=lambda: gv.ones(4, device=GONE, requires_grad=True)
    )
    loss: gv.Tensor = field(init=False)
    stream: gv.Stream = field(default_factory=lambda: gv.Stream(GONE))
    event: gv.Event = field(default_factory=an_event)
    host: gv.Tensor = field(default_factory=lambda: gv.ones(4, requires_grad=True))
    pinned: gv.Tensor = field(default_factory=lambda: gv.ones(4).pin_memory())
    other: gv.Tensor = field(default_factory=lambda: gv.ones(4, device="sim:0"))

    def __post_init__(self) -> None:
        self.loss = (self.w * self.x * self.host.to(GONE)).sum()
        gv.synchronize(GONE)

    def state(self) -> tuple[object, ...]:
        """Return the state that no error may change."""
        tensors = self.x, self.w, self.host, self.pinned, self.other
        return (
            gv.current_stream("sim:0"),
            gv.sim.current_device(),
            [(tensor._version, tensor.grad) for tensor in tensors],
            [tensor.tolist() for tensor in (self.host, self.pinned, self.other)],
        )


@pytest.fixture(params=ENDS)
def gone(request: pytest.FixtureRequest) -> Iterator[tuple[Left, str]]:
    """Yield the remains of a device, and the expected message."""
    end, words = ENDS[request.param]
    gv.sim.set_device_count(3)
    left = Left()
    try:
        end()
        yield left, words
    finally:
        gv.sim.set_device_count(3)
        gv.sim.reset(GONE)
        gv.sim.set_device_count(2)


@pytest.mark.parametrize(
    "use",
    [
        lambda left: left.x + 1,
        lambda left: left.x.add_(1),
        lambda left: left.x.zero_(),
        lambda left: left.x.__setitem__(0, 1.0),
        lambda left: left.x[left.x > 0],
        lambda left: left.x.sum(),
        lambda left: left.x.clone(),
        lambda left: left.x.double(),
        lambda left: left.x[0].item(),
        lambda left: left.x.tolist(),
        lambda left: bool(left.x[0]),
        lambda left: repr(left.x),
        lambda left: left.x.cpu(),
        lambda left: left.x.to("cpu", non_blocking=True),
        lambda left: left.x.to("sim:0"),
        lambda left: left.x.copy_(left.pinned, non_blocking=True),
        lambda left: left.x.copy_(left.other),
        lambda left: left.other.copy_(left.x),
        lambda left: left.pinned.copy_(left.x),
        lambda left: left.pinned.copy_(left.x, non_blocking=True),
        lambda left: left.x.record_stream(gv.current_stream("sim:0")),
        lambda left: left.other.record_stream(left.stream),
        lambda left: left.loss.backward(),
        lambda left: gv.autograd.grad(left.loss, [left.host], create_graph=True),
        lambda left: left.stream.__enter__(),
        lambda left: gv.set_stream(left.stream),
        lambda left: left.stream.query(),
        lambda left: left.stream.synchronize(),
        lambda left: left.stream.record_event(),
        lambda left: left.stream.wait_stream(gv.current_stream("sim:0")),
        lambda left: left.stream.wait_event(an_event_of_another()),
        lambda left: gv.current_stream("sim:0").wait_stream(left.stream),
        lambda left: gv.current_stream("sim:0").wait_event(left.event),
        lambda left: left.event.query(),
        lambda left: left.event.synchronize(),
        lambda left: left.event.wait(),
        lambda left: left.event.record(left.stream),
        lambda left: left.event.elapsed_time(left.event),
        lambda left: left.event.elapsed_time(an_event_of_another()),
        lambda left: an_event_of_another().elapsed_time(left.event),
    ],
)
def test_using_the_remains_of_a_device_raises_and_changes_nothing(gone, use):
    left, words = gone
    before = left.state()

    with pytest.raises(RuntimeError, match=words):
        use(left)

    assert left.state() == before


@pytest.mark.parametrize(
    "use",
    [
        lambda: gv.ones(2, device=GONE),
        lambda: gv.ones(2).to(GONE),
        lambda: gv.Stream(GONE),
        lambda: gv.sim.Stream(2),
        lambda: gv.synchronize(GONE),
        lambda: gv.accelerator.synchronize(2),
        lambda: gv.sim.set_device(2),
        lambda: gv.accelerator.set_device_index(2),
        lambda: gv.sim.device(2).__enter__(),
    ],
)
@pytest.mark.parametrize("gone", ["removed", "lost"], indirect=True)
def test_naming_a_device_that_is_gone_is_an_error_that_changes_nothing(gone, use):
    left, words = gone
    before = left.state()

    with pytest.raises(RuntimeError, match=words):
        use()

    assert left.state() == before


@pytest.mark.parametrize(
    "ask",
    [
        gv.sim.memory_allocated,
        gv.sim.max_memory_allocated,
        gv.sim.memory_reserved,
        gv.sim.reset_peak_memory_stats,
        gv.sim.get_device_name,
        gv.sim.current_stream,
        gv.sim.default_stream,
        gv.accelerator.memory_allocated,
        lambda index: gv.sim.set_memory_limit(f"sim:{index}", 1),
        lambda index: gv.sim.lose(f"sim:{index}"),
        lambda index: gv.sim.reset(f"sim:{index}"),
    ],
)
@pytest.mark.parametrize("gone", ["removed"], indirect=True)
def test_nothing_can_be_asked_of_a_removed_device(gone, ask):
    with pytest.raises(RuntimeError, match="no device 'sim:2': there are 2 devices"):
        ask(2)


def test_a_removed_device_that_is_there_again_is_a_new_one():
    gv.sim.set_device_count(3)
    x = gv.ones(3, device=GONE)
    gv.sim.set_device_count(2)
    gv.sim.set_device_count(3)
    try:
        with pytest.raises(RuntimeError, match="no device 'sim:2' any more"):
            x + 1
        del x
        assert gv.sim.memory_allocated(GONE) == 0
        assert gv.ones(3, device=GONE).sum().item() == 3
    finally:
        gv.sim.set_device_count(2)


@pytest.mark.parametrize("end", ENDS)
def test_a_device_that_goes_during_a_backward_fails_it_and_no_other(end):
    gv.sim.set_device_count(3)
    take_away, words = ENDS[end]
    host = gv.ones(4, requires_grad=True)
    with gv.Stream(GONE):
        y = host.to(GONE).exp()
    loss = (y * 2).sum()
    y.register_hook(lambda gradient: take_away())

    with pytest.raises(RuntimeError, match=words):
        loss.backward()
    assert host.grad is None
    other = gv.ones(4, device="sim:1", requires_grad=True)
    (other * 2).sum().backward()
    assert other.grad.tolist() == [2.0] * 4
    gv.sim.set_device_count(3)
    gv.sim.reset(GONE)
    gv.sim.set_device_count(2)


@pytest.mark.parametrize("end", ENDS)
def test_memory_that_a_lost_stream_was_to_use_is_free(end):
    gv.sim.set_device_count(3)
    x = gv.ones(4, device="sim:0")
    with gv.Stream(GONE) as stream:
        gv.ones(3, device=GONE)
    x.record_stream(stream)
    ENDS[end][0]()
    before = gv.sim.memory_allocated("sim:0")

    del x

    assert gv.sim.memory_allocated("sim:0") < before
    gv.sim.set_device_count(3)
    gv.sim.reset(GONE)
    gv.sim.set_device_count(2)


@pytest.mark.parametrize("of_event", [False, True])
def test_a_yes_to_query_tells_of_a_kernel_that_failed(of_event):
    with gv.sim.stepped():
        x = gv.arange(3.0, device="sim:0")
        x.index_select(0, gv.tensor([7], device="sim:0"))
        stream = gv.current_stream("sim:0")
        asked = stream.record_event() if of_event else stream

        with pytest.raises(RuntimeError, match="'index_select: check' failed"):
            ask_until_done(asked)
        assert asked.query()


def ask_until_done(asked: gv.Stream | gv.Event) -> None:
    while not asked.query():
        pass


def an_event_of_another() -> gv.Event:
    event = gv.Event(enable_timing=True)
    event.record(gv.current_stream("sim:0"))
    event.synchronize()
    return event
