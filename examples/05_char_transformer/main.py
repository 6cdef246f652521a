"""Train a small transformer to continue Python's own source text."""

import argparse
import sysconfig
from pathlib import Path

import numpy as np

import gradviz as gv
from gradviz import nn

CONTEXT = 64
WIDTH = 64
NUM_CHARACTERS = 128  # ASCII; the few others are left out


class Transformer(nn.Module):
    """Which character comes next, at each place of a text."""

    def __init__(self, num_layers=2, num_heads=4):
        super().__init__()
        self.characters = nn.Embedding(NUM_CHARACTERS, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, num_heads, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers, nn.LayerNorm(WIDTH))
        self.output = nn.Linear(WIDTH, NUM_CHARACTERS)
        later = np.triu(np.ones((CONTEXT, CONTEXT), bool), 1)
        self.register_buffer("mask", gv.tensor(later), persistent=False)

    def forward(self, text):
        length = text.shape[1]
        x = self.characters(text) + self.places(gv.arange(length))
        return self.output(self.encoder(x, self.mask[:length, :length]))


def load_text():
    """The modules of Python's standard library as one text, each character a number."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    text = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    characters = np.frombuffer(text, np.uint8)
    return characters[characters < NUM_CHARACTERS].astype(np.int64)


def batch(text, size, random):
    """Random pieces of the text, and what comes next at each of their places."""
    starts = random.integers(0, len(text) - CONTEXT - 1, size)
    pieces = text[starts[:, None] + np.arange(CONTEXT + 1)]
    return gv.tensor(pieces[:, :-1]), gv.tensor(pieces[:, 1:])


def continue_text(model, beginning, length, random):
    text = list(beginning.encode())
    with gv.no_grad():
        for _ in range(length):
            logits = model(gv.tensor([text[-CONTEXT:]]))[0, -1]
            likely = logits.softmax(0).numpy().astype(float)
            text.append(int(random.choice(NUM_CHARACTERS, p=likely / likely.sum())))
    return bytes(text).decode()


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=400)
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()

    gv.manual_seed(options.seed)
    random = np.random.default_rng(options.seed)
    text = load_text()
    model = Transformer()
    optimizer = gv.optim.AdamW(model.parameters(), lr=3e-3)
    num_parameters = sum(one.numel() for one in model.parameters())
    print(f"{len(text):,} characters to learn from, {num_parameters:,} parameters")

    losses = []
    for step in range(1, options.steps + 1):
        given, wanted = batch(text, 32, random)
        optimizer.zero_grad()
        logits = model(given)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step % 20 == 0:
            print(f"step {step}: loss {np.mean(losses[-20:]):.3f}", flush=True)
    print(f"final loss: {np.mean(losses[-20:]):.3f}")
    print(continue_text(model, "def ", 200, random))


if __name__ == "__main__":
    main()
