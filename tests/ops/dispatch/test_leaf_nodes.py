"""See Note [Leaves and their nodes] in `gradviz.ops.variables.variable`."""

import gc
import weakref

import numpy as np
import pytest

import gradviz as gv


@pytest.fixture
def without_collections():
    gc.disable()
    yield
    gc.enable()


def leaf(device="cpu"):
    return gv.ones(2, device=device, requires_grad=True)


def node_of(result):
    return result.grad_fn.next_functions[0][0]


def test_all_graphs_lead_to_the_same_node():
    x = leaf()
    first, second = x.sin(), x * 2

    assert node_of(first) is node_of(second)


def test_a_node_to_which_no_graph_leads_is_used_again():
    x = leaf()
    node = weakref.ref(node_of(x.sin()))

    assert node_of(x.sin()) is node()


def test_a_hook_on_a_node_is_gone_when_no_graph_leads_there():
    x = leaf()
    calls = []
    y = x.sin()
    node_of(y).register_hook(lambda *_: calls.append("called"))

    y.sum().backward()
    del y
    x.sin().sum().backward()

    assert calls == ["called"]


def test_a_hook_on_the_leaf_stays():
    x = leaf()
    calls = []
    x.register_hook(lambda _: calls.append("called"))

    for _ in range(2):
        x.sin().sum().backward()

    assert calls == ["called"] * 2


def test_on_a_device_each_graph_has_a_node_of_its_own():
    """It remembers the stream that was current."""
    x = leaf("sim:1")
    first = node_of(x.sin()).id

    assert node_of(x.sin()).id != first


def test_a_leaf_with_other_elements_has_a_node_that_expects_them():
    x = leaf()
    x.sin()

    x.data = gv.ones(3, dtype=gv.float64)

    (metadata,) = node_of(x.sin()).input_metadata
    assert (metadata.shape, metadata.dtype) == ((3,), np.float64)


def test_a_leaf_whose_grad_may_have_another_dtype_has_a_node_that_expects_it():
    x = leaf()
    x.sin()

    x.grad_dtype = gv.float64

    assert node_of(x.sin()).input_metadata[0].dtype == np.float64


@pytest.mark.usefixtures("without_collections")
def test_a_graph_keeps_its_leaves_alive():
    y = leaf() * 2

    y.sum().backward()

    assert node_of(y).variable.grad.tolist() == [2.0, 2.0]


@pytest.mark.usefixtures("without_collections")
def test_a_gradient_edge_keeps_its_leaf_alive():
    x = leaf()
    place = gv.autograd.graph.get_gradient_edge(x)
    known = weakref.ref(x)

    del x
    assert known() is not None
    del place
    assert known() is None


@pytest.mark.usefixtures("without_collections")
@pytest.mark.parametrize("device", ["cpu", "sim:1"])
def test_a_leaf_is_freed_at_once_even_if_it_has_hooks(device):
    x = leaf(device)
    x.register_hook(lambda _: None)
    x.register_post_accumulate_grad_hook(lambda _: None)
    (x * 2).sum().backward()
    known = weakref.ref(x)

    del x

    assert known() is None


def test_hooks_of_a_leaf_run_though_nobody_but_the_graph_holds_it():
    seen = []

    def loss():
        x = leaf()
        x.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad.tolist()))
        return (x * 2).sum()

    loss().backward()

    assert seen == [[2.0, 2.0]]


def test_hooks_move_to_a_device_with_their_leaf():
    x = leaf()
    seen = []
    x.register_hook(lambda grad: seen.append(str(grad.device)))
    x.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad.tolist()))

    x.data = x.data.to("sim:1")
    (x * 2).sum().backward()

    assert seen == ["sim:1", [2.0, 2.0]]


def test_a_hook_on_the_leaf_needs_no_node():
    x = leaf()

    x.register_hook(lambda _: None)

    assert x.used_accumulator() is None


def test_a_node_of_a_leaf_with_hooks_is_used_again():
    x = leaf()
    x.register_hook(lambda _: None)
    node = weakref.ref(node_of(x.sin()))

    assert node_of(x.sin()) is node()
