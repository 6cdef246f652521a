"""Fixtures of the simulated devices' own tests."""

from collections.abc import Iterator

import pytest

from gradviz.backends import simulated
from gradviz.backends.device import Device
from gradviz.backends.simulated import settings


@pytest.fixture
def stepped() -> Iterator[None]:
    """No threads: work is done when somebody waits for it."""
    with settings.stepped(0):
        yield


@pytest.fixture
def spare() -> Iterator[Device]:
    """A device that no other test has an array on: it may be lost and reset."""
    settings.set_device_count(4)
    device = Device("sim", 3)
    simulated.reset(device)
    try:
        yield device
    finally:
        simulated.set_memory_limit(device, None)
        simulated.reset(device)
        settings.set_device_count(2)
