"""Details of streams and events; `test_accelerators` covers every backend."""

import pytest

import gradviz as gv
from gradviz.backends.device import CPU


def of_kind(recording, kind):
    return [event for event in recording.events() if type(event).__name__ == kind]


@pytest.mark.parametrize(
    "use",
    [
        lambda: gv.Stream("cpu"),
        lambda: gv.current_stream("cpu"),
        lambda: gv.default_stream(CPU),
        lambda: gv.synchronize("cpu"),
        lambda: gv.Event("cpu").record(),
    ],
)
def test_the_cpu_has_no_streams(use):
    with pytest.raises(
        RuntimeError, match="device 'cpu' has no streams: its work is done at once"
    ):
        use()


def test_without_a_device_the_current_accelerator_is_meant():
    place = gv.accelerator.current_accelerator()

    assert gv.Stream().device is place
    assert gv.current_stream().device is place
    assert gv.default_stream().device is place
    event = gv.Event()
    event.record()
    gv.synchronize()
    assert event.device is place


def test_a_stream_none_changes_nothing():
    before = gv.current_stream("sim")

    with gv.stream(None) as stream:
        assert stream is None
        assert gv.current_stream("sim") == before


def test_setting_a_stream_sets_the_device_too():
    side = gv.Stream("sim:1")

    gv.set_stream(side)
    try:
        assert gv.current_stream("sim:1") == side
        assert gv.sim.current_device() == 1
    finally:
        gv.set_stream(gv.default_stream("sim:1"))
        gv.set_stream(gv.default_stream("sim:0"))
    assert gv.sim.current_device() == 0


def test_records_waits_and_synchronizations_of_streams_are_reported():
    first, second = gv.Stream("sim:0"), gv.Stream("sim:1")

    with gv.record() as recording:
        event = first.record_event()
        second.wait_event(event)
        event.synchronize()
        second.synchronize()
        gv.synchronize("sim:1")

    (recorded,) = of_kind(recording, "EventRecorded")
    (waited,) = of_kind(recording, "StreamWaited")
    assert (recorded.stream, recorded.event) == (str(first), event.id)
    assert (waited.stream, waited.event) == (str(second), event.id)
    assert [one.event for one in of_kind(recording, "EventSynchronized")] == [event.id]
    assert [one.stream for one in of_kind(recording, "StreamSynchronized")] == [
        str(second)
    ]
    assert [one.device for one in of_kind(recording, "DeviceSynchronized")] == ["sim:1"]


def test_a_wait_without_a_stream_is_one_of_the_current_device():
    """It is not of the device of the event; the same in PyTorch."""
    event = gv.current_stream("sim:0").record_event()

    with gv.record() as recording, gv.sim.device(1):
        event.wait()

    (waited,) = of_kind(recording, "StreamWaited")
    assert waited.stream == "sim:1/0"


def test_an_event_that_was_not_recorded_is_not_waited_for():
    with gv.record() as recording:
        gv.current_stream("sim").wait_event(gv.Event())

    assert of_kind(recording, "StreamWaited") == []


def test_a_block_whose_device_is_removed_leaves_what_was_current():
    count = gv.sim.device_count()
    gv.sim.set_device_count(count + 1)

    with gv.stream(gv.Stream(f"sim:{count}")):
        gv.sim.set_device_count(count)

    assert gv.sim.current_device() == 0
    gv.sim.set_device_count(count + 1)
    try:
        assert gv.current_stream(f"sim:{count}").stream_id == 0
    finally:
        gv.sim.set_device_count(count)
