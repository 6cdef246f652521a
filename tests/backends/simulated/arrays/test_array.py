import numpy as np
import pytest

from gradviz.backends.base import copy_to, device_of
from gradviz.backends.device import CPU, Device
from gradviz.backends.simulated import SimulatedArray

SIM0, SIM1 = Device("sim", 0), Device("sim", 1)


def on(device, data):
    return copy_to(np.array(data), device)


def test_an_array_goes_to_a_device_and_comes_back_as_a_copy():
    host = np.arange(3.0)

    device_array = copy_to(host, SIM1)
    back = copy_to(device_array, CPU)
    host[0] = 9

    assert type(device_array) is SimulatedArray
    assert device_of(device_array) is SIM1
    assert back.tolist() == [0.0, 1.0, 2.0]


def test_a_number_of_numpys_goes_as_an_array_without_dimensions():
    assert copy_to(np.float64(2), SIM0).shape == ()
    assert device_of(np.float32(2)) is CPU


@pytest.mark.parametrize(
    "kernel",
    [
        lambda x: x + 1,
        lambda x: 1 - x,
        lambda x: x * x,
        lambda x: x @ x.T,
        lambda x: -x,
        lambda x: x > 1,
        np.sin,
        np.sum,
        lambda x: np.add.reduce(x, axis=1),
        lambda x: np.where(x > 1, x, 0),
        lambda x: np.concatenate([x, x]),
        lambda x: np.stack([x, x], axis=1),
        lambda x: np.broadcast_to(x, (4, 2, 3)),
        lambda x: np.zeros_like(x, shape=(5,)),
        lambda x: np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), 1),
        lambda x: x.astype(np.float32),
        lambda x: x.sum(axis=0, keepdims=True),
        lambda x: x.reshape(3, 2),
        lambda x: x.copy(),
        lambda x: x[1:, ::2],
        lambda x: x[x > 2],
        lambda x: x[np.array([1, 0])],
    ],
)
def test_results_of_numpy_functions_stay_on_the_device(kernel):
    data = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])

    result = kernel(on(SIM1, data))

    assert type(result) is SimulatedArray
    assert result.device is SIM1
    np.testing.assert_array_equal(copy_to(result, CPU), kernel(data))
    assert result.dtype == kernel(data).dtype


def test_an_array_knows_its_memory():
    x = on(SIM0, np.zeros((2, 3)))

    assert (x.shape, x.ndim, x.size, x.nbytes) == ((2, 3), 2, 6, 48)
    assert x.strides == (24, 8)
    assert x.flags.owndata
    assert not x.reshape(3, 2).flags.owndata
    assert len(x) == 2


def test_elements_are_read_to_the_host():
    x = on(SIM0, [2.5])

    assert (x.item(), float(x[0]), int(x[0]), bool(x)) == (2.5, 2.5, 2, True)
    assert x.tolist() == [2.5]
    assert repr(x) == "SimulatedArray([2.5], dtype=float64, device='sim:0')"


def test_an_array_changes_in_place():
    x = on(SIM0, [1.0, 2.0])
    memory = x.raw

    x += on(SIM0, [1.0, 1.0])
    x[0] = 7.0
    np.add.at(x, np.array([1, 1]), 1.0)

    assert x.raw is memory
    assert x.tolist() == [7.0, 5.0]


@pytest.mark.parametrize(
    "mix",
    [
        lambda x: x + np.ones(2),
        lambda x: np.ones(2) * x,
        lambda x: x + on(SIM1, [1.0, 1.0]),
        lambda x: np.concatenate([x, np.ones(2)]),
        lambda x: np.where(np.array([True, False]), x, 0),
        lambda x: x.__setitem__(slice(None), np.ones(2)),
        lambda x: np.add(x, 1, out=np.ones(2)),
    ],
)
def test_two_devices_do_not_mix(mix):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same"):
        mix(on(SIM0, [1.0, 2.0]))


def test_the_error_names_both_devices():
    with pytest.raises(RuntimeError, match="at least two devices, sim:0 and cpu!"):
        on(SIM0, [1.0]) + np.ones(1)


def test_numbers_mix_with_any_device():
    x = on(SIM0, [1.0, 2.0])

    assert (x * 2 + np.array(1.0) + np.float64(1)).tolist() == [4.0, 6.0]


def test_numpy_does_not_reach_into_a_device():
    with pytest.raises(TypeError, match=r"can't convert sim:0 .* Use Tensor\.cpu\(\)"):
        np.asarray(on(SIM0, [1.0]))
