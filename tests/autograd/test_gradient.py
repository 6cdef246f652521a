import collections

import pytest

import gradviz as gv
from gradviz.autograd import grad
from gradviz.autograd.graph import get_gradient_edge
from gradviz.engine import Engine, default_engine, set_default_engine


def leaf(*values):
    return gv.tensor(values, dtype=gv.float64, requires_grad=True)


def test_gradients_are_returned_and_not_stored():
    x, y = leaf(2.0), leaf(3.0)

    gx, gy = grad((x * y).sum(), (x, y))

    assert (gx.item(), gy.item()) == (3.0, 2.0)
    assert x.grad is None
    assert isinstance(gx, gv.Tensor)
    assert not gx.requires_grad


def test_an_input_may_be_in_the_middle_of_the_graph():
    x = leaf(2.0)
    y = x * 3

    (gy,) = grad((y * y).sum(), y)

    assert gy.item() == 12.0


def test_an_input_and_what_it_is_made_of_may_be_asked_together():
    x = leaf(2.0)
    y = x * 3

    gy, gx = grad((y * y).sum(), (y, x))

    assert (gy.item(), gx.item()) == (12.0, 36.0)


def test_derivatives_of_any_order_are_exact():
    x = leaf(3.0)
    y = x**4

    orders = []
    for _ in range(4):
        (y,) = grad(y.sum(), x, create_graph=True)
        orders.append(y.item())

    assert orders == [108.0, 108.0, 72.0, 24.0]


def test_a_gradient_penalty_reaches_the_leaves():
    x = leaf(1.0, 2.0)
    (gx,) = grad((x * x * x).sum(), x, create_graph=True)

    (gx * gx).sum().backward()

    assert x.grad.tolist() == [36.0, 288.0]


def test_a_gradient_with_a_graph_warns_of_the_cycle_once_it_goes_into_a_leaf():
    # An engine warns once, and the shared one may have done so in another test.
    shared, fresh = default_engine(), Engine()
    set_default_engine(fresh)
    x = leaf(2.0)

    with pytest.warns(UserWarning, match="create_graph=True will create a reference"):
        (x * x).sum().backward(create_graph=True)

    set_default_engine(shared)
    fresh.stop()
    assert x.grad.grad_fn is not None
    x.grad = None


def test_outputs_are_weighted():
    x = leaf(1.0, 2.0)

    (gx,) = grad(x * x, x, gv.tensor([1.0, 10.0], dtype=gv.float64))

    assert gx.tolist() == [2.0, 40.0]


def test_an_input_that_was_not_used_is_named():
    """I7, G9."""
    x, y = leaf(1.0), leaf(1.0)

    with pytest.raises(RuntimeError) as caught:
        grad((x * 2).sum(), (x, y))
    assert str(caught.value) == (
        "The differentiated Tensor at index 1 appears to not have been used in the "
        "graph. Set allow_unused=True if this is the desired behavior."
    )


def test_an_input_that_was_not_used_may_be_allowed():
    x, y = leaf(1.0), leaf(1.0)

    assert grad((x * 2).sum(), y, allow_unused=True) == (None,)
    (zeros,) = grad((x * 2).sum(), y, materialize_grads=True)
    assert zeros.tolist() == [0.0]


def test_contradictory_arguments_are_an_error():
    x = leaf(1.0)

    with pytest.raises(ValueError, match="Expected allow_unused to be True"):
        grad(x.sum(), x, allow_unused=False, materialize_grads=True)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((), r"`inputs` argument to `grad\(\)` cannot be empty\."),
        (gv.ones(1), "One of the differentiated Tensors does not require grad"),
    ],
)
def test_a_wrong_input_is_pytorchs_error(inputs, message):
    with pytest.raises(RuntimeError, match=message):
        grad(leaf(1.0).sum(), inputs)


def test_the_graph_is_kept_only_if_asked():
    x = leaf(2.0)
    y = (x * x).sum()

    grad(y, x, retain_graph=True)
    grad(y, x)

    with pytest.raises(RuntimeError, match="a second time"):
        grad(y, x)


def test_a_backward_inside_a_hook_has_a_pass_of_its_own():
    x, inner = leaf(2.0), leaf(5.0)
    y = x * 3

    @gv.enable_grad()
    def differentiate_something_else(_):
        (inner * inner).sum().backward()

    y.register_hook(differentiate_something_else)
    y.sum().backward()

    assert x.grad.tolist() == [3.0]
    assert inner.grad.tolist() == [10.0]


def test_inputs_may_come_in_a_dictionary():
    """C15."""
    x, y = leaf(2.0), leaf(3.0)

    gradients = grad((x * x).sum(), {"x": x, 7: y}, materialize_grads=True)

    assert {key: value.tolist() for key, value in gradients.items()} == {
        "x": [4.0],
        7: [0.0],
    }
    with pytest.raises(TypeError, match="must be a dict, not OrderedDict"):
        grad((x * x).sum(), collections.OrderedDict(x=x))
    with pytest.raises(RuntimeError, match="cannot be empty"):
        grad((x * x).sum(), {})


def test_an_edge_stands_for_its_tensor():
    """C14."""
    x = leaf(2.0)
    y = x * 3
    root = get_gradient_edge((y * y).sum())

    by_y, by_x = grad(root, [get_gradient_edge(y), get_gradient_edge(x)])

    assert (by_y.item(), by_x.item()) == (12.0, 36.0)


def test_an_edge_outlives_its_tensor():
    x = leaf(2.0)
    edge = get_gradient_edge(x * 3)

    gv.autograd.backward(edge, inputs=get_gradient_edge(x))

    assert x.grad.item() == 3.0


def test_an_edge_has_the_shape_of_its_tensor():
    x = leaf(2.0, 3.0)
    edge = get_gradient_edge(x * 3)

    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        gv.autograd.backward(edge)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        gv.autograd.backward(edge, gv.ones(3, dtype=gv.float64))
    with pytest.raises(RuntimeError, match="when the given input is a GradientEdge"):
        grad((x * x).sum(), edge, materialize_grads=True)


def test_zeros_in_place_of_none_may_be_part_of_a_graph():
    x, y = leaf(2.0), leaf(3.0)

    _, zeros = grad((x * x).sum(), (x, y), create_graph=True, materialize_grads=True)

    assert zeros.requires_grad
    assert zeros.tolist() == [0.0]


def test_several_gradients_at_once_are_refused():
    x = leaf(2.0, 3.0)

    with pytest.raises(NotImplementedError, match="call grad once for each gradient"):
        grad(x * 2, x, gv.eye(2, dtype=gv.float64), is_grads_batched=True)
