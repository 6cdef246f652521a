"""A deep network that keeps some of its values, and computes the others again."""

import argparse
import tracemalloc

import gradviz as gv
from gradviz import nn
from gradviz.utils.checkpoint import checkpoint

WIDTH = 64
BATCH_SIZE = 256


class Deep(nn.Module):
    """Many layers in segments; a segment may forget what it computed."""

    def __init__(self, num_layers, segment_length):
        super().__init__()
        self.segments = nn.ModuleList(
            nn.Sequential(
                *(
                    module
                    for _ in range(segment_length)
                    for module in (nn.Linear(WIDTH, WIDTH), nn.Tanh())
                )
            )
            for _ in range(num_layers // segment_length)
        )

    def forward(self, x, *, forgets):
        for segment in self.segments:
            x = checkpoint(segment, x, use_reentrant=True) if forgets else segment(x)
        return x


def measure(model, x, *, forgets):
    """The gradients of the parameters, and the most memory that was in use, in MiB."""
    model.zero_grad()
    tracemalloc.start()
    loss = model(x, forgets=forgets).square().mean()
    loss.backward()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return [one.grad for one in model.parameters()], peak / 2**20


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--layers", type=int, default=64)
    options = arguments.parse_args()

    gv.manual_seed(0)
    model = Deep(options.layers, segment_length=8)
    x = gv.randn(BATCH_SIZE, WIDTH, requires_grad=True)

    kept, kept_peak = measure(model, x, forgets=False)
    again, again_peak = measure(model, x, forgets=True)
    same = all(bool((a == b).all()) for a, b in zip(kept, again, strict=True))
    print(f"all values kept:    {kept_peak:6.1f} MiB at most")
    print(f"most computed again: {again_peak:5.1f} MiB at most")
    print(f"saved: {1 - again_peak / kept_peak:.0%}; the same gradients: {same}")


if __name__ == "__main__":
    main()
