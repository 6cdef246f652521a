"""C16."""

import pytest

import gradviz as gv
from gradviz.autograd.graph import register_multi_grad_hook


@pytest.fixture
def tensors():
    a = gv.tensor([1.0, 2.0], requires_grad=True)
    b = gv.tensor([3.0, 4.0], requires_grad=True)
    return a, b, a * b, a + b


def given(gradients):
    return [gradient is not None for gradient in gradients]


def test_it_is_called_when_all_gradients_are_there(tensors):
    calls = []
    a, _, c, d = tensors
    register_multi_grad_hook(tensors, lambda grads: calls.append(given(grads)))

    (c * d).sum().backward(retain_graph=True)
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,))

    assert calls == [
        [True, True, True, True],
        [True, True, True, False],
        [True, False, True, False],
    ]


def test_it_may_be_called_with_the_first_gradient_only(tensors):
    calls = []
    register_multi_grad_hook(
        tensors, lambda grad: calls.append(grad.tolist()), mode="any"
    )

    for _ in range(2):
        tensors[2].sum().backward(retain_graph=True)

    assert calls == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("mode", ["all", "any"])
def test_its_handle_removes_it_from_all(tensors, mode):
    calls = []
    with register_multi_grad_hook(tensors, calls.append, mode=mode):
        pass
    tensors[2].sum().backward()

    assert calls == []


def test_a_pass_that_fails_leaves_nothing_for_the_next(tensors):
    calls = []
    a, b, c, _ = tensors
    register_multi_grad_hook((a, b, c), lambda grads: calls.append(given(grads)))
    handle = c.register_hook(lambda grad: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        c.sum().backward(retain_graph=True)
    handle.remove()

    c.sum().backward()

    assert calls == [[True, True, True]]


def test_tensors_on_several_devices_make_one_call():
    calls = []
    leaves = [gv.ones(2, device=f"sim:{i}").requires_grad_() for i in range(2)]
    parts = [one * 2 for one in leaves]
    register_multi_grad_hook(parts, lambda grads: calls.append(given(grads)))

    sum(part.cpu() for part in parts).sum().backward()

    assert calls == [[True, True]]


def test_another_mode_is_an_error(tensors):
    with pytest.raises(ValueError, match=r"one of \('all', 'any'\) but got some"):
        register_multi_grad_hook(tensors, print, mode="some")
