"""Errors that strike a thread at any point, as a signal or a full memory does."""

import contextlib

from gradviz.errors import EngineError
from gradviz.testing.scheduler import pause
from tests.interleavings.scenarios.program import scenario
from tests.interleavings.workload import Scaling
from tests.interleavings.world import DEVICES, World

SIM0 = DEVICES[0]


def _interrupted(world: World, root: Scaling) -> None:
    """Two passes on one thread, which a KeyboardInterrupt strikes at any point.

    A pass that comes after it, on this thread or on another one, must go well.
    """

    def call() -> None:
        for gradient in (1.0, 10.0):
            with contextlib.suppress(KeyboardInterrupt):
                world.backward(root, gradient)

    world.run(
        caller=call,
        signal=lambda: world.scheduler.interrupt("caller", KeyboardInterrupt()),
    )
    world.run(other=lambda: world.backward(root, 100.0))


def _take_long() -> None:
    for _ in range(5):
        pause()


@scenario()
def an_interruption_alone(world: World) -> None:
    """Nobody but the caller works."""
    leaf = world.leaf()
    left, right = world.node((1.0, leaf)), world.node((2.0, leaf))
    _interrupted(world, world.node((1.0, left), (1.0, right), (1.0, leaf)))


@scenario()
def an_interruption_beside_devices(world: World) -> None:
    """Devices work for the pass, or the caller sleeps and waits for them."""
    leaf = world.leaf()
    there = world.node(
        (1.0, leaf), (1.0, world.leaf(SIM0)), device=SIM0, body=_take_long
    )
    here = world.node((1.0, leaf))
    _interrupted(world, world.node((1.0, there), (1.0, here)))


@scenario()
def an_interruption_while_nested(world: World) -> None:
    """The caller is in a nested loop, whose queue is that of the outer one."""
    leaf, far = world.leaf(), world.leaf(SIM0)
    inner = world.node((2.0, leaf), (3.0, far))
    middle = world.node((1.0, leaf), body=lambda: world.backward(inner))
    _interrupted(world, world.node((1.0, middle), (3.0, leaf), (1.0, far)))


@scenario(max_depth=0)
def an_interruption_before_the_pool(world: World) -> None:
    """The caller waits for the thread of the pool that stands in for it."""
    leaf, far = world.leaf(), world.leaf(SIM0)
    inner = world.node((2.0, leaf), (3.0, far))
    middle = world.node((1.0, leaf), body=lambda: world.backward(inner))
    _interrupted(world, world.node((1.0, middle), (3.0, leaf), (1.0, far)))


@scenario()
def a_device_is_struck(world: World) -> None:
    """An error strikes a device's thread at any point, the engine's own code included.

    The pass that it worked for may fail, but nobody waits forever, and the thread
    goes on.
    """
    far = world.leaf(SIM0)
    there = world.node((2.0, far), (1.0, world.leaf()), device=SIM0)
    root = world.node((1.0, there), (1.0, far))

    def call(gradient: float) -> None:
        with contextlib.suppress(KeyboardInterrupt, EngineError):
            world.backward(root, gradient)

    world.run(first=lambda: world.backward(root, 1000.0))
    world.run(
        one=lambda: call(1.0),
        other=lambda: call(10.0),
        error=lambda: world.scheduler.interrupt("gv_autograd_0", KeyboardInterrupt()),
    )
    world.run(one=lambda: world.backward(root, 100.0))
