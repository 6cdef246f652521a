import copy

import numpy as np
import pytest

import gradviz as gv
from gradviz import nn


class Linear(nn.Module):
    def __init__(self, size=2):
        super().__init__()
        self.weight = nn.Parameter(gv.ones(size))
        self.register_buffer("count", gv.tensor([3]))
        self.register_buffer("mean", gv.zeros(size))

    def forward(self, x):
        return x * self.weight


def test_a_module_without_forward_says_so():
    with pytest.raises(
        NotImplementedError,
        match=r'Module \[Module\] is missing the required "forward" function',
    ):
        nn.Module()(1)


def test_training_mode_reaches_every_module():
    model = nn.Sequential(Linear(), nn.Sequential(Linear()))

    assert not any(one.training for one in model.eval().modules())
    assert all(one.training for one in model.train().modules())


def test_training_mode_is_a_bool():
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        Linear().train("yes")


def test_gradients_are_forgotten_or_set_to_zero():
    model = Linear()
    model(gv.ones(2)).sum().backward()
    grad = model.weight.grad

    model.zero_grad(set_to_none=False)
    assert model.weight.grad is grad
    assert grad.tolist() == [0, 0]
    model.zero_grad()
    assert model.weight.grad is None


def test_a_gradient_with_a_graph_is_let_go_before_it_is_set_to_zero():
    model = Linear()
    model.weight.grad = gv.ones(2, requires_grad=True) * 2

    model.zero_grad(set_to_none=False)

    assert not model.weight.grad.requires_grad
    assert model.weight.grad.tolist() == [0, 0]


def test_freezing_reaches_every_parameter():
    model = nn.Sequential(Linear(), Linear()).requires_grad_(requires_grad=False)

    assert not any(one.requires_grad for one in model.parameters())


def test_apply_visits_children_first():
    seen = []
    model = nn.Sequential(Linear(), Linear())

    model.apply(seen.append)

    assert seen == [model[0], model[1], model]


def test_conversion_spares_integers():
    model = Linear().double()

    assert model.weight.dtype == model.mean.dtype == np.float64
    assert model.count.dtype == np.int64
    assert isinstance(model.weight, nn.Parameter)


def test_conversion_takes_gradients_along():
    model = Linear()
    model(gv.ones(2)).sum().backward()

    model.double()

    assert model.weight.grad.dtype == np.float64
    model(gv.ones(2, dtype=gv.float64)).sum().backward()
    assert model.weight.grad.tolist() == [2, 2]


def test_a_model_moves_to_a_device_and_learns_there():
    model = nn.Sequential(Linear(), Linear()).to("sim:0")
    optimizer = gv.optim.SGD(model.parameters(), lr=1.0)

    model(gv.ones(2, device="sim:0")).sum().backward()
    optimizer.step()

    assert str(model[0].weight.device) == "sim:0"
    assert model.cpu()[0].weight.tolist() == [0, 0]


def test_conversion_to_integers_is_refused():
    with pytest.raises(TypeError, match="only accepts floating point or complex"):
        Linear().to(gv.int64)


def test_a_copy_shares_nothing():
    model = nn.Sequential(Linear())
    other = copy.deepcopy(model)

    with gv.no_grad():
        other[0].weight.fill_(9)
        other[0].mean.fill_(9)

    assert model[0].weight.tolist() == [1, 1]
    assert model[0].mean.tolist() == [0, 0]


def test_text_is_indented_by_depth():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.ReLU())

        def extra_repr(self):
            return "size=3"

    assert repr(nn.Sequential(Named(), nn.Dropout(0.1))) == (
        "Sequential(\n"
        "  (0): Named(\n"
        "    size=3\n"
        "    (inner): Sequential(\n"
        "      (0): ReLU()\n"
        "    )\n"
        "  )\n"
        "  (1): Dropout(p=0.1, inplace=False)\n"
        ")"
    )


def test_a_module_moves_without_waiting_if_asked():
    model = gv.nn.Linear(1, 1)

    assert str(model.to("sim:1", non_blocking=True).weight.device) == "sim:1"
    assert str(model.to("sim:0", None, True).weight.device) == "sim:0"
