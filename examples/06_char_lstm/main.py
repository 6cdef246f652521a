"""Train a recurrent network to continue Python's own source text."""

import argparse
import sysconfig
from pathlib import Path

import numpy as np

import gradviz as gv
from gradviz import nn

LENGTH = 48
HIDDEN = 128
NUM_CHARACTERS = 128  # ASCII; the few others are left out


class Reader(nn.Module):
    """Which character comes next, at each place of a text."""

    def __init__(self):
        super().__init__()
        self.characters = nn.Embedding(NUM_CHARACTERS, 32)
        self.lstm = nn.LSTM(32, HIDDEN, batch_first=True)
        self.output = nn.Linear(HIDDEN, NUM_CHARACTERS)

    def forward(self, text, state=None):
        hidden, state = self.lstm(self.characters(text), state)
        return self.output(hidden), state


def load_text():
    """The modules of Python's standard library as one text, each character a number."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    text = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    characters = np.frombuffer(text, np.uint8)
    return characters[characters < NUM_CHARACTERS].astype(np.int64)


def batch(text, size, random):
    """Random pieces of the text, and what comes next at each of their places."""
    starts = random.integers(0, len(text) - LENGTH - 1, size)
    pieces = text[starts[:, None] + np.arange(LENGTH + 1)]
    return gv.tensor(pieces[:, :-1]), gv.tensor(pieces[:, 1:])


def continue_text(model, beginning, length, random):
    text = list(beginning.encode())
    with gv.no_grad():
        logits, state = model(gv.tensor([text]))
        for _ in range(length):
            likely = logits[0, -1].softmax(0).numpy().astype(float)
            text.append(int(random.choice(NUM_CHARACTERS, p=likely / likely.sum())))
            logits, state = model(gv.tensor([text[-1:]]), state)
    return bytes(text).decode()


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=300)
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()

    gv.manual_seed(options.seed)
    random = np.random.default_rng(options.seed)
    text = load_text()
    model = Reader()
    optimizer = gv.optim.Adam(model.parameters(), lr=5e-3)
    print(f"{len(text):,} characters to learn from")

    losses = []
    for step in range(1, options.steps + 1):
        given, wanted = batch(text, 32, random)
        optimizer.zero_grad()
        logits, _ = model(given)
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
