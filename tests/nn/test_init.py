import math

import numpy as np
import pytest

import gradviz as gv
from gradviz import nn
from gradviz.nn import init


@pytest.fixture(autouse=True)
def _seed():
    gv.manual_seed(0)


@pytest.fixture
def weight():
    return nn.Parameter(gv.zeros(200, 300))


def test_uniform_numbers_lie_within_their_bounds(weight):
    init.uniform_(weight, -2, 3)

    values = weight.detach().numpy()
    assert -2 <= values.min() < -1.9
    assert 2.9 < values.max() <= 3


@pytest.mark.parametrize(
    ("fill", "std"),
    [
        (lambda x: init.normal_(x, 5, 2), 2),
        (init.xavier_normal_, math.sqrt(2 / 500)),
        (init.xavier_uniform_, math.sqrt(2 / 500)),
        (init.kaiming_normal_, math.sqrt(2 / 300)),
        (lambda x: init.kaiming_uniform_(x, mode="fan_out"), math.sqrt(2 / 200)),
        (
            lambda x: init.kaiming_normal_(x, nonlinearity="tanh"),
            5 / 3 / math.sqrt(300),
        ),
    ],
)
def test_the_spread_is_what_it_should_be(weight, fill, std):
    result = fill(weight)

    assert result is weight
    assert weight.requires_grad
    assert weight.is_leaf
    assert float(weight.detach().numpy().std()) == pytest.approx(std, rel=0.02)


def test_a_truncated_normal_has_no_tails(weight):
    init.trunc_normal_(weight, std=1.0, a=-1.0, b=0.5)

    values = weight.detach().numpy()
    assert -1 <= values.min() < -0.99
    assert 0.49 < values.max() <= 0.5


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 2, 2)])
def test_orthogonal_rows_or_columns(shape):
    x = init.orthogonal_(gv.zeros(*shape, dtype=gv.float64), gain=2)

    matrix = x.numpy().reshape(shape[0], -1)
    product = matrix @ matrix.T if shape[0] < matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)


def test_constants():
    x = gv.randn(2, 2)

    assert init.constant_(x, 3).tolist() == [[3, 3], [3, 3]]
    assert init.zeros_(x).tolist() == [[0, 0], [0, 0]]
    assert init.ones_(x).tolist() == [[1, 1], [1, 1]]
    assert init.eye_(x).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: init.xavier_uniform_(gv.zeros(3)), "fewer than 2 dimensions"),
        (lambda: init.orthogonal_(gv.zeros(3)), "2 or more dimensions"),
        (lambda: init.eye_(gv.zeros(3)), "with 2 dimensions"),
        (lambda: init.calculate_gain("steps"), "Unsupported nonlinearity steps"),
        (lambda: init.calculate_gain("leaky_relu", "x"), "x not a valid number"),
        (lambda: init.kaiming_normal_(gv.zeros(2, 2), mode="fan"), "Mode fan not"),
    ],
)
def test_invalid_arguments_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(
    ("layer", "bound"),
    [
        (lambda: nn.Linear(400, 300), 1 / 20),
        (lambda: nn.Conv2d(16, 64, 5), 1 / 20),
        (lambda: nn.Conv1d(8, 64, 50, groups=1), 1 / 20),
        (lambda: nn.LSTM(20, 100), 1 / 10),
        (lambda: nn.GRUCell(20, 100), 1 / 10),
        (lambda: nn.Bilinear(100, 20, 30), 1 / 10),
    ],
)
def test_layers_begin_within_the_bounds_of_pytorch(layer, bound):
    for parameter in layer().parameters():
        values = np.abs(parameter.detach().numpy())
        assert bound * 0.9 < values.max() <= bound


def test_an_embedding_begins_normal_and_zero_for_padding():
    embedding = nn.Embedding(1_000, 50, padding_idx=-1)

    values = embedding.weight.detach().numpy()
    assert embedding.padding_idx == 999
    assert float(values[:-1].std()) == pytest.approx(1, rel=0.02)
    assert not values[-1].any()


def test_a_dirac_weight_passes_its_input_on():
    weight = init.dirac_(gv.ones(4, 2, 3), groups=2)
    x = gv.arange(24.0).reshape(1, 4, 6)

    y = gv.nn.functional.conv1d(x, weight, padding=1, groups=2)

    assert y.tolist() == x.tolist()


def test_a_part_of_each_column_of_a_sparse_weight_is_0():
    weight = init.sparse_(gv.ones(10, 3), 0.25)

    assert (weight == 0).sum(0).tolist() == [3, 3, 3]
