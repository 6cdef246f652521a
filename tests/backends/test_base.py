import numpy as np
import pytest

from gradviz.backends import base
from gradviz.backends.base import backend_of, copy_to, device_of
from gradviz.backends.device import CPU, Device
from tests.backends.isolation import backends_as_they_were


def test_backends_are_found_by_device_and_by_array():
    assert backend_of(CPU).type == "cpu"
    assert backend_of(Device("sim", 0)).type == "sim"
    assert device_of(np.zeros(1)) is CPU


def test_objects_that_are_no_arrays_have_no_device():
    assert device_of("array") is None
    assert device_of(2.0) is None


def test_an_unknown_backend_is_named():
    with pytest.raises(
        RuntimeError, match="unknown device 'tpu:0': expected one of cpu"
    ):
        backend_of(Device("tpu", 0))


def test_a_copy_on_the_same_device_is_a_copy():
    array = np.zeros(2)

    assert not np.shares_memory(copy_to(array, CPU), array)


class Made:
    """A backend that is made when it is asked for."""

    array_types = ()

    def __init__(self, kind):
        self.type = kind

    def device_count(self):
        return 1


@pytest.fixture
def table():
    with backends_as_they_were():
        yield


@pytest.mark.usefixtures("table")
def test_a_backend_is_made_once_and_when_it_is_asked_for():
    made = []
    base.register_maker("late", lambda: made.append(1) or Made("late"))
    assert made == []

    first = backend_of(Device("late", 0))

    assert backend_of(Device("late", 0)) is first
    assert made == [1]


@pytest.mark.usefixtures("table")
def test_making_a_backend_may_ask_for_another():
    base.register_maker("inner", lambda: Made("inner"))
    base.register_maker(
        "outer", lambda: backend_of(Device("inner", 0)) and Made("outer")
    )

    assert backend_of(Device("outer", 0)).type == "outer"


@pytest.mark.usefixtures("table")
def test_a_backend_that_cannot_be_made_is_asked_for_again():
    missing = ["driver"]

    def make():
        if missing:
            raise RuntimeError(f"no {missing.pop()}")
        return Made("late")

    base.register_maker("late", make)

    with pytest.raises(RuntimeError, match="no driver"):
        backend_of(Device("late", 0))
    assert base.count_devices("late") == 1


def test_devices_that_cannot_be_had_are_none():
    assert base.count_devices("nonesuch") == 0
    assert base.count_devices("sim") >= 1


def test_there_is_a_current_accelerator():
    Device("sim")  # asks for one

    assert base.current_accelerator().type in ("cuda", "sim")
