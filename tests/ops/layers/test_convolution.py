"""Promises of convolution besides values: memory, strides, devices."""

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


def shifted(x, w, stride, padding, dilation, groups):
    """A convolution as a sum over positions in the kernel."""
    ends = ((0, 0), (0, 0), *((padding, padding) for _ in w.shape[2:]))
    x = np.pad(x, ends).reshape(len(x), groups, -1, *(np.add(x.shape[2:], 2 * padding)))
    w = w.reshape(groups, -1, *w.shape[1:])
    total = 0
    for offset in np.ndindex(w.shape[3:]):
        places = tuple(
            slice(
                start * dilation, length - (size - 1 - start) * dilation or None, stride
            )
            for start, length, size in zip(
                offset, x.shape[3:], w.shape[3:], strict=True
            )
        )
        total += np.einsum(
            "ngc...,goc->ngo...", x[(..., *places)], w[(..., *offset)], optimize=True
        )
    return total.reshape(len(x), -1, *total.shape[3:])


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"),
    [
        (1, 0, 1, 1),
        (1, 2, 1, 1),
        (2, 1, 1, 1),
        (1, 3, 2, 1),
        (3, 1, 2, 2),
        (1, 1, 1, 4),
    ],
)
@pytest.mark.parametrize(
    ("lengths", "kernel"), [((5, 9), (3, 2)), ((13, 16), (2, 3)), ((140,), (3,))]
)
@pytest.mark.parametrize("channels", [(8, 4), (4, 32)])
def test_however_it_is_computed_a_convolution_and_its_gradients_are_the_same(
    channels, lengths, kernel, stride, padding, dilation, groups
):
    """Small and large images, few and many channels are worked off in other ways."""
    random = np.random.default_rng(0)

    def integers(*shape):
        return random.integers(-3, 4, shape).astype(float)

    settings = stride, padding, dilation, groups
    x, other_x = integers(2, 3, channels[0], *lengths)
    w, other_w = integers(2, channels[1], channels[0] // groups, *kernel)
    image, weight = gv.tensor(x).requires_grad_(), gv.tensor(w).requires_grad_()
    convolution = F.conv1d if len(lengths) == 1 else F.conv2d

    result = convolution(image, weight, None, *settings)
    y = integers(*result.shape)
    result.backward(gv.tensor(y))

    np.testing.assert_array_equal(result.detach().numpy(), shifted(x, w, *settings))
    # The gradients are those of a form that is linear in each of the three.
    assert (other_x * image.grad.numpy()).sum() == (
        y * shifted(other_x, w, *settings)
    ).sum()
    assert (other_w * weight.grad.numpy()).sum() == (
        y * shifted(x, other_w, *settings)
    ).sum()


def test_a_large_batch_is_worked_off_in_parts():
    x, w = gv.ones(64, 8, 32, 32), gv.ones(4, 8, 5, 5)
    columns = 64 * 8 * 25 * 28 * 28 * 4

    tracemalloc.start()
    F.conv2d(x, w)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < columns / 4


def test_gradients_of_a_batch_in_parts_equal_those_of_each_image_alone():
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
