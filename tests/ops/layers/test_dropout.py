"""Dropout draws from a generator that can be seeded, and keeps the mean."""

import numpy as np
import pytest

import gradviz as gv

F = gv.nn.functional


def test_the_same_seed_drops_the_same_elements():
    x = gv.ones(100)
    gv.manual_seed(7)
    first = F.dropout(x, 0.5)
    gv.manual_seed(7)

    assert F.dropout(x, 0.5).tolist() == first.tolist()
    assert F.dropout(x, 0.5).tolist() != first.tolist()


def test_kept_elements_are_scaled_so_that_the_mean_stays():
    gv.manual_seed(0)

    result = F.dropout(gv.ones(4000), 0.25)

    assert set(np.unique(result.numpy())) == {0, np.float32(4 / 3)}
    assert result.mean().item() == pytest.approx(1, abs=0.05)


def test_the_gradient_is_dropped_where_the_element_was():
    gv.manual_seed(0)
    x = gv.ones(50, requires_grad=True)
    y = F.dropout(x, 0.5)

    y.sum().backward()

    assert x.grad.tolist() == y.tolist()


@pytest.mark.parametrize(
    ("dropout", "shape"),
    [
        (F.dropout1d, (4, 8, 5)),
        (F.dropout2d, (4, 8, 3, 2)),
        (F.dropout3d, (4, 8, 2, 2, 2)),
        (F.feature_alpha_dropout, (4, 8, 3)),
    ],
)
def test_whole_channels_are_dropped(dropout, shape):
    gv.manual_seed(0)

    result = dropout(gv.ones(*shape), 0.5, training=True).numpy()

    channels = result.reshape(4 * 8, -1)
    assert all(len(set(channel)) == 1 for channel in channels)
    assert len(np.unique(channels)) == 2


def test_alpha_dropout_keeps_mean_and_variance():
    gv.manual_seed(0)
    x = gv.randn(20000)

    result = F.alpha_dropout(x, 0.3, training=True)

    assert result.mean().item() == pytest.approx(0, abs=0.05)
    assert result.var().item() == pytest.approx(1, abs=0.1)


def test_dropout_in_place_changes_its_argument():
    gv.manual_seed(0)
    x = gv.ones(20)

    assert F.dropout(x, 0.5, inplace=True) is x
    assert 0.0 in x.tolist()


def test_nothing_is_dropped_outside_of_training():
    x = gv.ones(3, requires_grad=True)

    assert F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 0.0) is x


def test_native_dropout_says_what_it_kept():
    gv.manual_seed(0)

    result, mask = gv.native_dropout(gv.ones(30, requires_grad=True), 0.5, True)

    assert mask.dtype == gv.bool
    assert (result != 0).tolist() == mask.tolist()
    assert result.grad_fn.name() == "NativeDropoutBackward0"
    assert not mask.requires_grad


def test_attention_drops_weights():
    gv.manual_seed(0)
    x = gv.ones(1, 2, 8, 4)

    result = F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)

    assert len(np.unique(result.numpy())) > 1
