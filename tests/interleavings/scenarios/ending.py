"""Engines that are stopped, idle or not."""

import contextlib

from gradviz.errors import EngineError
from tests.interleavings.scenarios.nesting import nested_root
from tests.interleavings.scenarios.program import scenario
from tests.interleavings.workload import Scaling
from tests.interleavings.world import DEVICES, World

SIM0, SIM1 = DEVICES


def _may_be_stopped(world: World, root: Scaling) -> None:
    """A pass that either runs or is refused."""
    with contextlib.suppress(EngineError):
        world.backward(root)


@scenario()
def stopped_while_idle(world: World) -> None:
    """Two threads stop an engine that has worked; a third call is refused."""
    root = world.node((1.0, world.leaf(SIM0)))
    world.run(caller=lambda: world.backward(root))
    world.run(one=world.engine.stop, other=world.engine.stop)
    world.run(late=lambda: _may_be_stopped(world, root))


@scenario()
def stopped_while_busy(world: World) -> None:
    """The engine is stopped while a pass goes from device to device."""
    leaf = world.leaf(SIM0)
    root = world.node((1.0, world.node((1.0, leaf), device=SIM1)), device=SIM0)
    world.run(caller=lambda: _may_be_stopped(world, root), end=world.engine.stop)


@scenario()
def stopped_while_nested(world: World) -> None:
    """The shutdown of a device reaches a nested loop of its thread."""
    leaf = world.leaf()
    inner = world.node((1.0, leaf))
    middle = world.node((1.0, world.node((1.0, inner), device=SIM1)), device=SIM0)
    root = world.node((1.0, leaf), device=SIM0, body=lambda: world.backward(middle))
    world.run(caller=lambda: _may_be_stopped(world, root), end=world.engine.stop)


@scenario(max_depth=0)
def stopped_while_the_pool_works(world: World) -> None:
    """The engine is stopped while threads of the pool are made, and work."""
    root = nested_root(world, 2)
    world.run(caller=lambda: _may_be_stopped(world, root), end=world.engine.stop)
