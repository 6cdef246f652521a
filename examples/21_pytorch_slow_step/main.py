"""Train a recurrent network of PyTorch's, with one line that makes its step slow."""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn

DATA = Path(__file__).parents[1] / "01_digits_mlp" / "digits.csv.gz"
BATCH_SIZE = 256


class Reader(nn.Module):
    """Reads the pixels of a digit one after the other, then says which digit it is."""

    def __init__(self, width, unbind):
        super().__init__()
        self.width = width
        self.unbind = unbind
        self.embed = nn.Sequential(nn.Linear(1, width), nn.GELU())
        self.cell = nn.GRUCell(width, width)
        self.output = nn.Linear(width, 10)

    def forward(self, images):
        """Return scores of the digits, of shape (batch, 10), for (batch, 64) pixels."""
        pixels = self.embed(images.unsqueeze(-1))
        state = pixels.new_zeros(len(images), self.width)
        if self.unbind:
            for pixel in pixels.unbind(1):
                state = self.cell(pixel, state)
        else:
            for index in range(pixels.shape[1]):
                state = self.cell(pixels[:, index], state)
        return self.output(state)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--unbind", action="store_true", help="mend the slow line")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    table = torch.from_numpy(np.loadtxt(DATA, delimiter=",", dtype=np.float32))
    images, digits = table[:, :-1] / 16, table[:, -1].long()
    model = Reader(64, arguments.unbind)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(arguments.steps):
        batch = torch.randint(len(images), (BATCH_SIZE,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[batch]), digits[batch])
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
