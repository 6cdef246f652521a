"""Tensors and the engine against PyTorch's, on programs of ops drawn at random.

Compared are the graph that a program builds, the order in which it runs, and all
gradients. A seed that fails is a test of its own: ``compare(seed)``.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.campaigns import IS_FULL
from tests.parity.programs import LINEAR, SMOOTH, Program, random_program
from tests.parity.worlds import GRADVIZ, TORCH, World

pytestmark = pytest.mark.parity

CHUNK = 50
NUM_PROGRAMS = 300
NUM_STRESS_PROGRAMS = 2_300 if IS_FULL else 1_300


@dataclass
class Outcome:
    """Observations of a program.

    Attributes:
        graph: Each node, found by walking from the root: its name, its place in order
            of creation, its edges.
        order: The nodes in the order in which they ran, by their place in `graph`.
        hooked: What hooks were given, in order.
        endings: How each pass ended: results, or an error's type and message.
        gradients: Results and every ``.grad``, as arrays.
    """

    graph: list[Any] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    hooked: list[int] = field(default_factory=list)
    endings: list[Any] = field(default_factory=list)
    gradients: list[Any] = field(default_factory=list)


def run(world: World, program: Program) -> Outcome:
    """Compute, watch every node, ask for gradients."""
    outcome = Outcome()
    values = compute(world, program)
    root = values[-1].sum()
    nodes = walk(world, outcome, root)
    for place, node in enumerate(nodes):
        world.before(node, lambda _, place=place: outcome.order.append(place))
    for value, factor in program.hooked:
        if values[value].requires_grad:
            values[value].register_hook(hook(world, outcome, value, factor))
    for value in program.retained:
        if values[value].requires_grad:
            values[value].retain_grad()
    for _ in range(1 + program.is_repeated):
        ask(world, program, outcome, root, values)
    return outcome


def compute(world: World, program: Program) -> list[Any]:
    values = [
        world.tensor(np.reshape(numbers, (3, 3)).tolist(), requires_grad=wanted)
        for numbers, wanted in program.leaves
    ]
    ops = {**LINEAR, **SMOOTH}
    for name, arguments in program.ops:
        values.append(ops[name](world.lib, *(values[i] for i in arguments)))
    return values


def walk(world: World, outcome: Outcome, root: Any) -> list[Any]:
    """All nodes, breadth first; describes them in `outcome`."""
    if not root.requires_grad:
        return []
    nodes = [world.node(root)]
    places = {nodes[0]: 0}
    for node in nodes:  # grows while it is walked
        for child, _ in world.children(node):
            if child is not None and child not in places:
                places[child] = len(nodes)
                nodes.append(child)
    created = sorted(nodes, key=world.sequence_nr)
    ranks = {node: rank for rank, node in enumerate(created)}
    outcome.graph = [
        (
            world.name(node),
            ranks[node],
            [(child and places[child], nr) for child, nr in world.children(node)],
        )
        for node in nodes
    ]
    return nodes


def hook(world: World, outcome: Outcome, value: int, factor: float) -> Any:
    def multiply(gradient: Any) -> Any:
        outcome.hooked.append(value)
        outcome.gradients.append(world.numbers(gradient))
        return None if gradient is None else gradient * factor

    return multiply


def ask(
    world: World, program: Program, outcome: Outcome, root: Any, values: list[Any]
) -> None:
    """Run one pass, and note how it ends."""
    inputs = None if program.inputs is None else [values[i] for i in program.inputs]
    autograd = world.lib.autograd
    results: Any = ()
    try:
        if program.is_grad:
            results = autograd.grad(root, inputs, allow_unused=True)
        else:
            autograd.backward(root, inputs=inputs)
        outcome.endings.append(None)
    except RuntimeError as error:
        outcome.endings.append((type(error), str(error)))
    outcome.gradients += map(world.numbers, results)
    outcome.gradients += [
        world.numbers(value.grad if value.is_leaf or value.retains_grad else None)
        for value in values
    ]


def compare(seed: int) -> None:
    program = random_program(seed)
    theirs, ours = run(TORCH, program), run(GRADVIZ, program)

    gradients = list(zip(theirs.gradients, ours.gradients, strict=True))
    theirs.gradients, ours.gradients = [], []
    assert ours == theirs, f"seed {seed}"
    for expected, actual in gradients:
        if program.is_exact or expected is None:
            assert actual == expected, f"seed {seed}"
        else:
            np.testing.assert_allclose(
                actual, expected, rtol=1e-9, atol=1e-9, err_msg=f"seed {seed}"
            )


@pytest.mark.parametrize("first", range(0, NUM_PROGRAMS, CHUNK))
def test_a_random_program_runs_as_in_pytorch(first):
    for seed in range(first, first + CHUNK):
        compare(seed)


@pytest.mark.stress
@pytest.mark.parametrize("first", range(NUM_PROGRAMS, NUM_STRESS_PROGRAMS, 10 * CHUNK))
def test_a_thousand_random_programs_run_as_in_pytorch(first):
    for seed in range(first, first + 10 * CHUNK):
        compare(seed)


def test_every_op_is_drawn():
    drawn = {
        name for seed in range(NUM_PROGRAMS) for name, _ in random_program(seed).ops
    }

    assert drawn == LINEAR.keys() | SMOOTH.keys()
