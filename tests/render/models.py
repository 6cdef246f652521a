"""Graphs of real backward passes, whose pictures are measured: ten models."""

import random
from collections.abc import Callable
from typing import Final

import gradviz as gv
from gradviz import nn
from gradviz.analysis.graphs.backward_graph import Graph, build_graph
from gradviz.analysis.graphs.simplification import split_shared_leaves
from gradviz.analysis.tables.passes import select_task
from gradviz.utils.checkpoint import checkpoint


class Residual(nn.Module):
    """Blocks that each add something to what they are given."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
            for _ in range(depth)
        )

    def forward(self, x: gv.Tensor) -> gv.Tensor:
        for block in self.blocks:
            x = x + block(x)
        return x


class Block(nn.Module):
    """One of a GPT: attention and a perceptron, each beside a residual edge."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: gv.Tensor) -> gv.Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.perceptron(self.norm2(x))


class GPT(nn.Module):
    """A small one."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, width)
        self.positions = nn.Embedding(8, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 11)

    def forward(self, tokens: gv.Tensor) -> gv.Tensor:
        x = self.tokens(tokens) + self.positions(gv.arange(8))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def perceptron() -> Graph:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())
    model.append(nn.Linear(8, 1))
    return _graph(lambda: model(gv.ones(2, 4)).square().mean())


def residual(depth: int = 50) -> Graph:
    model = Residual(4, depth)
    return _graph(lambda: model(gv.ones(2, 4)).square().mean())


def convolutional() -> Graph:
    model = nn.Sequential(
        *(nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4)),
        *(nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3)),
    )
    wanted = gv.tensor([0, 2])
    return _graph(
        lambda: nn.functional.cross_entropy(model(gv.randn(2, 1, 8, 8)), wanted)
    )


def recurrent(steps: int = 50) -> Graph:
    cell, head = nn.RNNCell(3, 4), nn.Linear(4, 1)

    def loss() -> gv.Tensor:
        hidden, total = gv.zeros(2, 4), gv.zeros(())
        for _ in range(steps):
            hidden = cell(gv.ones(2, 3), hidden)
            total = total + head(hidden).square().mean()
        return total

    return _graph(loss)


def gated(steps: int = 12) -> Graph:
    cell, query, head = nn.GRUCell(3, 4), nn.Linear(4, 4), nn.Linear(4, 1)

    def loss() -> gv.Tensor:
        hidden, states = gv.zeros(2, 4), []
        for _ in range(steps):
            hidden = cell(gv.ones(2, 3), hidden)
            states.append(hidden)
        seen = gv.stack(states, dim=1)
        scores = (seen * query(hidden).unsqueeze(1)).sum(-1).softmax(-1)
        return head((scores.unsqueeze(-1) * seen).sum(1)).square().mean()

    return _graph(loss)


def transformer(depth: int = 3) -> Graph:
    model = GPT(4, depth)
    tokens = gv.tensor([[1, 2, 3, 4, 5, 6, 7, 8]])
    return _graph(lambda: nn.functional.cross_entropy(model(tokens)[0], tokens[0]))


def two_devices() -> Graph:
    first = nn.Sequential(nn.Linear(4, 4), nn.Tanh()).to("sim:0")
    second = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)).to("sim:1")
    x = gv.ones(8, 4)

    def loss() -> gv.Tensor:
        parts = [second(first(part.to("sim:0")).to("sim:1")) for part in x.chunk(4)]
        return sum(part.square().mean() for part in parts)

    # A thread for each device would take turns as the machine likes, and a picture
    # follows the order in which nodes ran.
    with gv.autograd.set_multithreading_enabled(False):
        return _graph(loss)


def checkpointed() -> Graph:
    parts = [nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(6)]

    def loss() -> gv.Tensor:
        x = gv.ones(2, 4, requires_grad=True)
        for part in parts:
            x = checkpoint(part, x, use_reentrant=True) * 2.0
        return x.square().mean()

    return _graph(loss)


def hubs(num_nodes: int = 300, seed: int = 1) -> Graph:
    """At random, where some values are used by many."""
    chooser = random.Random(seed)

    def loss() -> gv.Tensor:
        made = [gv.ones(2, requires_grad=True) for _ in range(4)]
        hub = made[0] * 2.0
        for number in range(num_nodes):
            near = made[-chooser.randint(1, min(6, len(made)))]
            other = hub if chooser.random() < 0.12 else chooser.choice(made[-12:])
            made.append(near * other if number % 3 else near + other)
            if number % 90 == 89:
                hub = made[-1]
        return sum(one.sum() for one in made[-4:])

    return _graph(loss)


def fan() -> Graph:
    """Forty ways side by side."""
    x = gv.ones(4, requires_grad=True)

    def loss() -> gv.Tensor:
        y = x * 2.0
        return gv.stack([(y * float(number)).exp() for number in range(40)]).sum()

    return _graph(loss)


MODELS: Final[dict[str, Callable[[], Graph]]] = {
    "perceptron": perceptron,
    "residual": residual,
    "convolutional": convolutional,
    "recurrent": recurrent,
    "gated": gated,
    "transformer": transformer,
    "two devices": two_devices,
    "checkpointed": checkpointed,
    "hubs": hubs,
    "fan": fan,
}


def _graph(loss: Callable[[], gv.Tensor]) -> Graph:
    gv.manual_seed(0)
    with gv.record() as recording:
        loss().backward()
    trace = recording.trace
    return split_shared_leaves(build_graph(trace, select_task(trace, "last")[0]))
