import gc
import weakref

import numpy as np
import pytest

import gradviz as gv

VIEWS = {
    "select": lambda x: x[1],
    "element": lambda x: x[1, 2],
    "slice": lambda x: x[1:, ::2],
    "all": lambda x: x[...],
    "new axis": lambda x: x[None],
    "transpose": lambda x: x.t(),
    "permute": lambda x: x.permute(1, 0),
    "view": lambda x: x.view(-1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "diagonal": lambda x: x.diagonal(),
    "expand": lambda x: x.expand(2, 3, 4),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "several": lambda x: x.t()[1:].view(3, 3, 1)[..., 0],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
@pytest.mark.parametrize("device", ["cpu", "sim:1"])
def test_a_view_shares_memory_count_and_base(view, device):
    x = gv.arange(12.0, device=device).view(3, 4).clone()

    shown = view(x)
    x.add_(100)

    assert shown.tolist() == view(x).tolist()
    assert shown._base is x
    assert shown._version == x._version == 1


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_a_change_of_the_base_reaches_the_graph_of_the_view(view):
    x = gv.arange(12.0).view(3, 4).clone()
    factor = gv.full((3, 4), 2.0, requires_grad=True)
    shown = view(x)

    x.mul_(factor)
    shown.sum().backward()

    expected = gv.ones(3, 4, requires_grad=True)
    view(x.detach().clone() / 2 * expected).sum().backward()
    assert shown.grad_fn.name() == "AsStridedBackward0"
    assert np.array_equal(factor.grad.tolist(), expected.grad.tolist())


@pytest.mark.parametrize(
    "view",
    [view for name, view in VIEWS.items() if name != "expand"],
    ids=[name for name in VIEWS if name != "expand"],
)
def test_a_change_of_the_view_reaches_the_graph_of_the_base(view):
    x = gv.ones(3, 4, requires_grad=True)
    y = x * 1

    view(y).mul_(5)
    y.sum().backward()

    changed = gv.zeros(3, 4)
    view(changed).fill_(4)
    assert y.grad_fn.name() == "CopySlices"
    assert x.grad.tolist() == (changed + 1).tolist()


def test_gradients_of_gradients_pass_through_a_change_of_a_view():
    x = gv.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1
    y[0].mul_(y[1].clone())

    (first,) = gv.autograd.grad((y * y).sum(), x, create_graph=True)
    (second,) = gv.autograd.grad(first[0], x)

    assert first.tolist() == [36.0, 30.0]  # of x0 ** 2 * x1 ** 2 + x1 ** 2
    assert second.tolist() == [18.0, 24.0]


def test_a_view_follows_its_base_into_the_graph():
    buffer = gv.zeros(3)
    first = buffer[0]

    buffer[1] = gv.ones((), requires_grad=True)

    assert first.requires_grad
    assert not first.is_leaf


def test_a_view_of_a_view_has_the_same_base():
    x = gv.zeros(3, 4)

    assert x[1][2]._base is x
    assert x.detach()._base is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: x.unbind()[0], "Output 0 of Unbind is a view and is being modified"),
        (lambda x: x.split(1)[1], "Output 1 of Split is a view and is being modified"),
    ],
)
def test_one_view_of_several_may_not_be_changed(make, message):
    x = gv.ones(3, 4, requires_grad=True) * 1

    with pytest.raises(RuntimeError, match=message):
        make(x).add_(1)


def test_a_view_made_under_no_grad_may_not_be_changed():
    x = gv.ones(3, requires_grad=True) * 1
    with gv.no_grad():
        view = x[:2]

    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is"):
        view.add_(1)


def test_grad_fn_of_a_view_made_under_no_grad_raises_once_its_base_was_changed():
    x = gv.ones(3, requires_grad=True) * 1
    with gv.no_grad():
        view = x[:2]

    x.add_(1)

    with pytest.raises(RuntimeError, match="its base or another view of its base has"):
        _ = view.grad_fn


def test_views_are_not_detached_in_place():
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        gv.ones(2)[0].detach_()


def test_a_change_of_a_view_leaves_no_cycle():
    x = gv.ones(3, requires_grad=True) * 1
    x.view(3).exp_()
    node = weakref.ref(x.grad_fn)
    gc.disable()
    try:
        del x
        assert node() is None
    finally:
        gc.enable()
