import numpy as np
import pytest

import gradviz as gv
from gradviz.backends.arrays.mixing import MixedDevicesError, common_device, leaves
from gradviz.backends.device import CPU, Device

SIM0, SIM1 = Device("sim", 0), Device("sim", 1)


def on(device):
    return gv.zeros(2, device=device).array


def test_arrays_have_a_device_in_common():
    assert common_device([on(SIM1), 2.0, on(SIM1), None]) is SIM1
    assert common_device([np.zeros(2), 1]) is CPU


def test_numbers_and_arrays_without_dimensions_go_with_any():
    assert common_device([np.array(2.0), np.float32(1), on(SIM0), 3]) is SIM0


@pytest.mark.parametrize(
    "values",
    [
        lambda: [on(SIM0), on(SIM1)],
        lambda: [on(SIM0), [1, (on(SIM1),)]],
        lambda: [[on(SIM0)], 2, on(SIM0), on(SIM1)],
    ],
)
def test_two_devices_are_refused_wherever_they_are(values):
    with pytest.raises(
        MixedDevicesError, match="at least two devices, sim:0 and sim:1!"
    ):
        common_device(values())


def test_the_host_is_a_device_like_others():
    with pytest.raises(MixedDevicesError, match="devices, sim:0 and cpu!") as caught:
        common_device([on(SIM0), np.zeros(2)])

    assert (caught.value.expected, caught.value.got) == (SIM0, CPU)


def test_the_first_op_that_is_said_is_the_one():
    error = MixedDevicesError(SIM0, SIM1)

    of_add = error.of("add")

    assert str(of_add).endswith("sim:1! (when checking the arguments of add)")
    assert of_add.of("mul") is of_add


def test_leaves_are_found_at_any_depth():
    assert list(leaves([1, (2, [3, ()]), {4: 5}])) == [1, 2, 3, {4: 5}]
