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


class TestAfterAccumulation:
    """C13."""

    def test_they_see_the_leaf_with_its_new_gradient(self):
        seen = []
        x = gv.tensor([1.0, 2.0], requires_grad=True)

        def step(leaf):
            seen.append((leaf is x, leaf.grad.tolist()))
            leaf.grad = None

        x.register_post_accumulate_grad_hook(step)
        (x * 2).sum().backward()
        (x * 3).sum().backward()

        assert seen == [(True, [2.0, 2.0]), (True, [3.0, 3.0])]
        assert x.grad is None

    def test_each_registration_is_removed_by_its_own_handle(self):
        seen = []
        x = gv.tensor([1.0, 2.0], requires_grad=True)
        handles = [
            x.register_post_accumulate_grad_hook(lambda leaf: seen.append(1))
            for _ in range(2)
        ]

        handles[0].remove()
        x.sum().backward()

        assert seen == [1]

    def test_only_leaves_that_need_gradients_have_them(self):
        x = gv.tensor([1.0, 2.0], requires_grad=True)

        with pytest.raises(RuntimeError, match="registered on non-leaf tensors"):
            (x * 2).register_post_accumulate_grad_hook(print)
        with pytest.raises(RuntimeError, match="doesn't require gradient"):
            gv.ones(2).register_post_accumulate_grad_hook(print)


class TestNodes:
    """Hooks that users register on ``grad_fn`` see tensors."""

    def test_hooks_before_a_node_may_replace_its_gradients(self):
        x = gv.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        handle = y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))

        y.sum().backward(retain_graph=True)
        handle.remove()
        y.sum().backward()

        assert x.grad.tolist() == [33.0, 33.0]

    def test_hooks_after_a_node_see_both_sides(self):
        seen = []
        x = gv.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        y.grad_fn.register_hook(lambda *both: seen.append(both))

        y.sum().backward()

        ((returned, given),) = seen
        assert returned[0].tolist() == [3.0, 3.0]
        assert given[0].tolist() == [1.0, 1.0]

    def test_a_prehook_must_return_a_tuple(self):
        y = gv.tensor([1.0, 2.0], requires_grad=True) * 3
        y.grad_fn.register_prehook(lambda grads: grads[0])

        with pytest.raises(TypeError, match="expected tuple, but hook returned"):
            y.sum().backward()

    def test_a_handle_keeps_no_graph_alive(self):
        y = gv.tensor([1.0, 2.0], requires_grad=True) * 3
        handles = [y.grad_fn.register_hook(print), y.register_hook(print)]
        node = weakref.ref(y.grad_fn)

        del y

        assert node() is None
        for handle in handles:
            handle.remove()
