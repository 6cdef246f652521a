import numpy as np
import pytest

from gradviz.backends import simulated  # noqa: F401 - registers itself
from gradviz.backends.base import backend_of, backends, copy_to, device_of
from gradviz.backends.device import CPU, Device


def test_backends_are_found_by_device_and_by_array():
    assert backend_of(CPU).type == "cpu"
    assert backend_of(Device("sim", 0)).type == "sim"
    assert device_of(np.zeros(1)) is CPU
    assert {"cpu", "sim"} <= {backend.type for backend in backends()}


def test_what_is_no_array_is_nowhere():
    assert device_of("array") is None
    assert device_of(2.0) is None


def test_an_unknown_backend_is_named():
    with pytest.raises(ValueError, match="unknown device 'tpu:0': expected one of cpu"):
        backend_of(Device("tpu", 0))


def test_a_copy_on_the_same_device_is_a_copy():
    array = np.zeros(2)

    assert not np.shares_memory(copy_to(array, CPU), array)
