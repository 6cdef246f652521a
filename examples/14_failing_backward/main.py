"""A backward pass that stops at a gradient that is no number."""

import gradviz as gv
from gradviz import nn


class Scorer(nn.Module):
    """Divides by a norm, which may be zero."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        self.score = nn.Linear(4, 1)

    def forward(self, x):
        features = self.encode(x)
        norm = features.square().sum(dim=1, keepdim=True).sqrt()
        return self.score(features / norm.clamp(min=1e-3))


def refuse(gradient):
    """A hook that lets no NaN pass."""
    if gradient.isnan().any():
        raise ValueError(f"a gradient of shape {tuple(gradient.shape)} has a NaN")


def main():
    gv.manual_seed(0)
    model = Scorer()
    with gv.no_grad():
        model.encode[2].weight.zero_()
        model.encode[2].bias.zero_()
    for layer in (model.encode[0], model.encode[2]):
        layer.weight.register_hook(refuse)
    loss = model(gv.randn(5, 8)).sigmoid().mean()
    try:
        # All features are zero, and the derivative of the square root of zero is
        # infinite: 0 * inf is no number.
        loss.backward()
    except ValueError as error:
        print(f"the backward failed: {error}")
    for name, parameter in model.named_parameters():
        print(f"{name}: {'no gradient' if parameter.grad is None else 'a gradient'}")


if __name__ == "__main__":
    main()
