"""Whole training steps: a small CNN and a transformer, written once for both libraries.

Both have a `torch.nn`, under the same names, which is the point.
"""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.timing import Contestant, timed


def cnn(library: ModuleType) -> Contestant:
    """Two convolutions with pooling and a linear layer, 16 images of 3 x 32 x 32."""
    nn = library.nn
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 8 * 8, 10),
    )
    images = _normal(library, 16, 3, 32, 32)
    classes = library.tensor(np.arange(16) % 10)
    criterion = nn.CrossEntropyLoss()

    def step() -> None:
        criterion(model(images), classes).backward()
        _forget_gradients(model)

    return lambda: timed(step)


def transformer(library: ModuleType, *, batch: int, width: int) -> Contestant:
    """Two encoder layers with four heads over sequences of 32, without dropout."""
    nn = library.nn
    model = nn.Sequential(
        *(
            nn.TransformerEncoderLayer(
                width, 4, dim_feedforward=4 * width, dropout=0.0, batch_first=True
            )
            for _ in range(2)
        )
    )
    tokens = _normal(library, batch, 32, width)

    def step() -> None:
        result = model(tokens)
        (result * result).mean().backward()
        _forget_gradients(model)

    return lambda: timed(step)


def _normal(library: ModuleType, *shape: int) -> Any:
    numbers = np.random.default_rng(0).standard_normal(shape)
    return library.tensor(numbers.astype(np.float32))


def _forget_gradients(model: Any) -> None:
    for parameter in model.parameters():
        parameter.grad = None
