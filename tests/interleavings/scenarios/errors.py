"""Nodes that raise, or hang, on every kind of thread."""

from gradviz.testing.scheduler import sleep
from tests.interleavings.scenarios.program import backward_fails, fail, scenario
from tests.interleavings.world import DEVICES, World

SIM0, SIM1 = DEVICES


@scenario()
def an_error_on_the_caller(world: World) -> None:
    """Nodes of two devices are running or on their way when the caller's node fails."""
    leaf = world.leaf()
    busy = world.node((1.0, leaf), (1.0, world.leaf(SIM1)), device=SIM0)
    bad = world.node((1.0, leaf), body=fail)
    good = world.node((2.0, busy))
    root = world.node((1.0, busy), (1.0, bad))

    def call() -> None:
        backward_fails(world, root)
        world.backward(good)

    world.run(caller=call)


@scenario()
def an_error_on_a_device(world: World) -> None:
    """The caller sleeps, or works, when a device's node fails."""
    leaf = world.leaf()
    bad = world.node((1.0, leaf), device=SIM0, body=fail)
    busy = world.node((1.0, world.node((1.0, leaf), device=SIM0)))
    root = world.node((1.0, bad), (1.0, busy))

    def call() -> None:
        backward_fails(world, root)
        world.backward(busy)

    world.run(caller=call, stranger=lambda: world.backward(busy, 10.0))


@scenario()
def two_errors(world: World) -> None:
    """Two devices fail at once: the caller hears of one."""
    bad = [
        world.node((1.0, world.leaf(device)), device=device, body=fail)
        for device in DEVICES
    ]
    good = world.node((1.0, world.leaf(SIM0)), (1.0, world.leaf(SIM1)))
    root = world.node((1.0, bad[0]), (1.0, bad[1]), (1.0, good))

    def call() -> None:
        backward_fails(world, root)
        world.backward(good)

    world.run(caller=call)


@scenario()
def an_error_in_one_of_two_passes(world: World) -> None:
    """Two passes share a device and its nodes; only the one that fails stops."""
    far = world.leaf(SIM0)
    shared = world.node((2.0, far), (1.0, world.leaf()), device=SIM0)
    bad = world.node((1.0, far), body=fail)
    root = world.node((1.0, shared), (1.0, bad))
    world.run(
        failing=lambda: backward_fails(world, root),
        passing=lambda: world.backward(shared, 10.0),
    )


@scenario()
def an_error_while_pushing(world: World) -> None:
    """A device pushes to the caller, again and again, while the pass fails there."""
    leaf = world.leaf()
    chain = world.node((1.0, leaf))
    for device in (SIM0, None, SIM0):
        options = {} if device is None else {"device": device}
        chain = world.node((1.0, chain), (1.0, leaf), **options)  # type: ignore[arg-type]
    bad = world.node((1.0, leaf), body=fail)
    root = world.node((1.0, chain), (1.0, bad))

    def call() -> None:
        backward_fails(world, root)
        world.backward(chain)

    world.run(caller=call)


@scenario()
def an_error_in_a_nested_pass(world: World) -> None:
    """A nested pass on a device fails, and with it the pass around it."""
    far = world.leaf(SIM0)
    bad = world.node((1.0, far), device=SIM0, body=fail)
    inner = world.node((1.0, bad), (1.0, far))
    root = world.node((1.0, far), device=SIM0, body=lambda: world.backward(inner))
    good = world.node((1.0, far))

    def call() -> None:
        backward_fails(world, root)
        world.backward(good)

    world.run(caller=call, stranger=lambda: world.backward(good))


@scenario(max_depth=0)
def an_error_in_the_pool(world: World) -> None:
    """A stand-in for the caller runs a node that fails, while a device works."""
    far = world.leaf(SIM0)
    bad = world.node((1.0, far), body=fail)
    inner = world.node((1.0, bad), (1.0, world.node((1.0, far), device=SIM0)))
    root = world.node((1.0, far), body=lambda: world.backward(inner))
    good = world.node((1.0, far), body=lambda: world.backward(bad_free))
    bad_free = world.node((1.0, far))

    def call() -> None:
        backward_fails(world, root)
        world.backward(good)

    world.run(caller=call)


@scenario()
def an_error_while_a_device_hangs(world: World) -> None:
    """The failed pass gives a node of another thread some seconds, once, not forever.

    Meanwhile things arrive on the caller, which are no reason for more patience.
    """
    near = world.leaf()
    hanging = world.node((1.0, near), device=SIM0, body=lambda: sleep(60.0))
    slow = world.node((1.0, near), device=SIM1, body=lambda: sleep(3.0))
    bad = world.node((1.0, near), body=fail)
    root = world.node((1.0, hanging), (1.0, slow), (1.0, bad))
    good = world.node((1.0, near))

    def call() -> None:
        backward_fails(world, root)
        seconds = world.scheduler.fibers.now_ns / 1e9
        world.expect(seconds <= 5.0, f"the call took {seconds} seconds to fail")
        world.backward(good)

    world.run(caller=call)
