"""Records of PyTorch's own profiler, as where devices are watched, without a device."""

import pytest

from gradviz.pytorch.watching.devices import Devices
from gradviz.trace import events as e
from tests.parity.pytorch_recordings import faults, leaf, of_kind, recorded

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have devices watched whether there are any; who was asked for what."""
    asked: list[str] = []
    monkeypatch.setattr(Devices, "are_in_use", lambda _: True)
    monkeypatch.setattr(Devices, "activities", lambda _, others: others)
    monkeypatch.setattr(Devices, "wait", lambda _: asked.append("wait"))
    return asked


def test_functions_are_told_apart_from_what_is_about_devices(watched):
    loss = (leaf(4).exp() * 2).sum()

    recording = recorded(loss.backward)

    names = [
        recording.trace.nodes[one.node].name
        for one in of_kind(recording, e.NodeStarted)
    ]
    assert names == ["SumBackward0", "MulBackward0", "ExpBackward0", "AccumulateGrad"]
    assert not of_kind(recording, e.KernelLaunched)
    assert not faults(recording)


def test_devices_are_waited_for_before_the_profiler_stops(watched):
    recorded(lambda: leaf(4).exp().sum().backward())

    assert "wait" in watched


def test_a_recording_without_devices_waits_for_none(monkeypatch):
    def fails(_: Devices) -> None:
        raise AssertionError("it waited")

    monkeypatch.setattr(Devices, "wait", fails)

    assert not faults(recorded(lambda: leaf(4).exp().sum().backward()))
