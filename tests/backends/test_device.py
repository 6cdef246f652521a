import copy
import pickle

import pytest

from gradviz.backends.device import CPU, Device, parse_device


def test_equal_devices_are_the_same_object():
    assert Device("sim", 1) is Device("sim", 1)
    assert Device("sim", 1) is not Device("sim", 0)
    assert Device("cpu", 5) is CPU


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("cpu", CPU),
        ("cpu:0", CPU),
        ("sim", Device("sim", 0)),
        ("sim:1", Device("sim", 1)),
    ],
)
def test_a_name_is_parsed(name, device):
    assert parse_device(name) is device
    assert parse_device(device) is device


@pytest.mark.parametrize("name", ["", "sim:", "sim:-1", "SIM", "sim:1:2", "1"])
def test_what_is_no_name_is_an_error(name):
    with pytest.raises(ValueError, match="expected a backend's name"):
        parse_device(name)


def test_a_device_prints_as_its_name():
    assert str(Device("sim", 1)) == "sim:1"
    assert str(CPU) == "cpu"
    assert repr(Device("sim", 1)) == "device('sim:1')"


def test_only_the_host_runs_on_the_caller():
    assert CPU.runs_on_caller
    assert not Device("sim", 0).runs_on_caller


def test_a_copied_device_is_the_same():
    device = Device("sim", 1)

    assert copy.deepcopy(device) is device
    assert pickle.loads(pickle.dumps(device)) is device
