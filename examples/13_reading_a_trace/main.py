"""Six training steps of a model with a branch on each of two simulated devices.

docs/reading-a-trace.md reads the trace of it. What the branches compute takes no time
worth looking at, so their backward says itself how long it takes.
"""

import time

import gradviz as gv
from gradviz import nn

STEPS = 6


class Delay(gv.autograd.Function):
    """The same values; the backward takes so many milliseconds."""

    @staticmethod
    def forward(ctx, values, milliseconds):
        ctx.milliseconds = milliseconds
        return values.clone()

    @staticmethod
    def backward(ctx, grad):
        time.sleep(ctx.milliseconds / 1000)
        return grad, None


class Branch(nn.Module):
    """A layer on a device of its own."""

    def __init__(self, device, milliseconds):
        super().__init__()
        self.device, self.milliseconds = device, milliseconds
        self.layer = nn.Linear(8, 8, device=device)

    def forward(self, values):
        values = self.layer(values.to(self.device)).tanh()
        return Delay.apply(values, self.milliseconds).to("cpu")


class Model(nn.Module):
    """A layer, two branches, and what they agree on."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(8, 8)
        self.left = Branch("sim:0", milliseconds=12)
        self.right = Branch("sim:1", milliseconds=5)

    def forward(self, values):
        values = self.stem(values).relu()
        return self.left(values) * self.right(values)


def main():
    """Train; the fifth step has a left branch that takes longer."""
    gv.sim.set_device_count(2)
    gv.manual_seed(0)
    model = Model()
    optimizer = gv.optim.SGD(model.parameters(), lr=0.1)
    inputs = gv.randn(4, 8)
    for step in range(STEPS):
        model.left.milliseconds = 40 if step == 4 else 12
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
