"""Layers take a device and a dtype, by position too, and no unknown keyword."""

import inspect
import re

import pytest

import gradviz as gv
from gradviz import nn

#: All arguments before device and dtype.
ARGUMENTS = {
    nn.BatchNorm1d: (3, 1e-5, 0.1, True, True),
    nn.BatchNorm2d: (3, 1e-5, 0.1, True, True),
    nn.Bilinear: (2, 3, 4, True),
    nn.Conv1d: (2, 3, 1, 1, 0, 1, 1, True, "zeros"),
    nn.Conv2d: (2, 3, 1, 1, 0, 1, 1, True, "zeros"),
    nn.ConvTranspose2d: (2, 3, 1, 1, 0, 0, 1, True, 1, "zeros"),
    nn.Embedding: (4, 3, None, None, 2.0, False, False, None, False),
    nn.EmbeddingBag: (4, 3, None, 2.0, False, "mean", False, None, False, None),
    nn.GroupNorm: (1, 3, 1e-5, True),
    nn.GRU: (2, 3, 1, True, False, 0.0, False, 0),
    nn.GRUCell: (2, 3, True),
    nn.InstanceNorm1d: (3, 1e-5, 0.1, True, True),
    nn.LayerNorm: (3, 1e-5, True, True),
    nn.Linear: (2, 3, True),
    nn.LSTM: (2, 3, 1, True, False, 0.0, False, 0),
    nn.LSTMCell: (2, 3, True),
    nn.MultiheadAttention: (4, 2, 0.0, True, False, False, None, None, False),
    nn.PReLU: (1, 0.25),
    nn.RMSNorm: (3, None, True),
    nn.RNN: (2, 3, 1, "tanh", True, False, 0.0, False),
    nn.RNNCell: (2, 3, True, "tanh"),
}


@pytest.mark.parametrize("layer", ARGUMENTS, ids=lambda layer: layer.__name__)
def test_a_device_and_a_dtype_may_be_given_by_position(layer):
    plain = layer(*ARGUMENTS[layer], None, None)
    double = layer(*ARGUMENTS[layer], "cpu", gv.float64)

    assert {one.dtype for one in plain.parameters()} == {gv.float32}
    assert {one.dtype for one in double.parameters()} == {gv.float64}
    with pytest.raises(TypeError, match="positional argument"):
        layer(*ARGUMENTS[layer], None, None, None)


LAYERS = [
    value
    for value in vars(nn).values()
    if inspect.isclass(value)
    and issubclass(value, nn.Module)
    and value is not nn.Identity
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)
def test_an_unknown_keyword_is_an_error(layer):
    required = [
        one
        for one in inspect.signature(layer).parameters.values()
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    # Whatever the arguments are, the call itself is wrong.
    with pytest.raises(TypeError, match=r"unexpected keyword argument '?nonsense"):
        layer(*[1] * len(required), nonsense=1)


def test_losses_take_the_older_arguments():
    x, target = gv.ones(2, 2), gv.zeros(2, 2)
    warning = re.escape("size_average and reduce args will be deprecated, please use ")

    with pytest.warns(UserWarning, match=warning):
        total = nn.MSELoss(False)
    with pytest.warns(UserWarning, match=warning):
        each = nn.functional.mse_loss(x, target, None, False)

    assert total(x, target).item() == 4
    assert each.shape == (2, 2)
    assert nn.functional.mse_loss(x, target, None, None, "sum").item() == 4
    with pytest.raises(TypeError, match="multiple values for argument 'reduction'"):
        nn.functional.mse_loss(x, target, None, None, "sum", reduction="sum")
    with pytest.raises(TypeError, match="1 positional arguments too many"):
        nn.functional.mse_loss(x, target, None, None, "sum", None, 1)


def test_an_embedding_may_be_given_its_vectors():
    table = gv.arange(6.0).reshape(2, 3)

    free = nn.Embedding(2, 3, _weight=table)
    frozen = nn.Embedding.from_pretrained(table)

    assert free.weight.requires_grad
    assert not frozen.weight.requires_grad
    assert frozen(gv.tensor([1])).tolist() == [[3, 4, 5]]
    with pytest.raises(AssertionError, match="does not match num_embeddings"):
        nn.Embedding(3, 2, _weight=table)
    with pytest.raises(AssertionError, match="expected to be 2-dimensional"):
        nn.EmbeddingBag.from_pretrained(gv.ones(2))
