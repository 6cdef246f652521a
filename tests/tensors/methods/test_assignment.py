import numpy as np
import pytest

import gradviz as gv


def test_elements_are_assigned_where_there_is_no_graph():
    x = gv.zeros(2, 2)

    x[0] = gv.tensor([1.0, 2.0])
    x[:, 1] = 5
    x[x == 0] = 7
    x[gv.tensor([1]), 0] = 8

    assert x.tolist() == [[1.0, 5.0], [8.0, 5.0]]


@pytest.mark.parametrize(
    ("index", "name"),
    [
        (0, "CopySlices"),
        (slice(0, 1), "CopySlices"),
        (Ellipsis, "CopyBackwards"),
        (None, "CopySlices"),
        ((0, slice(None)), "CopySlices"),
        (np.array([0]), "IndexPutBackward0"),
        (np.array([[True, False], [False, True]]), "IndexPutBackward0"),
        ((0, np.array([0, 1])), "CopySlices"),
    ],
)
def test_an_assigned_tensor_joins_the_graph(index, name):
    source = gv.full((2,), 3.0, requires_grad=True)
    x = gv.zeros(2, 2)

    x[index] = source
    (x * x).sum().backward()

    assert x.grad_fn.name() == name
    taken = np.zeros((2, 2))
    taken[index] = 1
    assert source.grad.sum().item() == 6.0 * taken.sum()


def test_an_overwritten_element_gets_no_gradient():
    x = gv.ones(3, requires_grad=True)
    y = x * 2

    y[1] = 7.0
    y.sum().backward()

    assert x.grad.tolist() == [2.0, 0.0, 2.0]


def test_copies_come_from_any_device():
    x = gv.zeros(2)

    x.copy_(gv.ones(2, device="sim:1"))

    assert x.tolist() == [1.0, 1.0]
    assert type(x.array) is np.ndarray


def test_gradients_of_a_copy_go_back_to_the_device_of_its_source():
    source = gv.ones(2, device="sim:1", requires_grad=True)

    gv.zeros(3, 2).copy_(source).sum().backward()

    assert str(source.grad.device) == "sim:1"
    assert source.grad.tolist() == [3.0, 3.0]


def test_a_number_with_an_imaginary_part_is_no_real_number():
    with pytest.raises(RuntimeError, match="cannot be converted to type float"):
        gv.zeros(2)[0] = 1j


@pytest.mark.parametrize(
    ("assign", "error", "message"),
    [
        (lambda x: x.__setitem__(0, [1, 2]), TypeError, "can't assign a list"),
        (lambda x: x.__setitem__(0, "a"), TypeError, "can't assign a str"),
        (lambda x: x.__setitem__(5, 1), IndexError, "index 5 is out of bounds"),
        (
            lambda x: x.__setitem__(slice(0, 2), gv.ones(3)),
            RuntimeError,
            r"The expanded size of the tensor \(2\) must match the existing size \(3\)",
        ),
        (
            lambda x: x.copy_(gv.ones(2)),
            RuntimeError,
            r"The size of tensor a \(3\) must match the size of tensor b \(2\)",
        ),
        (
            lambda x: x.copy_(gv.ones(2, 3)),
            RuntimeError,
            r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]",
        ),
        (lambda x: x.copy_([1]), TypeError, "must be Tensor, not list"),
        (lambda x: x.fill_(gv.ones(1)), RuntimeError, "only supports 0-dimension"),
        (lambda x: x.fill_("a"), TypeError, "must be Tensor or Number, not str"),
    ],
)
def test_an_invalid_assignment_raises_an_error_that_explains_it(assign, error, message):
    with pytest.raises(error, match=message):
        assign(gv.zeros(3))


