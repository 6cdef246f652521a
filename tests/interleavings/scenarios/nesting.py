"""Passes inside of passes, on every kind of thread, below the limit and beyond."""

import functools

from tests.interleavings.scenarios.program import scenario
from tests.interleavings.workload import Scaling
from tests.interleavings.world import DEVICES, World

SIM0, SIM1 = DEVICES


def nested_root(world: World, depth: int, **options: object) -> Scaling:
    """The root of a pass one of whose nodes calls `backward`, and so on, to `depth`."""
    leaf = world.leaf()
    root = world.node((2.0, leaf))
    for _ in range(depth):
        inner = functools.partial(world.backward, root)
        middle = world.node((1.0, leaf), body=inner, **options)  # type: ignore[arg-type]
        root = world.node((1.0, middle), (3.0, leaf))
    return root


@scenario()
def nested(world: World) -> None:
    """A pass in a pass in a pass, and a stranger on another thread."""
    root = nested_root(world, 2)
    world.run(
        caller=lambda: world.backward(root), stranger=lambda: world.backward(root)
    )


@scenario()
def nested_side_by_side(world: World) -> None:
    """A nested loop that waits for a device runs a node that nests as well.

    So the end of the one pass may reach the loop of the other.
    """
    far = world.leaf(SIM0)
    inner = world.node((2.0, far), (3.0, world.leaf()))
    sides = [
        world.node((1.0, far), body=lambda: world.backward(inner)) for _ in range(2)
    ]
    root = world.node((1.0, sides[0]), (1.0, sides[1]))
    world.run(caller=lambda: world.backward(root))


@scenario()
def nested_on_a_device(world: World) -> None:
    """The device's thread runs a pass of its own, part of which the caller runs."""
    root = nested_root(world, 2, device=SIM0)
    world.run(caller=lambda: world.backward(root))


@scenario()
def nested_on_two_devices(world: World) -> None:
    """The nested pass of a device needs the other device, which nests as well."""
    leaf = world.leaf(SIM0)
    deepest = world.node((2.0, leaf), device=SIM0)
    inner = world.node((3.0, leaf), device=SIM1, body=lambda: world.backward(deepest))
    root = world.node((1.0, leaf), device=SIM0, body=lambda: world.backward(inner))
    world.run(
        caller=lambda: world.backward(root), stranger=lambda: world.backward(deepest)
    )


@scenario(max_depth=1)
def nested_at_the_limit(world: World) -> None:
    """Threads of the pool stand in for the caller, and for each other."""
    root = nested_root(world, 4)
    world.run(caller=lambda: world.backward(root))
    num_threads = world.engine.num_pool_threads
    world.expect(num_threads == 2, f"the pool has {num_threads} threads, not 2")


@scenario(max_depth=1)
def nested_at_the_limit_twice(world: World) -> None:
    """Two callers need the pool at once."""
    root = nested_root(world, 2)
    world.run(
        one=lambda: world.backward(root), other=lambda: world.backward(root, 10.0)
    )


@scenario(max_depth=1)
def nested_at_the_limit_with_devices(world: World) -> None:
    """A stand-in for the caller waits for a device, and is woken by it."""
    leaf = world.leaf(SIM0)
    inner = world.node((2.0, leaf), (5.0, world.leaf()))
    middle = world.node((1.0, leaf), body=lambda: world.backward(inner))
    root = world.node((1.0, leaf), body=lambda: world.backward(middle))
    world.run(caller=lambda: world.backward(root))


@scenario(max_depth=0)
def nested_on_a_device_at_the_limit(world: World) -> None:
    """The pool stands in for a device's thread, while a stranger uses that device."""
    leaf = world.leaf(SIM0)
    inner = world.node((2.0, leaf), device=SIM0)
    root = world.node((1.0, leaf), device=SIM0, body=lambda: world.backward(inner))
    world.run(
        caller=lambda: world.backward(root), stranger=lambda: world.backward(inner)
    )
