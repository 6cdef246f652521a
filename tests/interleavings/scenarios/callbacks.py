"""Final callbacks: who runs them, when, and what if they fail."""

from collections.abc import Callable

from gradviz.testing.scheduler import pause
from tests.interleavings.scenarios.program import backward_fails, fail, scenario
from tests.interleavings.world import DEVICES, World

SIM0 = DEVICES[0]


@scenario()
def callbacks(world: World) -> None:
    """Queued on two threads, by callbacks too; run by whoever ends the pass."""
    ran: list[str] = []

    def queue(name: str, then: Callable[[], object] = pause) -> None:
        def callback() -> None:
            ran.append(name)
            then()

        world.engine.queue_callback(callback)

    far, near = world.leaf(SIM0), world.leaf()
    there = world.node((1.0, far), device=SIM0, body=lambda: queue("there"))
    here = world.node((1.0, near), body=lambda: queue("here", lambda: queue("later")))
    root = world.node((1.0, there), (1.0, here))
    world.run(caller=lambda: world.backward(root))
    world.expect(sorted(ran) == ["here", "later", "there"], f"callbacks: {ran}")
    world.expect(ran[-1] == "later", f"callbacks out of turn: {ran}")


@scenario()
def a_callback_calls_backward(world: World) -> None:
    """A callback runs a pass, on whatever thread it runs, which queues another."""
    far = world.leaf(SIM0)
    inner = world.node((2.0, far), device=SIM0)

    def callback() -> None:
        world.backward(inner)

    def queue() -> None:
        world.engine.queue_callback(callback)

    root = world.node((1.0, far), device=SIM0, body=queue)
    world.run(caller=lambda: world.backward(root))


@scenario()
def a_callback_fails(world: World) -> None:
    """Its error reaches the caller, and the callbacks after it do not run."""
    ran: list[str] = []

    def queue() -> None:
        world.engine.queue_callback(fail)
        world.engine.queue_callback(lambda: ran.append("after"))

    far = world.leaf(SIM0)
    root = world.node((1.0, world.node((1.0, far), device=SIM0, body=queue)))
    good = world.node((1.0, far))

    def call() -> None:
        backward_fails(world, root)
        world.backward(good)

    world.run(caller=call)
    world.expect(not ran, "a callback ran after one that failed")


@scenario()
def callbacks_of_a_failed_pass(world: World) -> None:
    """They do not run, whichever thread fails or finishes first."""
    ran: list[str] = []

    def queue() -> None:
        world.engine.queue_callback(lambda: ran.append("callback"))

    there = world.node((1.0, world.leaf(SIM0)), device=SIM0, body=queue)
    bad = world.node((1.0, world.leaf()), body=fail)
    root = world.node((1.0, there), (1.0, bad))
    world.run(caller=lambda: backward_fails(world, root))
    world.expect(not ran, "a callback of a failed pass ran")
