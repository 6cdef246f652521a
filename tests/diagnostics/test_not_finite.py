import pytest

import gradviz as gv
from gradviz import nn
from gradviz.diagnostics import find_nan


@pytest.fixture
def x():
    return gv.tensor([1.0, 0.0], requires_grad=True)


def test_nothing_is_found_where_all_is_finite(x):
    report = find_nan(lambda: (x * 2).exp().sum())

    assert not report
    assert "every value is finite" in str(report)


def test_the_first_op_that_makes_an_infinity_is_named_with_its_line(x):
    report = find_nan(lambda: (x.log() * 2 - 3).exp().sum())

    assert report.forward.node.startswith("LogBackward0")
    assert (report.forward.what, report.forward.where) == ("infinity", "the result")
    assert "x.log()" in report.forward.stack


def test_the_function_gets_its_arguments(x):
    report = find_nan(lambda a, b: (a / b).sum(), x, x.detach())

    assert report.forward.what == "NaN"
    assert report.forward.node.startswith("DivBackward0")


def test_the_part_of_the_model_is_named():
    class Root(nn.Module):
        def forward(self, x):
            return x.sqrt()

    model = nn.name_root(nn.Sequential(nn.Linear(2, 2), Root()), "rooted")
    with gv.no_grad():
        model[0].weight.fill_(-1)
        model[0].bias.fill_(0)

    report = find_nan(lambda: model(gv.ones(1, 2)).sum())

    assert report.forward.node.endswith(" in rooted.1")


def test_a_gradient_can_be_infinite_where_all_values_are_finite(x):
    report = find_nan(lambda: x.sqrt().sum())

    assert report.forward is None
    assert report.backward.node.startswith("SqrtBackward0")
    assert report.backward.where == "the gradient of input 0"
    assert "x.sqrt()" in report.backward.stack


@pytest.mark.parametrize("device", ["cpu", "sim:0"])
def test_scalars_are_looked_at(device):
    x = gv.tensor(0.0, device=device, requires_grad=True)

    assert not find_nan((x * 2).exp)
    assert not find_nan(x * 2)
    assert find_nan(lambda: x.log() * 2).forward.node.startswith("LogBackward0")
    assert find_nan(lambda: x.sqrt() * 2).backward.node.startswith("SqrtBackward0")


def test_of_a_loss_what_was_saved_is_looked_at(x):
    y = x.log()
    loss = (y * y).sum()

    report = find_nan(loss)

    assert report.forward.node.startswith("LogBackward0")
    assert report.forward.what == "infinity"
    assert report.forward.stack == ""
    assert "remember_origins" in str(report)


def test_a_graph_that_was_freed_is_told(x):
    loss = x.exp().sum()
    loss.backward()

    assert "has been freed" in str(find_nan(loss))


def test_a_loss_without_a_graph_is_told():
    assert "no graph" in str(find_nan(gv.ones(1)))


def test_gradients_and_hooks_are_as_before(x):
    loss = x.sqrt().sum()

    find_nan(loss)

    assert x.grad is None
    assert not loss.grad_fn.hooks.post
    loss.backward()
    assert x.grad[0].item() == 0.5


def test_the_function_must_return_a_loss(x):
    with pytest.raises(TypeError, match="returned float, expected the loss"):
        find_nan(lambda: 3.0)
