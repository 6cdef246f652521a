"""Programs that train a tiny model of a public library, with random weights."""

import functools
import importlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")


@dataclass(frozen=True)
class Training:
    """A model, and a function that trains it and returns its losses."""

    model: Any
    run: Callable[[], list[Any]]


@dataclass(frozen=True)
class Program:
    """A program that trains a model.

    Attributes:
        name: The model's name.
        library: The module without which there is none.
        build: Makes the model, and what trains it.
        has_layers: Whether the model has at least three equal layers in a row.
        num_steps: How many backward passes it runs.
        keeps_inputs: Whether checkpoints keep what they were called with: no node does.
    """

    name: str
    library: str
    build: Callable[[], Training]
    has_layers: bool = False
    num_steps: int = 1
    keeps_inputs: bool = False

    def __str__(self) -> str:
        return self.name

    def start(self) -> Training:
        """Build the model; it gets the same weights, and the same data, each time."""
        let_torchvision_be_imported()
        pytest.importorskip(self.library)
        seed()
        training = self.build()
        seed()
        return training


@functools.cache
def let_torchvision_be_imported() -> Any:
    """Make up for operations that torchvision cannot load beside a PyTorch for CPUs.

    That of PyPI is built for CUDA. Most libraries import it; no model here uses these.

    Returns:
        What they are defined by, as long as it lives; None if nothing was missing.
    """
    try:
        importlib.import_module("torchvision")
    except ModuleNotFoundError:
        return None
    except RuntimeError:
        operations = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            operations.define(f"{name}(Tensor boxes, Tensor scores) -> Tensor")
        return operations
    return None


def seed() -> None:
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - the one that libraries draw from


def one_step(model: Any, loss_of: Callable[[], Any]) -> Training:
    """Train with a single backward pass, as in a program's own loop."""

    def run() -> list[Any]:
        loss = loss_of()
        loss.backward()
        return [loss.detach()]

    return Training(model.train(), run)