class TestParts:
    def test_of_complex_numbers_may_be_set(self):
        z = gv.ones(2, dtype=gv.complex64)

        z.imag = gv.tensor([2.0, 3.0])
        z.real = 5

        assert z.tolist() == [5 + 2j, 5 + 3j]

    def test_the_real_one_of_a_real_tensor_is_the_tensor(self):
        x = gv.ones(2)

        x.real = gv.zeros(2)

        assert x.tolist() == [0.0, 0.0]

    def test_the_imaginary_one_of_a_real_tensor_is_not_there(self):
        with pytest.raises(RuntimeError, match="imag is not implemented for tensors"):
            gv.ones(2).imag = gv.ones(2)

    def test_setting_them_is_part_of_the_graph(self):
        z = gv.ones(2, dtype=gv.complex64, requires_grad=True)
        w = z * 2

        w.imag = gv.ones(2)
        w.real.sum().backward()

        assert w.grad_fn.name() == "CopySlices"
        assert z.grad.tolist() == [2.0, 2.0]


class TestMemory:
    def test_of_another_tensor_may_be_taken_over(self):
        x, y = gv.zeros(2), gv.ones(5)

        assert x.set_(y) is x
        y[0] = 7

        assert x.tolist() == [7.0, 1.0, 1.0, 1.0, 1.0]
        assert x._version == 1

    def test_may_be_let_go(self):
        assert gv.ones(2, 2).set_().shape == (0,)

    def test_of_a_leaf_that_requires_gradients_stays(self):
        x = gv.ones(2, requires_grad=True)

        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            x.set_(gv.ones(3))
        with gv.no_grad():
            x.set_(gv.ones(3))
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2.0] * 3

    def test_of_another_shape_has_a_place_of_its_own_in_the_graph(self):
        x = gv.ones(3, requires_grad=True)
        before = gv.autograd.graph.get_gradient_edge(x)
        y = (x * 2).sum()

        with gv.no_grad():
            x.set_(x[1:])

        gv.cat((x, x)).sum().backward()
        assert x.grad.tolist() == [2.0] * 2
        assert gv.autograd.grad(y, before)[0].tolist() == [2.0] * 3

    def test_of_what_an_op_made_cannot_be_gone_back_through(self):
        y = (gv.ones(2, requires_grad=True) * 2).set_(gv.ones(3))

        with pytest.raises(RuntimeError, match="derivative for set_ is not impl"):
            y.sum().backward()

    def test_on_another_device_is_refused(self):
        x = gv.ones(2, requires_grad=True)

        with (
            gv.no_grad(),
            pytest.raises(RuntimeError, match='storage on different device "sim:0"'),
        ):
            x.set_(gv.ones(2, device="sim"))
        assert x.tolist() == [1.0, 1.0]

    def test_is_that_of_a_tensor(self):
        with pytest.raises(TypeError, match=r"'source'.*must be Tensor, not list"):
            gv.ones(2).set_([1.0])

    def test_of_a_view_without_elements_may_be_changed(self):
        x = gv.ones(4)

        assert x.as_strided((1, 0), (2, 2)).add_(1).shape == (1, 0)

    def test_is_not_changed_by_a_size_that_it_has(self):
        x = gv.ones(1)

        assert x.resize_(1, 2)._version == 1
        assert x.resize_as_(gv.ones(3))._version == 2
        assert x.resize_(3)._version == 2


class TestFunctionsOfPython:
    def test_set_each_element(self):
        x = gv.arange(4.0).reshape(2, 2)

        assert x.apply_(lambda value: value * 2) is x
        x.map_(gv.tensor([10.0, 20.0]), lambda one, other: one + other)

        assert x.tolist() == [[10.0, 22.0], [14.0, 26.0]]
        assert x._version == 2

    def test_know_no_gradients(self):
        x = gv.ones(2, requires_grad=True)

        with pytest.raises(RuntimeError, match=r"Can't call apply_\(\) on Variable"):
            x.apply_(abs)
        with pytest.raises(RuntimeError, match=r"Can't call map_\(\) on Variable"):
            gv.ones(2).map_(x, min)

    def test_know_no_devices(self):
        with pytest.raises(TypeError, match="apply_ is only implemented on CPU"):
            gv.ones(2, device="sim:0").apply_(abs)
