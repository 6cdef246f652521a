import copy
import pickle

import pytest

import gradviz as gv


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
@pytest.mark.parametrize("device", ["cpu", "sim:1"])
def test_a_copy_is_a_leaf_with_elements_of_its_own(copied, device):
    x = gv.tensor([1.0, 2.0], device=device, requires_grad=True)
    x.nickname = ["x"]

    y = copied(x)
    y.detach().zero_()

    assert (y.requires_grad, y.is_leaf, y.nickname) == (True, True, ["x"])
    assert y.device is x.device
    assert x.tolist() == [1.0, 2.0]


def test_a_deep_copy_has_the_gradient_too():
    x = gv.ones(2, requires_grad=True)
    (x * 3).sum().backward()

    y = copy.deepcopy(x)

    assert y.grad.tolist() == [3.0, 3.0]
    assert y.grad is not x.grad


def test_two_references_to_one_tensor_stay_two_to_one():
    x = gv.ones(2)

    first, second = copy.deepcopy([x, x])

    assert first is second


def test_a_tensor_that_an_op_made_is_not_copied_deeply():
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly"):
        copy.deepcopy(gv.ones(2, requires_grad=True) * 2)


def test_a_shape_counts_elements_and_prints_as_pytorchs():
    size = gv.zeros(2, 3).shape

    assert size == (2, 3)
    assert size.numel() == 6
    assert repr(size[1:]) == "gradviz.Size([3])"
    assert repr((1, *size)) == "(1, 2, 3)"
