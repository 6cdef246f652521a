"""Backward graphs as plain values, and random ones: what both worlds are put through.

A graph is described by what a program would do to build it: leaves, then steps in the
order of their creation, then hooks, then passes. All values (leaves first, then the
outputs of each step) are numbered, so that a description names no object of any
library. Gradients are pairs of small integers: sums of them are exact, in any order.
"""

import random
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

MAX_STEPS: Final = 60
MAX_FAN: Final = 10


class Flaw(Enum):
    """A mistake, or only an oddity, in the result of a step or hook."""

    RAISES = auto()
    WRONG_SHAPE = auto()
    BROADCAST = auto()
    OTHER_DTYPE = auto()
    COMPLEX = auto()


class Kind(Enum):
    """Object that a hook is registered on: a tensor, its node, or a leaf."""

    TENSOR = auto()
    RETAIN = auto()
    BEFORE = auto()
    AFTER = auto()
    ACCUMULATED = auto()


@dataclass(frozen=True)
class Step:
    """A node: each input's gradient is a weighted sum of the outputs' gradients.

    Attributes:
        inputs: Values, the same one several times perhaps.
        num_outputs: How many values it makes.
        weights: For each input one for each output; None returns no gradient.
        keeps: Whether it holds on to the gradients that it is given.
        flaw: Of the first gradient it returns.
        inner: A backward inside this one's.
        callbacks: How many callbacks it queues.
    """

    inputs: tuple[int, ...]
    num_outputs: int
    weights: tuple[tuple[int, ...] | None, ...]
    keeps: bool = False
    flaw: Flaw | None = None
    inner: "Graph | None" = None
    callbacks: int = 0


@dataclass(frozen=True)
class Hook:
    """A hook: where, and what it does to a gradient that it sees.

    Attributes:
        kind: On what.
        value: The tensor, or the one whose node it is.
        factor: What it multiplies a gradient by, None to only look.
        flaw: Of what it returns.
    """

    kind: Kind
    value: int
    factor: int | None = None
    flaw: Flaw | None = None


@dataclass(frozen=True)
class Pass:
    """One call of ``backward``, or of ``grad``.

    Attributes:
        roots: Values.
        inputs: Values, None for a backward to all leaves.
        is_grad: Whether it is a call of ``grad``.
        create_graph: As for either.
        allow_unused: As for ``grad``.
    """

    roots: tuple[int, ...]
    inputs: tuple[int, ...] | None = None
    is_grad: bool = False
    create_graph: bool = False
    allow_unused: bool = True


@dataclass(frozen=True)
class Graph:
    """All of it.

    Attributes:
        leaves: For each whether it requires a gradient.
        borrowed: How many of them are leaves of the graph around this one.
        steps: In order of creation.
        hooks: In order of registration.
        passes: In order.
        watches_leaves: Whether leaves log when they accumulate.
    """

    leaves: tuple[bool, ...]
    steps: tuple[Step, ...]
    passes: tuple[Pass, ...]
    hooks: tuple[Hook, ...] = ()
    borrowed: int = 0
    watches_leaves: bool = True

    def depth(self) -> int:
        """The longest chain of steps."""
        depths = [0] * len(self.leaves)
        for step in self.steps:
            depths += [1 + max(depths[i] for i in step.inputs)] * step.num_outputs
        return max(depths)

    def fan_out(self) -> int:
        """The most uses of one value."""
        used = [i for step in self.steps for i in step.inputs]
        return max(map(used.count, used))


def random_graph(seed: int) -> Graph:
    """The graph of a seed, forever the same."""
    return _Builder(random.Random(seed)).graph(max_steps=MAX_STEPS, depth=0)


@dataclass
class _Shape:
    """Shape of a graph: the sources of a step's inputs, and their number."""

    recent: int
    max_inputs: int
    max_outputs: int
    leaf_rate: float


_SHAPES: Final = (
    _Shape(recent=1, max_inputs=3, max_outputs=1, leaf_rate=0.03),  # a chain
    _Shape(recent=4, max_inputs=3, max_outputs=2, leaf_rate=0.2),  # a braid
    _Shape(recent=100, max_inputs=3, max_outputs=3, leaf_rate=0.1),  # a thicket
    _Shape(recent=100, max_inputs=MAX_FAN, max_outputs=2, leaf_rate=0.7),  # leaves
    _Shape(recent=10, max_inputs=MAX_FAN, max_outputs=4, leaf_rate=0.3),  # a mesh
)


