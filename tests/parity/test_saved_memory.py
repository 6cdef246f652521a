"""Saved memory of our nodes and of PyTorch's, told apart alike."""

import random
from collections import Counter
from typing import Any, TypeAlias

import numpy as np
import pytest

import gradviz as gv
from gradviz.trace import events as e
from tests.sampled import sampled

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

#: For the names of nodes: bytes of their own, of leaves, and that counted before.
Told: TypeAlias = Counter[tuple[str, str]]

#: Square matrices in, a square matrix out, of either library.
UNARY = (
    lambda lib, x: x.sin(),
    lambda lib, x: x.exp(),
    lambda lib, x: x.tanh(),
    lambda lib, x: x.sigmoid(),
    lambda lib, x: x.relu(),
    lambda lib, x: x * 2.0,
    lambda lib, x: x.t(),
    lambda lib, x: x.reshape(-1)[4:].reshape(3, 4) @ x,
    lambda lib, x: x[1:] * x[:-1],
    lambda lib, x: lib.softmax(x, -1),
    lambda lib, x: x.square(),
    lambda lib, x: lib.nn.functional.gelu(x),
    lambda lib, x: lib.nn.functional.layer_norm(x, (4,)),
)
BINARY = (
    lambda lib, x, y: x * y,
    lambda lib, x, y: x + y,
    lambda lib, x, y: x @ y,
    lambda lib, x, y: x / y,
    lambda lib, x, y: lib.nn.functional.linear(x, y),
    lambda lib, x, y: lib.where(x > y, x, y),
    lambda lib, x, y: lib.maximum(x, y),
)


def program(lib: Any, seed: int) -> None:
    """Make a random graph over two leaves and an input, and run its backward twice."""
    choice = random.Random(seed)
    numbers = np.random.default_rng(seed)
    arrays = [numbers.uniform(0.5, 1.5, (4, 4)).astype(np.float32) for _ in range(3)]
    made = [lib.tensor(array) for array in arrays]
    for leaf in made[:2]:
        leaf.requires_grad_()
    for _ in range(8):
        x = choice.choice(made)
        one = (
            choice.choice(BINARY)(lib, x, choice.choice(made))
            if choice.random() < 0.5
            else choice.choice(UNARY)(lib, x)
        )
        if tuple(one.shape) != (4, 4):
            one = one.sum() * made[2]
        made.append(one)
    losses = [one.sum() for one in made[3:] if one.requires_grad]
    for again in (True, False) if losses else ():
        sum(losses).backward(retain_graph=again)


def told(recording: Any) -> Told:
    """Sum up what was reported, by the names of nodes that ran."""
    found: Told = Counter()
    trace = recording.trace
    for event in trace.events():
        if event.node not in trace.nodes:
            continue  # no pass reached it
        name = trace.nodes[event.node].name
        if isinstance(event, e.TensorSaved):
            found[name, "own"] += event.size_bytes or 0
        elif isinstance(event, e.SavedElsewhere):
            found[name, "of leaves"] += event.parameter_bytes
            found[name, "shared"] += event.shared_bytes
    return Counter({key: size for key, size in found.items() if size})


@pytest.mark.parametrize("seed", sampled(range(60), 3))
def test_a_random_program_saves_what_it_does_in_pytorch(seed):
    with gv.record() as ours:
        program(gv, seed)
    with gv.pytorch.record() as theirs:
        program(torch, seed)

    assert told(ours) == told(theirs)
