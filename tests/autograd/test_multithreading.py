"""K5, C25: which thread runs the work of a device."""

import threading

import pytest

import gradviz as gv
from gradviz.autograd import set_multithreading_enabled
from gradviz.backends.device import Device
from gradviz.engine import Engine, Node
from gradviz.engine.graph.grad_mode import is_multithreading_enabled


@pytest.fixture
def x():
    return gv.tensor([1.0, 2.0], device="sim:0", requires_grad=True)


def thread_of_backward(x):
    names = []
    y = x.exp()
    y.register_hook(lambda grad: names.append(threading.current_thread().name))
    y.sum().backward()
    return names[0]


def test_the_work_of_a_device_runs_on_its_thread(x):
    assert thread_of_backward(x) == "gv_autograd_0"


def test_without_multithreading_it_runs_on_the_caller(x):
    with set_multithreading_enabled(mode=False):
        assert thread_of_backward(x) == threading.current_thread().name
    assert is_multithreading_enabled()


def test_as_a_function_it_holds_until_it_is_called_again(x):
    set_multithreading_enabled(mode=False)
    try:
        assert thread_of_backward(x) == threading.current_thread().name
    finally:
        set_multithreading_enabled(mode=True)


class Where(Node):
    def __init__(self, names, device, *next_edges):
        super().__init__(next_edges, device=device)
        self.names = names

    def apply(self, grad):
        self.names.append(threading.current_thread().name)
        return (grad,) * len(self.next_edges)


@pytest.mark.parametrize(
    ("devices", "stay"),
    [(("sim", 0), True), (("sim", 0, "cpu"), True), (("sim", 0, "sim", 1), False)],
)
def test_with_the_fast_path_a_pass_on_one_device_stays_on_the_caller(devices, stay):
    """C25."""
    engine = Engine(caller_fast_path=True)
    names = []
    first = Device(*devices[:2])
    second = Device(devices[2] if len(devices) > 2 else "cpu", *devices[3:])
    root = Where(names, first, (Where(names, second), 0))

    engine.execute([(root, 0)], [1.0])
    engine.stop()

    caller = threading.current_thread().name
    assert (names == [caller, caller]) is stay
