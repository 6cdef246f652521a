"""A model in two halves on two devices, fed with small batches one after the other."""

import argparse

import gradviz as gv
from gradviz import nn

WIDTH = 128
FIRST, SECOND = "sim:0", "sim:1"


class Pipeline(nn.Module):
    """The first half on one device, the second half on another."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())
        self.second = nn.Sequential(
            nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1)
        )
        self.first.to(FIRST)
        self.second.to(SECOND)

    def forward(self, x):
        hidden = self.first(x.to(FIRST))
        return self.second(hidden.to(SECOND))


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--batches", type=int, default=4)
    arguments.add_argument("--steps", type=int, default=5)
    options = arguments.parse_args()

    gv.manual_seed(0)
    model = Pipeline()
    optimizer = gv.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x = gv.randn(64 * options.batches, WIDTH)
    y = (x[:, :1] - x[:, 1:2]).tanh()
    for step in range(1, options.steps + 1):
        optimizer.zero_grad()
        losses = [
            nn.functional.mse_loss(model(part), wanted.to(SECOND))
            for part, wanted in zip(
                x.chunk(options.batches), y.chunk(options.batches), strict=True
            )
        ]
        # One pass for all small batches: while the second device works on one of them,
        # the first one works on another.
        gv.autograd.backward(losses)
        optimizer.step()
        mean = sum(loss.item() for loss in losses) / len(losses)
        print(f"step {step}: loss {mean:.4f}")
    for name, parameter in model.named_parameters():
        print(f"{name} on {parameter.device}: gradient {tuple(parameter.grad.shape)}")


if __name__ == "__main__":
    main()
