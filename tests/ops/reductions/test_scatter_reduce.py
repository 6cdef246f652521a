import pytest

import gradviz as gv


@pytest.mark.parametrize("reduce", ["scatter_reduce", "index_reduce"])
def test_a_product_with_several_zeros_is_differentiated_once(reduce):
    """PyTorch says so too: the formula has no second derivative there."""
    x = gv.tensor([2.0], requires_grad=True)
    zeros = gv.tensor([0.0, 0.0], requires_grad=True)
    index = gv.tensor([0, 0])

    product = getattr(gv, reduce)(x, 0, index, zeros, "prod")
    of_x, of_zeros = gv.autograd.grad(product.sum(), (x, zeros), create_graph=True)

    assert (of_x.tolist(), of_zeros.tolist()) == ([0.0], [0.0, 0.0])
    gv.autograd.grad(of_x.sum(), (x, zeros), retain_graph=True)
    with pytest.raises(RuntimeError, match="Double backward is unsupported for src"):
        gv.autograd.grad(of_zeros.sum(), zeros)
