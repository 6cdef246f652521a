import gc
import weakref

import pytest

import gradviz as gv


def test_a_hook_sees_the_gradient_as_a_tensor_and_may_replace_it():
    x = gv.ones(2, requires_grad=True)
    seen = []
    y = x * 2
    y.register_hook(seen.append)
    y.register_hook(lambda grad: grad * 10)

    y.sum().backward()

    assert isinstance(seen[0], gv.Tensor)
    assert seen[0].tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [20.0, 20.0]


def test_a_hook_on_a_leaf_is_called_in_every_pass():
    x = gv.ones(1, requires_grad=True)
    seen = []
    x.register_hook(lambda grad: seen.append(grad.item()))

    for factor in (2, 3):
        (x * factor).sum().backward()

    assert seen == [2.0, 3.0]


def test_a_removed_hook_is_called_no_more():
    x = gv.ones(1, requires_grad=True)
    seen = []

    with x.register_hook(seen.append):
        (x * 2).sum().backward()
    (x * 2).sum().backward()

    assert len(seen) == 1


def test_a_hook_needs_a_gradient_to_see():
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that"):
        gv.ones(1).register_hook(print)


def test_a_hook_must_return_a_tensor_of_the_same_shape():
    y = gv.ones(2, requires_grad=True) * 2
    y.register_hook(lambda grad: grad.sum())

    with pytest.raises(RuntimeError, match="hook '<lambda>' has changed the size"):
        y.sum().backward()


def test_a_hook_that_returns_no_tensor_is_named():
    y = gv.ones(2, requires_grad=True) * 2
    y.register_hook(lambda grad: "grad")

    with pytest.raises(TypeError, match="expected Variable, but hook returned 'str'"):
        y.sum().backward()


def test_a_retained_gradient_accumulates():
    y = gv.ones(2, requires_grad=True) * 2
    y.retain_grad()
    z = (y * 3).sum()

    z.backward(retain_graph=True)
    z.backward()

    assert y.retains_grad
    assert y.grad.tolist() == [6.0, 6.0]


def test_a_retained_gradient_is_what_the_hooks_made_of_it():
    y = gv.ones(1, requires_grad=True) * 2
    y.retain_grad()
    y.register_hook(lambda grad: grad * 10)

    y.sum().backward()

    assert y.grad.tolist() == [10.0]


def test_retaining_is_nothing_new_to_a_leaf_and_nothing_without_a_gradient():
    x = gv.ones(1, requires_grad=True)
    x.retain_grad()

    assert not x.retains_grad
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor"):
        gv.ones(1).retain_grad()


def test_a_retained_gradient_keeps_no_tensor_alive():
    y = gv.ones(1, requires_grad=True) * 2
    z = y * 2
    y.retain_grad()
    reference = weakref.ref(y)
    gc.disable()
    try:
        del y
        assert reference() is None
    finally:
        gc.enable()
    z.sum().backward()
