"""Nodes on several streams, whose gradients meet: who waits for whom."""

from tests.interleavings.scenarios.program import backward_fails, fail, scenario
from tests.interleavings.world import DEVICES, World, on_stream

SIM0, SIM1 = DEVICES


@scenario()
def streams_meet(world: World) -> None:
    """Gradients of two streams, and of another device, are added on a third stream."""
    leaf = world.leaf(SIM0, stream=3)
    join = world.node((1.0, leaf), device=SIM0, stream=3)
    sources = [
        world.node((2.0, join), device=SIM0, stream=1),
        world.node((3.0, join), device=SIM0, stream=2),
        world.node((5.0, join), (5.0, leaf), device=SIM1, stream=1),
    ]
    root = world.node(*((1.0, one) for one in sources))
    world.run(caller=lambda: world.backward(root))


@scenario()
def a_shared_gradient_is_added_to(world: World) -> None:
    """Two streams read one gradient; to one of them others come, from elsewhere."""
    leaf = world.leaf(SIM0, stream=1)
    reader = world.node((2.0, world.leaf(SIM1)), device=SIM0, stream=2)
    first = world.node((1.0, leaf), (1.0, reader), device=SIM0, stream=1)
    other = world.node((3.0, leaf), (4.0, leaf), device=SIM1)
    root = world.node((1.0, first), (1.0, other))
    world.run(caller=lambda: world.backward(root))


@scenario()
def callers_on_streams_of_their_own(world: World) -> None:
    """Two passes at once through one graph; each caller may use what it gets."""
    target = world.node((1.0, world.leaf(SIM0, stream=1)), device=SIM0, stream=1)
    root = world.node((2.0, target), device=SIM0, stream=2)

    def ask(stream: int) -> None:
        with on_stream(SIM0, stream):
            world.backward(root, outputs=[target], accumulate_grad=False)

    world.run(one=lambda: ask(3), other=lambda: ask(0))


@scenario()
def a_nested_pass_on_another_stream(world: World) -> None:
    """Its caller is a node on a device, with that node's stream."""
    leaf = world.leaf(SIM0, stream=1)
    inner = world.node((2.0, leaf), device=SIM1, stream=1)
    outer = world.node(
        (3.0, leaf), device=SIM0, stream=1, body=lambda: world.backward(inner)
    )
    world.run(caller=lambda: world.backward(outer))


@scenario()
def a_node_fails_between_streams(world: World) -> None:
    """Nobody waits for what will not come; the next pass is as if nothing had been."""
    leaf = world.leaf(SIM0, stream=1)
    good = world.node((2.0, leaf), device=SIM1, stream=1)
    bad = world.node((1.0, leaf), device=SIM0, stream=1, body=fail)
    root = world.node((1.0, good), (1.0, bad))

    def call() -> None:
        backward_fails(world, root)
        world.backward(good)

    world.run(caller=call)
