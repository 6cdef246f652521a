"""Train a residual network of PyTorch's; nothing in here knows of gradviz."""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn

DATA = Path(__file__).parents[1] / "01_digits_mlp" / "digits.csv.gz"
BATCH_SIZE = 128


class Block(nn.Module):
    """Adds to its input what it makes of it."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + self.linear(self.norm(x)).relu()


class Reader(nn.Module):
    """Says which digit an image of 8 x 8 pixels shows."""

    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Linear(64, width)
        self.block = Block(width)
        self.output = nn.Linear(width, 10)

    def forward(self, images):
        return self.output(self.block(self.embed(images)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    table = torch.from_numpy(np.loadtxt(DATA, delimiter=",", dtype=np.float32))
    images, digits = table[:, :-1] / 16, table[:, -1].long()
    model = Reader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(arguments.steps):
        batch = torch.randint(len(images), (BATCH_SIZE,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[batch]), digits[batch])
        loss.backward()
        optimizer.step()
    print(f"final loss: {loss.item():.3f}")


if __name__ == "__main__":
    main()
