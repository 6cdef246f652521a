import warnings

import pytest

import gradviz as gv
from gradviz import nn


class Mixed(nn.Module):
    """Takes something that is no tensor, and returns two results."""

    def forward(self, x, factor, y):
        return x * factor, y * 3


@pytest.fixture
def leaves():
    return gv.ones(2, requires_grad=True), gv.ones(2, requires_grad=True)


def test_a_hook_sees_the_gradients_of_arguments_and_results(leaves):
    x, y = leaves
    seen = []
    model = Mixed()
    model.register_full_backward_hook(
        lambda module, inputs, outputs: seen.append((module, inputs, outputs))
    )

    first, second = model(x, 2, y)
    (first.sum() + 10 * second.sum()).backward()

    ((module, inputs, outputs),) = seen
    assert module is model
    assert inputs[1] is None
    assert [one.tolist() for one in (inputs[0], inputs[2])] == [[2, 2], [30, 30]]
    assert [one.tolist() for one in outputs] == [[1, 1], [10, 10]]
    assert x.grad.tolist() == [2, 2]


def test_a_hook_can_replace_the_gradients_of_arguments(leaves):
    x, y = leaves
    model = Mixed()
    model.register_full_backward_hook(
        lambda module, inputs, outputs: (inputs[0] * 5, None, inputs[2])
    )

    sum(one.sum() for one in model(x, 2, y)).backward()

    assert (x.grad.tolist(), y.grad.tolist()) == ([10, 10], [3, 3])


def test_a_pre_hook_can_replace_the_gradients_of_results(leaves):
    x, y = leaves
    model = Mixed()
    model.register_full_backward_pre_hook(
        lambda module, outputs: (outputs[0] * 7, outputs[1])
    )

    sum(one.sum() for one in model(x, 2, y)).backward()

    assert (x.grad.tolist(), y.grad.tolist()) == ([14, 14], [3, 3])


def test_hooks_are_called_in_order_of_registration(leaves):
    calls = []
    model = nn.Identity()
    for name in "ab":
        model.register_full_backward_hook(lambda *_, name=name: calls.append(name))

    model(leaves[0]).sum().backward()

    assert calls == ["a", "b"]


@pytest.mark.parametrize(
    ("register", "words"),
    [
        ("register_full_backward_hook", "invalid number of grad_input, got 2"),
        ("register_full_backward_pre_hook", "invalid number of grad_output, got 2"),
    ],
)
def test_a_hook_returns_as_many_gradients_as_it_got(leaves, register, words):
    model = nn.Identity()
    getattr(model, register)(lambda module, grads, *_: grads * 2)

    with pytest.raises(RuntimeError, match=words):
        model(leaves[0]).sum().backward()


def test_without_a_gradient_for_an_argument_the_hook_is_told_at_the_result():
    model = nn.Linear(2, 1)
    seen = []
    model.register_full_backward_hook(lambda *args: seen.append(args[1:]))

    with pytest.warns(UserWarning, match="no inputs require gradients"):
        model(gv.ones(3, 2)).sum().backward()

    ((inputs, outputs),) = seen
    assert inputs == (None,)
    assert outputs[0].shape == (3, 1)


def test_a_result_that_is_no_tensor_is_warned_of(leaves):
    class Boxed(nn.Module):
        def forward(self, x):
            return {"x": x}

    model = Boxed()
    model.register_full_backward_hook(lambda *_: None)

    with pytest.warns(UserWarning, match="Tensor or a tuple of Tensors"):
        model(leaves[0])


def test_hooks_work_with_a_graph_of_the_backward():
    x = gv.tensor([2.0, 3.0], requires_grad=True)
    model = nn.Identity()
    model.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 2,))

    (first,) = gv.autograd.grad((model(x) ** 3).sum(), x, create_graph=True)
    (second,) = gv.autograd.grad(first.sum(), x)

    assert first.tolist() == [24, 54]
    assert second.tolist() == [48, 72]  # the hook doubles what comes a second time


def test_a_module_without_hooks_adds_no_nodes(leaves):
    assert nn.Identity()(leaves[0]) is leaves[0]


def test_under_no_grad_hooks_are_silent(leaves):
    model = nn.Identity()
    model.register_full_backward_hook(lambda *_: None)

    with gv.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model(leaves[0]) is leaves[0]


def test_memory_that_a_hook_watches_is_not_changed_unnoticed():
    """The result of exp is saved, and the layer changes it in place."""
    x = gv.ones(2, requires_grad=True)
    layer = nn.ReLU(inplace=True)
    layer.register_full_backward_hook(lambda *_: None)

    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        layer(x.exp())


def test_an_argument_without_use_has_a_gradient_of_zeros(leaves):
    x, y = leaves
    module = Mixed()
    module.forward = lambda x, factor, y: x * factor
    module.register_full_backward_hook(lambda *_: None)

    module(x, 3, y).sum().backward()

    assert y.grad.tolist() == [0.0] * len(y)
