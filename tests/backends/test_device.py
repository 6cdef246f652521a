import asyncio
import contextvars
import copy
import pickle
import threading

import pytest

import gradviz as gv
from gradviz.backends.device import CPU, Device


def test_equal_devices_are_the_same_object():
    assert Device("sim", 1) is Device("sim", 1)
    assert Device("sim", 1) is not Device("sim", 0)
    assert Device("sim:1") is Device("sim", 1)
    assert Device(type="sim", index=1) is Device("sim", 1)
    assert Device(Device("sim", 1)) is Device("sim", 1)
    assert Device("cpu", 5) is CPU


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("cpu", CPU),
        ("cpu:0", CPU),
        ("sim", Device("sim", 0)),
        ("sim:1", Device("sim", 1)),
        ("sim:10", Device("sim", 10)),
    ],
)
def test_a_name_is_parsed(name, device):
    assert Device(name) is device


@pytest.mark.parametrize(
    "name", ["", "sim:", "sim:-1", "SIM", "sim:1:2", "1", "sim:01", "sim:x", " sim"]
)
def test_an_invalid_device_name_raises(name):
    with pytest.raises(RuntimeError, match=r"Invalid device string: .* expected a"):
        gv.device(name)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            ("sim:0", 1),
            RuntimeError,
            "must not include an index because index was pass",
        ),
        (("sim", -1), RuntimeError, "Device index must not be negative, got -1"),
        (("sim", "1"), TypeError, "argument 'index' must be an int, not str"),
        ((None,), TypeError, "argument 'type' must be a str or a device, not NoneType"),
        ((1,), TypeError, "argument 'type' must be a str or a device, not int"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        gv.device(*arguments)


def test_a_device_has_pytorchs_attributes_and_repr():
    assert isinstance(gv.zeros(1).device, gv.device)
    assert (Device("sim", 1).type, Device("sim", 1).index) == ("sim", 1)
    assert (CPU.type, CPU.index, CPU.number) == ("cpu", None, -1)
    assert str(Device("sim", 1)) == "sim:1"
    assert str(CPU) == "cpu"
    assert repr(Device("sim", 1)) == "device(type='sim', index=1)"
    assert repr(CPU) == "device(type='cpu')"


def test_only_the_host_runs_on_the_caller():
    assert CPU.runs_on_caller
    assert not Device("sim", 0).runs_on_caller


@pytest.mark.parametrize("device", [CPU, Device("sim", 0), Device("sim", 1)])
def test_a_copied_device_is_the_same(device):
    assert copy.deepcopy(device) is device
    assert pickle.loads(pickle.dumps(device)) is device


# --- where tensors are made -----------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: gv.zeros(2),
        lambda: gv.ones(2),
        lambda: gv.empty(2),
        lambda: gv.full((2,), 1.0),
        lambda: gv.arange(3),
        lambda: gv.linspace(0, 1, 3),
        lambda: gv.eye(2),
        lambda: gv.rand(2),
        lambda: gv.randn(2),
        lambda: gv.randperm(3),
        lambda: gv.tensor([1.0]),
        lambda: gv.tensor(gv.zeros(1, device="cpu")),
        lambda: gv.tensor(gv.zeros(1, device="cpu").numpy()),
        lambda: gv.as_tensor([1.0]),
        lambda: gv.as_tensor(gv.zeros(1, device="cpu")),
        lambda: gv.as_tensor(gv.zeros(1, device="cpu").numpy()),
        lambda: gv.nn.Linear(2, 2).weight,
    ],
)
def test_tensors_made_in_the_block_of_a_device_are_made_there(make):
    with gv.device("sim:1") as device:
        assert gv.get_default_device() is device
        assert make().device is Device("sim", 1)
    assert gv.get_default_device() is CPU


def test_tensors_with_a_device_of_their_own_ignore_the_block():
    elsewhere = gv.zeros(1, device="sim:0")

    with gv.device("sim:1"):
        assert gv.zeros(1, device="cpu").device is CPU
        assert gv.zeros_like(elsewhere).device is Device("sim", 0)
        assert elsewhere.new_zeros(1).device is Device("sim", 0)
        assert gv.from_numpy(gv.zeros(1, device="cpu").numpy()).device is CPU


def test_blocks_nest():
    with gv.device("sim:1"):
        with gv.device("cpu"):
            assert gv.zeros(1).device is CPU
            assert gv.tensor(gv.zeros(1, device="sim:0")).device is CPU
        assert gv.zeros(1).device is Device("sim", 1)


def test_an_error_leaves_the_block():
    with pytest.raises(KeyError), gv.device("sim:1"):
        raise KeyError

    assert gv.get_default_device() is CPU


def test_a_default_device_holds_until_it_is_taken_back():
    gv.set_default_device("sim:1")
    try:
        assert gv.zeros(1).device is Device("sim", 1)
        with gv.device("sim:0"):
            assert gv.zeros(1).device is Device("sim", 0)
        assert gv.get_default_device() is Device("sim", 1)
    finally:
        gv.set_default_device(None)
    assert gv.zeros(1).device is CPU


def test_without_a_default_a_copy_stays_where_the_original_is():
    x = gv.zeros(1, device="sim:1")

    assert gv.tensor(x).device is x.device
    assert gv.as_tensor(x) is x


def test_a_default_is_a_contexts_own():
    seen = []

    async def work(name):
        with gv.device(name):
            await asyncio.sleep(0)
            seen.append(str(gv.zeros(1).device))

    async def both():
        await asyncio.gather(work("sim:0"), work("sim:1"))

    asyncio.run(both())

    assert seen == ["sim:0", "sim:1"]


def test_another_thread_has_its_own_default():
    seen = []

    def look():
        seen.append(gv.get_default_device())

    with gv.device("sim:1"):
        # In an empty context, as a thread begins unless Python is told otherwise.
        thread = threading.Thread(target=contextvars.Context().run, args=(look,))
        thread.start()
        thread.join()

    assert seen == [CPU]


# --- Tensor.to ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "device", "dtype", "is_copy"),
    [
        (("sim:1",), "sim:1", "float32", True),
        ((gv.device("sim:1"), gv.float64, True), "sim:1", "float64", True),
        ((gv.float64, True), "cpu", "float64", True),
        ((gv.float32, True), "cpu", "float32", False),
        ((gv.float32, True, True), "cpu", "float32", True),
        (("cpu", gv.float32, False, False), "cpu", "float32", False),
    ],
)
def test_a_tensor_goes_where_it_is_told_to(arguments, device, dtype, is_copy):
    x = gv.zeros(2)

    y = x.to(*arguments)

    assert (str(y.device), y.dtype.name) == (device, dtype)
    assert (y is not x) == is_copy


def test_an_index_is_that_of_an_accelerator():
    gv.device("sim")  # asks for one
    last = gv.accelerator.device_count() - 1

    device = gv.zeros(1).to(last).device

    assert device == gv.device(gv.accelerator.current_accelerator().type, last)


def test_a_tensor_says_where_it_is():
    host, there = gv.zeros(1), gv.zeros(1, device="sim:1")

    assert (host.is_cpu, host.is_cuda, host.get_device()) == (True, False, -1)
    assert (there.is_cpu, there.is_cuda, there.get_device()) == (False, False, 1)
    assert there.cpu().is_cpu
    assert host.cpu() is host
