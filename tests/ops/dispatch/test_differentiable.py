import gc
import weakref

import numpy as np
import pytest

import gradviz as gv
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.op_node import SECOND_BACKWARD
from gradviz.trace import probe


def leaf(*values):
    return gv.tensor(values, dtype=gv.float64, requires_grad=True)


def test_an_op_on_arrays_returns_an_array():
    result = gv.add(np.ones(2), np.ones(2))

    assert type(result) is np.ndarray


def test_an_op_on_a_tensor_and_an_array_returns_a_tensor_whichever_comes_first():
    x = gv.ones(2)

    assert isinstance(gv.add(x, np.ones(2, np.float32)), gv.Tensor)
    assert isinstance(gv.add(np.ones(2, np.float32), x), gv.Tensor)


def test_a_result_without_dimensions_is_an_array_nevertheless():
    assert type(gv.tensor(1.0).sin().array) is np.ndarray
    assert type((gv.tensor(1.0) * gv.tensor(2.0)).array) is np.ndarray
    assert type(gv.ones(3).sum().array) is np.ndarray


def test_no_node_is_made_of_what_needs_no_gradient():
    assert gv.ones(2).sin().grad_fn is None
    assert (gv.ones(2) * gv.ones(2)).requires_grad is False


def test_no_node_is_made_while_gradients_are_off():
    with gv.no_grad():
        y = leaf(1.0) * 2

    assert y.grad_fn is None
    assert y.requires_grad is False


def test_an_input_that_needs_no_gradient_has_an_edge_to_nowhere():
    node = (leaf(1.0) * gv.ones(1, dtype=gv.float64)).grad_fn

    assert [edge.is_valid for edge in node.next_edges] == [True, False]


def test_only_what_the_wanted_gradients_need_is_saved():
    x, constant = leaf(2.0), gv.tensor([3.0], dtype=gv.float64)

    assert (x + constant).grad_fn.saved == ()
    (saved,) = (x * constant).grad_fn.saved
    assert saved is constant


def test_a_gradient_that_nobody_wants_is_not_computed():
    calls = []

    @differentiable(
        "WatchedBackward0",
        x=lambda grad: calls.append("x") or grad,
        y=lambda grad: calls.append("y") or grad,
    )
    def watched(x, y):
        return x + y

    watched(leaf(1.0), gv.ones(1, dtype=gv.float64)).sum().backward()

    assert calls == ["x"]


def test_an_undefined_gradient_stays_undefined():
    node = (leaf(1.0) * leaf(2.0)).grad_fn

    assert node.call([None]) == (None, None)


def test_a_second_backward_through_freed_tensors_is_pytorchs_error():
    y = leaf(1.0, 2.0).sin().sum()
    y.backward()

    with pytest.raises(RuntimeError) as caught:
        y.backward()
    assert str(caught.value) == SECOND_BACKWARD


def test_an_op_that_saved_no_tensor_may_run_twice():
    x = leaf(1.0, 2.0)
    y = (x.reshape(2, 1) + 1)[0].sum()

    y.backward()
    y.backward()

    assert x.grad.tolist() == [2.0, 0.0]


def test_an_index_that_was_freed_is_an_error_too():
    y = leaf(1.0, 2.0)[[0]].sum()
    y.backward()

    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def test_a_kept_graph_gives_the_same_gradient_again():
    x = leaf(2.0)
    y = (x * x * x).sum()

    y.backward(retain_graph=True)
    y.backward()

    assert x.grad.tolist() == [24.0]


def test_a_node_that_saved_its_result_does_not_keep_itself_alive():
    y = leaf(1.0).exp()
    node = weakref.ref(y.grad_fn)
    gc.disable()
    try:
        del y
        assert node() is None
    finally:
        gc.enable()


def test_a_deep_graph_is_freed_without_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y.sin()

    del y

    assert x.grad is None


def test_a_saved_tensor_follows_the_new_data_of_its_tensor():
    x = leaf(2.0)
    y = x * x

    x.data = gv.tensor([100.0], dtype=gv.float64)
    y.sum().backward()

    assert x.grad.tolist() == [200.0]


def test_an_input_of_another_dtype_gets_a_gradient_of_its_own():
    x = gv.ones(2, requires_grad=True)
    y = leaf(2.0, 3.0)

    (x * y).sum().backward()

    assert x.grad.dtype == gv.float32
    assert y.grad.dtype == gv.float64


def test_shapes_that_do_not_broadcast_are_pytorchs_error():
    with pytest.raises(RuntimeError) as caught:
        gv.ones(2, 3) + gv.ones(2, 4)
    assert str(caught.value) == (
        "The size of tensor a (3) must match the size of tensor b (4) at "
        "non-singleton dimension 1"
    )


def test_a_listener_hears_how_many_bytes_an_op_saved():
    saved = []

    class Listener(probe.Probe):
        def tensor_saved(self, node, size_bytes):
            saved.append((node, size_bytes))

    x = leaf(1.0, 2.0)
    with probe.installed(Listener()):
        node = x.exp().grad_fn
        x + 1

    assert saved == [(node.id, 16)]


def test_a_node_says_what_gradient_it_expects():
    (metadata,) = (
        gv.ones(2, 3, device="sim:1", requires_grad=True).sin().grad_fn.input_metadata
    )

    assert metadata.key() == ((2, 3), gv.float32, gv.device("sim:1"))


def test_a_node_runs_where_its_result_is():
    assert (
        str(gv.ones(2, device="sim:1", requires_grad=True).sin().grad_fn.device)
        == "sim:1"
    )


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("sin", {"input": 2.0}),
        ("relu", {"input": 2.0}),
        ("mul", {"input": 2.0, "other": 3.0}),
        ("maximum", {"input": 2.0, "other": 3.0}),
        ("add", {"input": 2.0, "other": 3.0, "alpha": 2}),
        ("squeeze", {"input": 2.0}),
        ("mm", {"input": [[2.0]], "mat2": [[3.0]]}),
        ("swapaxes", {"input": [[2.0]], "axis0": 0, "axis1": 1}),
    ],
)
def test_arguments_have_pytorchs_names(name, named):
    op = getattr(gv, name)
    tensors = {
        key: value if isinstance(value, int) else gv.tensor(value)
        for key, value in named.items()
    }

    result = op(**tensors)

    assert gv.equal(result, op(*tensors.values()) if name != "add" else gv.tensor(8.0))
