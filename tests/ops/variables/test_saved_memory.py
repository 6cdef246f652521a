"""Memory of a node's saved tensors; `tests.parity` compares it with PyTorch's."""

import gc

import numpy as np
import pytest

import gradviz as gv
from gradviz.ops.variables import saved_memory
from gradviz.trace import probe


class Ear(probe.Probe):
    """Hears what nodes save: bytes of their own, of leaves, and counted before."""

    def __init__(self):
        self.heard = {}

    def tensor_saved(self, node, size_bytes):
        self.heard[node] = (size_bytes, *self.heard.get(node, (0, 0, 0))[1:])

    def saved_elsewhere(self, node, parameter_bytes, shared_bytes):
        own, *_ = self.heard.get(node, (0,))
        self.heard[node] = (own, parameter_bytes, shared_bytes)

    def of(self, tensor):
        return self.heard.get(tensor.grad_fn.id, (0, 0, 0))


@pytest.fixture
def ear():
    listener = Ear()
    with probe.installed(listener):
        yield listener


@pytest.fixture
def leaf():
    return gv.ones(4, 4, dtype=gv.float64, requires_grad=True)


def test_a_result_counts_for_the_node_that_saved_it_and_not_for_its_user(ear, leaf):
    first = leaf.exp()
    second = first.sin()

    assert ear.of(first) == (128, 0, 0)
    assert ear.of(second) == (0, 0, 128)


def test_a_leaf_counts_for_no_node_and_once(ear, leaf):
    first, second = leaf.sin(), leaf.cos()

    assert ear.of(first) == (0, 128, 0)
    assert ear.of(second) == (0, 0, 128)


def test_a_view_of_a_leaf_is_the_leafs(ear, leaf):
    assert ear.of(leaf.t()[1:].sin()) == (0, 128, 0)


def test_a_view_keeps_all_of_its_memory_alive(ear, leaf):
    view = (leaf * 1)[1:3]

    first, second = view.sin(), view.cos()

    assert ear.of(first) == (128, 0, 0)
    assert ear.of(second) == (0, 0, 64)


def test_a_tensor_that_is_saved_twice_counts_once(ear, leaf):
    x = leaf * 1

    assert ear.of(x * x) == (128, 0, 128)


def test_memory_that_a_pass_has_released_counts_anew_for_the_next_graph(ear):
    data = gv.ones(4, 4, dtype=gv.float64)
    weight = gv.ones(4, 4, dtype=gv.float64, requires_grad=True)
    first = weight * data
    first.sum().backward()

    assert ear.of(first) == ear.of(weight * data) == (128, 0, 0)


def test_memory_that_a_dead_graph_has_saved_counts_anew(ear):
    data = gv.ones(4, 4, dtype=gv.float64)
    weight = gv.ones(4, 4, dtype=gv.float64, requires_grad=True)
    first = ear.of(weight * data)
    gc.collect()

    assert first == ear.of(weight * data) == (128, 0, 0)


def test_a_function_counts_alike(ear, leaf):
    class Keeps(gv.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    x = leaf.exp()

    assert ear.of(Keeps.apply(leaf, x)) == (0, 128, 128)


def test_of_a_packed_tensor_the_packed_one_counts(ear, leaf):
    with gv.autograd.graph.saved_tensors_hooks(
        lambda x: x.numpy().astype(np.float32), gv.tensor
    ):
        x = (leaf * 1).detach() * leaf

    assert ear.of(x) == (64, 0, 0)


def test_a_packed_object_is_asked_for_nothing_but_its_size(ear, leaf):
    class Endless:
        nbytes = 8

        @property
        def base(self):
            return Endless()

    with gv.autograd.graph.saved_tensors_hooks(lambda x: Endless(), lambda x: x):
        x = leaf.exp()

    assert ear.of(x) == (8, 0, 0)


def test_the_owner_of_memory_may_be_any_object(ear, leaf):
    class Owner:
        def __init__(self, array):
            self.array, self.base = array, self
            self.__array_interface__ = array.__array_interface__
            self.nbytes = "many"

    data = gv.as_tensor(np.asarray(Owner(np.ones((4, 4)))))

    assert ear.of(leaf * data) == (128, 0, 0)


@pytest.mark.parametrize("device", ["cpu", "sim:0"])
def test_it_is_the_same_on_a_device(ear, device):
    x = gv.ones(4, 4, device=device, requires_grad=True) * 1
    y = x.exp()

    assert ear.of(y) == (64, 0, 0)
    assert ear.of(y.t().sin()) == (0, 0, 64)


def test_entries_of_dead_graphs_are_dropped(ear, leaf, monkeypatch):
    monkeypatch.setattr(saved_memory, "_FEWEST", 8)
    monkeypatch.setattr(saved_memory, "_limit", 8)
    for _ in range(100):
        (leaf * 1).exp()
    gc.collect()
    leaf.exp()

    assert len(saved_memory._savers) <= 2 * 8


def test_another_thread_may_drop_an_entry_as_soon_as_it_was_found(
    ear, leaf, monkeypatch
):
    class Dropping(dict):
        def __contains__(self, key):
            return super().pop(key, None) is not None

        def get(self, key, default=None):
            return super().pop(key, default)

    monkeypatch.setattr(saved_memory, "_savers", Dropping())
    x = leaf.exp()

    assert ear.of(x.sin()) == (0, 0, 128)
