"""Train a convolutional network of PyTorch's; nothing in here knows of gradviz."""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

DATA = Path(__file__).parents[1] / "01_digits_mlp" / "digits.csv.gz"
NUM_TEST = 360
BATCH_SIZE = 32


class Block(nn.Module):
    """A convolution, and what belongs to it; halves the image."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(out_channels)
        self.pool = nn.MaxPool2d(2)

    def forward(self, images):
        return self.pool(self.norm(self.conv(images)).relu())


class Reader(nn.Module):
    """Two blocks, the second of which is computed again in the backward."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(1, 16), Block(16, 32)])
        self.output = nn.Linear(32 * 2 * 2, 10)

    def forward(self, images):
        images = self.blocks[0](images)
        if self.training:
            images = checkpoint(self.blocks[1], images, use_reentrant=True)
        else:
            images = self.blocks[1](images)
        return self.output(images.flatten(1))


def load_digits(generator):
    """Images of 8 x 8 numbers from 0 to 1, and their digits; shuffled."""
    table = torch.from_numpy(np.loadtxt(DATA, delimiter=",", dtype=np.float32))
    table = table[torch.randperm(len(table), generator=generator)]
    return table[:, :-1].reshape(-1, 1, 8, 8) / 16, table[:, -1].long()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    generator = torch.Generator().manual_seed(arguments.seed)
    images, digits = load_digits(generator)
    model = Reader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for epoch in range(arguments.epochs):
        model.train()
        order = torch.randperm(len(images) - NUM_TEST, generator=generator)
        for batch in order.split(BATCH_SIZE):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[batch]), digits[batch])
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        right = model(images[-NUM_TEST:]).argmax(1) == digits[-NUM_TEST:]
    print(f"test accuracy: {100 * right.float().mean().item():.1f} %")


if __name__ == "__main__":
    main()
