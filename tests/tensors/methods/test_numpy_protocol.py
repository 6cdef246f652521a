import numpy as np
import pytest

import gradviz as gv


@pytest.fixture
def x():
    return gv.tensor([1.0, 4.0], dtype=gv.float64, requires_grad=True)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (np.sqrt, "SqrtBackward0"),
        (np.negative, "NegBackward0"),
        (lambda x: np.multiply(x, x), "MulBackward0"),
        (lambda x: np.ones(2) * x, "MulBackward0"),
        (lambda x: x - np.ones(2), "SubBackward0"),
        (lambda x: np.float64(3) + x, "AddBackward0"),
        (lambda x: np.ones((3, 2)) @ x, "MvBackward0"),
        (np.sum, "SumBackward0"),
        (lambda x: np.mean(x, axis=0, keepdims=True), "MeanBackward1"),
        (np.std, "StdBackward0"),
        (lambda x: np.concatenate([x, x]), "CatBackward0"),
        (lambda x: np.stack([x, np.ones(2)]), "StackBackward0"),
        (lambda x: np.where(x > 2, x, 0.0), "WhereBackward0"),
        (lambda x: np.clip(x, 0, 2), "ClampBackward1"),
        (lambda x: np.sum(x, axis=0), "SumBackward1"),
        (lambda x: np.prod(x, axis=0, keepdims=True), "ProdBackward1"),
        (lambda x: np.max(x, axis=0), "AmaxBackward0"),
        (np.min, "AminBackward0"),
        (lambda x: np.cumsum(x, axis=0), "CumsumBackward0"),
        (lambda x: np.reshape(x, (2, 1)), "ViewBackward0"),
        (lambda x: np.reshape(x, -1), "ViewBackward0"),
        (lambda x: np.ravel(np.reshape(x, (1, 2))), "ViewBackward0"),
        (lambda x: np.squeeze(np.expand_dims(x, axis=1), axis=1), "SqueezeBackward1"),
        (lambda x: np.expand_dims(x, 0), "UnsqueezeBackward0"),
        (lambda x: np.dot(x, np.ones(2)), "DotBackward0"),
        (np.copy, "CloneBackward0"),
    ],
)
def test_a_function_of_numpy_is_the_op_of_the_tensor(x, function, name):
    result = function(x)

    assert isinstance(result, gv.Tensor)
    assert result.grad_fn.name() == name
    assert np.allclose(result.tolist(), function(np.array([1.0, 4.0])))


@pytest.mark.parametrize(
    "function", [np.argmax, np.argmin, np.all, np.any, np.shape, np.ndim, np.size]
)
def test_numpy_functions_without_gradient_return_the_same_for_a_tensor(x, function):
    assert function(x) == function(np.array([1.0, 4.0]))


@pytest.mark.parametrize("function", [np.copysign, np.less_equal, np.subtract])
def test_a_number_of_numpy_may_come_first(function):
    integers = np.array([-1, 2, 3])

    result = function(np.float64(2.5), gv.tensor(integers))

    assert result.tolist() == function(2.5, integers).tolist()


def test_numpy_functions_without_an_op_accept_tensors():
    assert np.median(gv.tensor([1.0, 2.0, 9.0])) == 2.0
    assert isinstance(np.cbrt(gv.ones(2)), gv.Tensor)


def test_numpy_functions_without_an_op_refuse_tensors_that_require_gradients(x):
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        np.cbrt(x)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        np.median(x)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        np.asarray(x)


def test_an_array_of_a_tensor_shares_its_memory():
    x = gv.zeros(2)

    np.asarray(x)[0] = 5

    assert x.tolist() == [5.0, 0.0]


def test_other_libraries_may_share_the_memory():
    x = gv.arange(3.0)

    np.from_dlpack(x)[...]  # it is read-only in some versions of NumPy
    shared = gv.from_dlpack(x)
    x[0] = 7

    assert shared.tolist() == [7.0, 1.0, 2.0]
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="Can't export tensors that require grad"):
        gv.ones(2, requires_grad=True).__dlpack__()


def test_a_buffer_may_be_seen_as_a_tensor():
    buffer = bytearray(b"\x01\x02\x03\x04")
    x = gv.frombuffer(buffer, dtype=gv.int8, count=2, offset=1)

    buffer[1] = 9

    assert x.tolist() == [9, 3]
