"""Saved values of nodes have PyTorch's names, and are the same."""

from typing import Any

import pytest

import gradviz as gv
from tests.parity.outcomes import plain, torch

pytestmark = pytest.mark.parity

#: An expression, and what its node has saved that has a name in both.
SHOWN = {
    "x * y": "self other",
    "x / y": "self other",
    "x.exp()": "result",
    "x.sin()": "self",
    "x**y": "self exponent result",
    "2**x": "result exponent",
    "x.sum(1)": "self_sym_sizes dim",
    "x.max(1)[0]": "indices dim self_sym_sizes",
    "x.aminmax()[0]": "self min max",
    "lib.std_mean(x)[0]": "self result0",
    "x.clamp(0.5, 1)": "self min max",
    "x.clamp(y, y)": "self min max",
    "x.lerp(y, y)": "self end weight",
    "lib.addcmul(x, x, y)": "tensor1 tensor2 value",
    "lib.addcdiv(x, x, y)": "tensor1 tensor2 value",
    "x @ y.T": "self mat2",
    "lib.addmm(m, x, y.T)": "mat1 mat2 alpha beta",
    "lib.addmv(v, x, w)": "mat vec",
    "lib.addr(x, v, w)": "vec1 vec2",
    "lib.bmm(x[None], y.T[None])": "self mat2",
    "lib.baddbmm(m, x[None], y.T[None])": "batch1 batch2",
    "lib.addbmm(m, x[None], y.T[None])": "batch1 batch2",
    "lib.mv(x, w)": "self vec",
    "lib.dot(v, v)": "self tensor",
    "lib.cdist(x, y)": "x1 x2 p result",
    "x[:, lib.tensor([0, 1])]": "indices self_sym_sizes",
    "x.permute(1, 0)": "dims",
    "x.flip(0)": "dims",
    "x.masked_scatter(x > 1, y)": "mask source_sym_sizes",
    "lib.linalg.cholesky(m)": "L",
    "lib.linalg.inv(m)": "inverse",
    "lib.linalg.qr(m)[0]": "Q R mode",
    "lib.linalg.svd(m)[1]": "S",
    "lib.linalg.eigh(m)[0]": "eigenvalues",
    "lib.linalg.det(m)": "A result",
    "lib.linalg.slogdet(m)[1]": "A sign",
    "lib.linalg.solve(m, x)": "A result",
    "lib.linalg.vector_norm(x, 2, 1)": "self result dim ord",
    "F.leaky_relu(x, 0.1)": "self negative_slope",
    "F.hardtanh(x)": "self min_val max_val",
    "F.softplus(x)": "self threshold",
    "F.softshrink(x)": "self lambd",
    "F.hardshrink(x)": "self lambd",
    "F.threshold(x, 0.5, 2.0)": "self threshold",
    "F.mse_loss(x, y)": "self target reduction",
    "F.smooth_l1_loss(x, y)": "self target reduction beta",
    "F.huber_loss(x, y, reduction='sum')": "self target reduction delta",
    "F.binary_cross_entropy(v.sigmoid(), w.sigmoid()[:2])": "self target reduction",
    "F.binary_cross_entropy_with_logits(v, v.detach())": "self target reduction",
    "F.layer_norm(x, (3,))": "input normalized_shape",
    "F.group_norm(x, 3)": "input group",
    "F.batch_norm(x, None, None, None, None, True)": "input training",
    "F.conv2d(x[None, None], m[None, None])": "input weight",
    "F.max_pool2d(x[None], 2)": "result1",
    "F.pixel_shuffle(x.reshape(1, 2, 3)[:, :1], 1)": "upscale_factor",
    "F.unfold(x[None, None], 2)": "kernel_size",
}  # fmt: skip


def inputs(lib: Any) -> dict[str, Any]:
    def leaf(*numbers: Any) -> Any:
        return lib.tensor(numbers, dtype=lib.float64, requires_grad=True)

    return {
        "lib": lib,
        "F": lib.nn.functional,
        "x": leaf([0.25, 1.0, 2.0], [3.0, 0.5, 1.5]),
        "y": leaf([0.75, 2.0, 0.5], [1.0, 1.25, 3.0]),
        "m": leaf([3.0, 1.0], [1.0, 2.0]),
        "v": leaf(0.5, 2.0),
        "w": leaf(0.5, 1.0, 2.0),
    }


def shown(lib: Any, expression: str, names: list[str]) -> dict[str, Any]:
    node = eval(expression, inputs(lib)).grad_fn
    return {name: plain(getattr(node, f"_saved_{name}")) for name in names}


@pytest.mark.parametrize("expression", SHOWN)
def test_a_saved_value_has_the_name_and_the_value_of_pytorchs(expression):
    names = SHOWN[expression].split()

    assert shown(gv, expression, names) == shown(torch, expression, names)
