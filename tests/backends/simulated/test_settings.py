import pytest

from gradviz.backends import simulated
from gradviz.backends.base import backend_of
from gradviz.backends.device import Device
from gradviz.backends.simulated.devices.machine import machine


def test_the_number_of_devices_can_be_set():
    simulated.set_device_count(3)
    try:
        assert backend_of(Device("sim", 2)).device_count() == 3
        assert simulated.device_count() == 3
    finally:
        simulated.set_device_count(2)
    with pytest.raises(ValueError, match="got 0 simulated devices"):
        simulated.set_device_count(0)


def test_executors_are_known_by_name():
    try:
        simulated.set_executor("stepped", seed=3)
        assert type(machine.executor).__name__ == "Stepped"
    finally:
        simulated.set_executor("threads")
    with pytest.raises(ValueError, match="got 'fibers', expected 'threads' or 'step"):
        simulated.set_executor("fibers")


def test_a_stepped_block_leaves_the_executor_as_it_was():
    before = machine.executor
    with simulated.stepped(1), simulated.stepped(2):
        assert machine.executor is not before

    assert machine.executor is before


@pytest.mark.parametrize("call", [simulated.reset, simulated.lose])
def test_only_simulated_devices_are_lost_and_reset(call):
    with pytest.raises(RuntimeError, match="Expected a simulated device, but got cpu"):
        call("cpu")
    with pytest.raises(RuntimeError, match="no device 'sim:9'"):
        call("sim:9")


def test_memory_cannot_be_limited_to_less_than_nothing():
    with pytest.raises(ValueError, match="got a memory limit of -1 bytes"):
        simulated.set_memory_limit("sim:0", -1)
