"""What convolution promises besides values: memory, strides, devices."""

import tracemalloc

import numpy as np
import pytest

import gradviz as gv

F = gv.nn.functional


def direct(x, w, stride=1):
    """A convolution by its definition."""
    rows = range(0, x.shape[2] - w.shape[2] + 1, stride)
    columns = range(0, x.shape[3] - w.shape[3] + 1, stride)
    return np.array(
        [
            [
                [
                    [
                        np.sum(
                            image[:, i : i + w.shape[2], j : j + w.shape[3]] * kernel
                        )
                        for j in columns
                    ]
                    for i in rows
                ]
                for kernel in w
            ]
            for image in x
        ]
    )


@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_is_what_its_definition_says(stride):
    random = np.random.default_rng(0)
    x = random.integers(-3, 4, (2, 3, 6, 5)).astype(float)
    w = random.integers(-3, 4, (4, 3, 3, 2)).astype(float)

    result = F.conv2d(gv.tensor(x), gv.tensor(w), stride=stride)

    np.testing.assert_array_equal(result.numpy(), direct(x, w, stride))


def test_a_transposed_convolution_is_the_adjoint_of_a_convolution():
    random = np.random.default_rng(0)
    x = gv.tensor(random.standard_normal((2, 3, 7, 6)))
    w = gv.tensor(random.standard_normal((4, 3, 3, 3)))
    settings = {"stride": 2, "padding": 1}
    y = F.conv2d(x, w, **settings)
    z = gv.tensor(random.standard_normal(y.shape))

    back = F.conv_transpose2d(z, w, **settings, output_padding=(0, 1))

    assert back.shape == x.shape
    assert (y * z).sum().item() == pytest.approx((x * back).sum().item())


def test_a_large_batch_is_worked_off_in_parts():
    x, w = gv.ones(64, 8, 32, 32), gv.ones(4, 8, 5, 5)
    columns = 64 * 8 * 25 * 28 * 28 * 4

    tracemalloc.start()
    F.conv2d(x, w)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < columns / 4


def test_what_is_not_in_the_last_part_is_the_same_as_by_itself():
    random = np.random.default_rng(0)
    x = gv.tensor(random.standard_normal((5, 8, 40, 40))).requires_grad_()
    w = gv.tensor(random.standard_normal((2, 8, 7, 7))).requires_grad_()

    together = gv.autograd.grad(F.conv2d(x, w).square().sum(), [x, w])
    apart = [
        gv.autograd.grad(F.conv2d(x[i : i + 1], w).square().sum(), [x, w])
        for i in range(5)
    ]

    for one, parts in zip(together, zip(*apart, strict=True), strict=True):
        np.testing.assert_allclose(one.numpy(), sum(p.numpy() for p in parts))


def test_an_image_without_a_batch_stays_without():
    x, w = gv.ones(3, 5, 5), gv.ones(4, 3, 3, 3)

    assert F.conv2d(x, w).shape == (4, 3, 3)
    assert F.conv_transpose2d(gv.ones(4, 3, 3), w).shape == (3, 5, 5)
    assert F.max_pool2d(x, 2).shape == (3, 2, 2)
