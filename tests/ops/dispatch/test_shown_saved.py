import pytest

import gradviz as gv


@pytest.fixture
def x():
    return gv.tensor([[1.0, 2.0]], requires_grad=True)


@pytest.mark.parametrize(
    ("compute", "names"),
    [
        (lambda x: x * x, {"self", "other"}),
        (lambda x: x @ x.T, {"self", "mat2"}),
        (lambda x: x**x, {"self", "exponent", "result"}),
        (lambda x: x.sum(1), {"dim", "self_sym_sizes"}),
        (lambda x: x.clamp(0, 1), {"self", "min", "max"}),
        (lambda x: gv.addcmul(x, x, x), {"tensor1", "tensor2", "value"}),
        (lambda x: gv.nn.functional.mse_loss(x, x * 2), {"self", "target"}),
        (lambda x: gv.nn.functional.layer_norm(x, (2,)), {"input", "result1"}),
    ],
)
def test_saved_values_have_pytorchs_names(x, compute, names):
    node = compute(x).grad_fn

    assert names <= {
        name.removeprefix("_saved_") for name in dir(node) if name.startswith("_saved_")
    }
    assert all(f"_raw_saved_{name}" in dir(node) for name in names)


def test_each_thing_saved_has_one_name(x):
    node = (x @ x.T).grad_fn

    shown = sorted(name for name in dir(node) if name.startswith("_saved_"))

    assert shown == ["_saved_mat2", "_saved_self"]


def test_whole_dimensions_among_indices_are_none(x):
    rows, columns = x[:, gv.tensor([0, 1])].grad_fn._saved_indices

    assert rows is None
    assert columns.tolist() == [0, 1]


def test_a_saved_value_that_no_wanted_gradient_needs_is_none(x):
    assert (x * gv.ones(2)).grad_fn._saved_self is None
