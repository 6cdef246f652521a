import numpy as np
import pytest

import gradviz as gv


def test_a_tensor_made_by_the_user_is_a_leaf():
    x = gv.ones(1, requires_grad=True)

    assert x.is_leaf
    assert x.grad_fn is None
    assert not (x * 2).is_leaf


def test_the_gradient_of_what_an_op_made_is_not_kept_and_says_so():
    y = gv.ones(1, requires_grad=True) * 2

    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_a_tensor_that_an_op_made_keeps_requiring_gradients():
    y = gv.ones(1, requires_grad=True) * 2

    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf"):
        y.requires_grad = False


def test_requires_grad_can_be_set_on_a_leaf():
    x = gv.ones(1)

    assert x.requires_grad_() is x
    assert x.requires_grad
    x.requires_grad = False
    assert (x * 2).grad_fn is None


@pytest.mark.parametrize(
    ("grad", "error", "message"),
    [
        (1.0, TypeError, "expected to be a Tensor or None but got grad of type float"),
        (gv.ones(3), RuntimeError, "a gradient of size"),
        (gv.ones(2, dtype=gv.float64), RuntimeError, "gradient with dtype 'double'"),
        (gv.ones(2, device="sim:0"), RuntimeError, "located on device 'sim:0'"),
    ],
)
def test_a_gradient_must_fit_its_tensor(grad, error, message):
    x = gv.ones(2, requires_grad=True)

    with pytest.raises(error, match=message):
        x.grad = grad


def test_a_detached_tensor_shares_memory_and_nothing_else():
    x = gv.ones(2, requires_grad=True)
    y = (x * 2).detach()

    assert y.grad_fn is None
    assert not y.requires_grad
    assert np.shares_memory(x.detach().array, x.array)


def test_data_is_the_tensor_without_its_graph():
    x = gv.ones(2, requires_grad=True)

    x.data -= 0.5
    assert x.tolist() == [0.5, 0.5]
    x.data = gv.zeros(2)
    assert x.tolist() == [0.0, 0.0]
    assert x.requires_grad


def test_numpy_shares_memory_and_refuses_what_has_a_graph():
    x = gv.zeros(2)
    x.numpy()[0] = 1

    assert x.tolist() == [1.0, 0.0]
    with pytest.raises(RuntimeError, match=r"Use tensor\.detach\(\)\.numpy\(\)"):
        x.requires_grad_().numpy()


def test_numpy_takes_a_tensor_for_an_array():
    x = gv.tensor([1.0, 2.0])

    assert np.asarray(x).dtype == np.float32
    assert np.asarray(x, np.float64).tolist() == [1.0, 2.0]
    assert np.stack([x, x]).shape == (2, 2)


def test_a_tensor_on_a_device_is_no_array_of_the_host():
    with pytest.raises(TypeError, match="can't convert sim:0 device type tensor"):
        gv.zeros(1, device="sim:0").numpy()


def test_one_element_becomes_a_python_number():
    assert gv.tensor([2.5]).item() == 2.5
    assert float(gv.tensor(2.5)) == 2.5
    assert int(gv.tensor(2)) == 2
    assert bool(gv.tensor(0.0)) is False
    assert [10, 20][gv.tensor(1)] == 20
    assert f"{gv.tensor(2.5):.2f}" == "2.50"


def test_several_elements_do_not():
    x = gv.ones(2)

    with pytest.raises(RuntimeError, match="with 2 elements cannot be converted"):
        x.item()
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        bool(x)
    with pytest.raises(TypeError, match="only integer tensors"):
        range(gv.tensor(1.0))


def test_a_tensor_has_a_length_and_members():
    assert len(gv.zeros(3, 2)) == 3
    assert 2 in gv.tensor([1, 2])
    assert 3 not in gv.tensor([1, 2])
    with pytest.raises(TypeError, match="0-d"):
        len(gv.tensor(1))


def test_a_tensor_is_a_key_by_identity():
    x, y = gv.ones(1), gv.ones(1)

    assert {x: "x", y: "y"}[x] == "x"


def test_nothing_is_copied_where_there_is_nothing_to_change():
    x = gv.ones(1)

    assert x.to("cpu") is x
    assert x.to(gv.float32) is x
    assert x.float() is x
    assert x.contiguous() is x


def test_to_takes_dtypes_devices_and_models_in_any_order():
    x = gv.ones(1)
    model = gv.zeros(1, dtype=gv.float64, device="sim:1")

    for y in (
        x.to("sim:1", gv.float64),
        x.to(gv.float64, "sim:1"),
        x.to(gv.float64).to(device="sim:1"),
        x.to("sim:1", dtype=gv.float64),
        x.to(model),
    ):
        assert (y.dtype, str(y.device)) == (gv.float64, "sim:1")


def test_a_copy_to_another_device_takes_the_gradient_back():
    x = gv.ones(2, requires_grad=True)

    (x.to("sim:0").double() * 3).sum().cpu().backward()

    assert x.grad.tolist() == [3.0, 3.0]
    assert (str(x.grad.device), x.grad.dtype) == ("cpu", gv.float32)


def test_integers_leave_the_graph():
    x = gv.ones(2, requires_grad=True)

    assert x.long().grad_fn is None
    assert x.bool().tolist() == [True, True]


def test_sizes_have_pytorchs_names():
    x = gv.zeros(2, 3, dtype=gv.float64)

    assert (x.size(), x.size(1), x.dim(), x.ndim, x.numel()) == ((2, 3), 3, 2, 2, 6)
    assert x.nbytes == 48
    assert x.is_floating_point()
    assert not x.T.is_contiguous()


def test_booleans_combine():
    x = gv.tensor([True, False])

    assert (~x).tolist() == [False, True]
    assert (x & x).tolist() == [True, False]
    assert (x | ~x).tolist() == [True, True]


def test_a_view_lies_in_the_memory_of_its_base():
    x = gv.arange(12.0).view(3, 4)

    assert x.storage_offset() == 0
    assert x[1, 2:].storage_offset() == 6
    assert x[1].data_ptr() == x.data_ptr() + 4 * x.itemsize


def test_memory_of_a_device_has_no_address():
    with pytest.raises(TypeError, match="sim:0 has no address on the host"):
        gv.ones(2, device="sim:0").data_ptr()
