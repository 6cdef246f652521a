"""Train a convolutional network to read handwritten digits."""

import argparse
from pathlib import Path

import numpy as np

import gradviz as gv
from gradviz import nn

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
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(1, 16), Block(16, 32))
        self.dropout = nn.Dropout(0.25)
        self.output = nn.Linear(32 * 2 * 2, 10)

    def forward(self, images):
        return self.output(self.dropout(self.blocks(images).flatten(1)))


def load_digits(random):
    """Images of 8 x 8 numbers from 0 to 1, and their digits; shuffled."""
    table = np.loadtxt(DATA, delimiter=",", dtype=np.float32)
    table = table[random.permutation(len(table))]
    images = gv.tensor(table[:, :-1] / 16).reshape(-1, 1, 8, 8)
    return images, gv.tensor(table[:, -1].astype(np.int64))


def accuracy(model, images, digits):
    model.eval()
    with gv.no_grad():
        return (model(images).argmax(1) == digits).float().mean().item()


def train_epoch(model, optimizer, images, digits, random):
    """One pass over the images in random order; returns the mean loss."""
    model.train()
    losses = []
    order = random.permutation(len(images))
    for batch in np.array_split(order, len(images) // BATCH_SIZE):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[batch]), digits[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--epochs", type=int, default=8)
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()

    gv.manual_seed(options.seed)
    random = np.random.default_rng(options.seed)
    images, digits = load_digits(random)
    train = images[NUM_TEST:], digits[NUM_TEST:]
    test = images[:NUM_TEST], digits[:NUM_TEST]

    model = Reader()
    optimizer = gv.optim.Adam(model.parameters(), lr=4e-3)
    scheduler = gv.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    print(model)
    for epoch in range(1, options.epochs + 1):
        loss = train_epoch(model, optimizer, *train, random)
        scheduler.step()
        print(f"epoch {epoch}: loss {loss:.3f}, test {accuracy(model, *test):.1%}")
    print(f"test accuracy: {100 * accuracy(model, *test):.1f} %")


if __name__ == "__main__":
    main()
