import pytest

import gradviz as gv
from gradviz import nn
from gradviz.nn.utils import remove_weight_norm, weight_norm


def normalized(dim=0):
    layer = nn.Linear(2, 3, bias=False, dtype=gv.float64)
    with gv.no_grad():
        layer.weight.copy_(gv.tensor([[3.0, 4.0], [0.0, 2.0], [6.0, 8.0]]))
    return weight_norm(layer, dim=dim)


def test_directions_and_lengths_are_the_parameters():
    layer = normalized()

    assert [name for name, _ in layer.named_parameters()] == ["weight_g", "weight_v"]
    assert layer.weight_g.tolist() == [[5], [2], [10]]
    assert layer.weight.tolist() == [[3, 4], [0, 2], [6, 8]]


def test_a_gradient_is_across_the_direction():
    layer = normalized()

    layer(gv.ones(1, 2, dtype=gv.float64)).sum().backward()

    along = (layer.weight_v * layer.weight_v.grad).sum(1)
    assert along.tolist() == pytest.approx([0, 0, 0], abs=1e-12)
    assert layer.weight_g.grad.tolist() == [
        [pytest.approx(1.4)],
        [pytest.approx(1)],
        [pytest.approx(1.4)],
    ]


def test_the_weight_follows_the_length():
    layer = normalized()
    with gv.no_grad():
        layer.weight_g.mul_(2)

    layer(gv.ones(1, 2, dtype=gv.float64))

    assert layer.weight.tolist()[0] == pytest.approx([6, 8])


@pytest.mark.parametrize(("dim", "shape"), [(1, (1, 2)), (None, ())])
def test_slices_of_another_dimension_or_all_have_a_length(dim, shape):
    assert tuple(normalized(dim).weight_g.shape) == shape


def test_it_can_be_undone():
    layer = remove_weight_norm(normalized())

    assert [name for name, _ in layer.named_parameters()] == ["weight"]
    assert layer.weight.tolist()[2] == pytest.approx([6, 8])
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        remove_weight_norm(layer)


def test_it_is_done_once():
    with pytest.raises(RuntimeError, match="Cannot register two weight_norm hooks"):
        weight_norm(normalized())
