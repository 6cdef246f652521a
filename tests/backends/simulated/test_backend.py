import numpy as np
import pytest

from gradviz.backends.base import accelerator_of, backend_of, num_device_threads
from gradviz.backends.device import Device
from gradviz.backends.protocols import Accelerator
from gradviz.backends.simulated import SimulatedBackend
from gradviz.errors import UserError

SIM0 = Device("sim", 0)


def test_simulated_devices_have_streams():
    assert isinstance(accelerator_of(SIM0), Accelerator)
    assert accelerator_of(SIM0).device_name(SIM0) == "Simulated accelerator 0"


def test_a_device_beyond_the_last_is_named():
    with pytest.raises(RuntimeError, match="no device 'sim:2': there are 2 devices"):
        backend_of(Device("sim", 2))


def test_devices_are_in_use_once_an_array_was_made_there():
    backend = SimulatedBackend()
    assert not backend.is_initialized()

    backend.from_host(np.zeros(1), SIM0)

    assert backend.is_initialized()
    assert num_device_threads() >= 0


def test_the_environment_says_how_many_devices_there_are(monkeypatch):
    monkeypatch.setenv("GRADVIZ_SIM", "4")
    assert SimulatedBackend().device_count() == 4

    monkeypatch.setenv("GRADVIZ_SIM", "none")
    with pytest.raises(UserError, match="GRADVIZ_SIM='none' is not a number"):
        SimulatedBackend().device_count()

    monkeypatch.delenv("GRADVIZ_SIM")
    assert SimulatedBackend().device_count() == 2