@dataclass
class _Builder:
    rng: random.Random
    requires_grad: list[bool] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def graph(self, *, max_steps: int, depth: int, borrowed: int = 0) -> Graph:
        rng = self.rng
        num_leaves = borrowed + rng.randint(1, rng.choice((2, 5, 12)))
        leaves = [True] * borrowed
        leaves += [rng.random() < 0.85 for _ in range(num_leaves - borrowed)]
        if not any(leaves):
            leaves[0] = True
        self.requires_grad = list(leaves)
        shape = rng.choice(_SHAPES)
        for _ in range(rng.randint(1, rng.choice((3, max_steps, max_steps)))):
            step = self._step(shape, num_leaves)
            self.steps.append(step)
            self.requires_grad += [True] * step.num_outputs
        self._decorate_steps(depth, sum(leaves))
        return Graph(
            leaves=tuple(leaves),
            steps=tuple(self.steps),
            passes=tuple(
                self._pass(num_leaves) for _ in range(rng.choice((1, 1, 2, 3)))
            ),
            hooks=tuple(
                self._hook(num_leaves) for _ in range(rng.choice((0, 0, 1, 3, 10)))
            ),
            borrowed=borrowed,
            watches_leaves=rng.random() < 0.7,
        )

    def _step(self, shape: _Shape, num_leaves: int) -> Step:
        rng = self.rng
        values = range(len(self.requires_grad))
        recent = values[num_leaves:][-shape.recent :]
        inputs = [
            rng.choice(values[:num_leaves])
            if not recent or rng.random() < shape.leaf_rate
            else rng.choice(recent)
            for _ in range(rng.randint(1, shape.max_inputs))
        ]
        if not any(self.requires_grad[i] for i in inputs):
            inputs[0] = self._wanted(values)
        num_outputs = rng.randint(1, shape.max_outputs)
        return Step(
            inputs=tuple(inputs),
            num_outputs=num_outputs,
            weights=tuple(
                None
                if rng.random() < 0.05
                else tuple(rng.randint(-3, 3) for _ in range(num_outputs))
                for _ in inputs
            ),
            keeps=rng.random() < 0.3,
        )

    def _decorate_steps(self, depth: int, num_wanted_leaves: int) -> None:
        """Give a few steps flaws, callbacks and backwards of their own."""
        rng = self.rng
        for index, step in enumerate(self.steps):
            draw = rng.random()
            if draw < 0.02:
                self.steps[index] = replace(step, flaw=rng.choice(tuple(Flaw)))
            elif draw < 0.05:
                self.steps[index] = replace(step, callbacks=rng.randint(1, 2))
            elif draw < 0.08 and depth < 3:
                inner = _Builder(rng).graph(
                    max_steps=8,
                    depth=depth + 1,
                    borrowed=rng.randint(0, num_wanted_leaves),
                )
                self.steps[index] = replace(step, inner=inner)

    def _hook(self, num_leaves: int) -> Hook:
        rng = self.rng
        kind = rng.choice(tuple(Kind))
        num_values = num_leaves if kind is Kind.ACCUMULATED else len(self.requires_grad)
        return Hook(
            kind=kind,
            value=self._wanted(range(num_values)),
            factor=rng.choice((None, None, 2, -1)),
            flaw=rng.choice(tuple(Flaw)) if rng.random() < 0.02 else None,
        )

    def _pass(self, num_leaves: int) -> Pass:
        rng = self.rng
        values = range(len(self.requires_grad))
        late = values[num_leaves:][-5:]
        roots = [self._wanted(late) for _ in range(rng.choice((1, 1, 1, 2, 4)))]
        if rng.random() < 0.1:
            roots.append(self._wanted(values))
        inputs = None
        is_grad = rng.random() < 0.35
        if is_grad or rng.random() < 0.25:
            inputs = tuple(self._wanted(values) for _ in range(rng.randint(1, 5)))
        return Pass(
            roots=tuple(roots),
            inputs=inputs,
            is_grad=is_grad,
            create_graph=rng.random() < 0.1,
            allow_unused=rng.random() < 0.8,
        )

    def _wanted(self, values: range) -> int:
        """A value that requires a gradient."""
        return self.rng.choice([i for i in values if self.requires_grad[i]])
