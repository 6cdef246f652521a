"""Two functions with gradients of their own: one exact, one deliberately wrong."""

import numpy as np

import gradviz as gv
from gradviz import nn


class Softplus(gv.autograd.Function):
    """``log(1 + exp(x))``, which neither overflows nor loses small numbers."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0) + (-x.abs()).exp().log1p()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.sigmoid()  # made of ops, so it can be differentiated again


class Round(gv.autograd.Function):
    """Rounds, and passes gradients through as if it did not.

    The true gradient of rounding is zero nearly everywhere: nothing would be learned.
    """

    @staticmethod
    def forward(ctx, x):  # noqa: ARG004 - there is nothing to save
        return x.round()

    @staticmethod
    def backward(ctx, grad):  # noqa: ARG004 - likewise
        return grad


def train(round_weights, steps=200):
    """Fit a line whose weights may be whole numbers only; returns weights and loss."""
    gv.manual_seed(0)
    x = gv.randn(64, 3)
    y = x @ gv.tensor([[3.0], [-2.0], [1.0]])
    weight = nn.Parameter(gv.zeros(3, 1))
    optimizer = gv.optim.SGD([weight], lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(x @ round_weights(weight), y)
        loss.backward()
        optimizer.step()
    return round_weights(weight).detach().flatten().tolist(), loss.item()


def main():
    x = gv.tensor([-800.0, -1.0, 0.0, 2.0, 800.0], requires_grad=True)
    y = Softplus.apply(x)
    (first,) = gv.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = gv.autograd.grad(first.sum(), x)
    print(f"softplus:          {np.round(y.detach().numpy(), 4)}")
    print(f"first derivative:  {np.round(first.detach().numpy(), 4)}")
    print(f"second derivative: {np.round(second.numpy(), 4)}")
    near = gv.tensor([-1.0, 0.5, 2.0], dtype=gv.float64, requires_grad=True)
    print(f"gradcheck: {gv.autograd.gradcheck(Softplus.apply, (near,))}")

    for name, function in (("x.round()", gv.round), ("Round.apply(x)", Round.apply)):
        weights, loss = train(function)
        print(f"{name}: weights {weights}, loss {loss:.4f}")


if __name__ == "__main__":
    main()
