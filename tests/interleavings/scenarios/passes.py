"""Callers and devices that work for one pass, or for two at once."""

from gradviz.engine.graph.node import Edge
from tests.interleavings.scenarios.program import scenario
from tests.interleavings.world import DEVICES, World

SIM0, SIM1 = DEVICES


@scenario()
def the_device_ends_the_pass(world: World) -> None:
    """The caller sleeps while the last node runs on a device: it must be woken."""
    root = world.node((2.0, world.leaf(SIM0)))
    world.run(caller=lambda: world.backward(root))


@scenario()
def there_and_back(world: World) -> None:
    """The caller and one device work side by side, and meet in a sum."""
    leaf = world.leaf()
    there = world.node((2.0, leaf), device=SIM0)
    here = world.node((3.0, leaf))
    root = world.node((1.0, there), (1.0, here), (4.0, leaf))
    world.run(caller=lambda: world.backward(root))


@scenario()
def two_devices_meet(world: World) -> None:
    """Two devices fill the buffer of a node, and add into that of a leaf."""
    near, far = world.leaf(), world.leaf(SIM1)
    join = world.node((1.0, near), (5.0, far), device=SIM0, num_inputs=2)
    left = world.node((2.0, join), (2.0, near), device=SIM0)
    right = world.node((3.0, Edge(join, 1)), (3.0, near), device=SIM1)
    root = world.node((1.0, left), (1.0, right))
    world.run(caller=lambda: world.backward(root))


@scenario()
def three_threads_add(world: World) -> None:
    """A gradient is taken out of its buffer and added to, while another arrives."""
    leaf = world.leaf(SIM1)
    sources = [
        world.node((1.0, leaf), (1.0, leaf), device=device) for device in (SIM0, SIM1)
    ]
    root = world.node((1.0, sources[0]), (2.0, sources[1]), (4.0, leaf))
    world.run(caller=lambda: world.backward(root))


@scenario()
def one_gradient_for_three(world: World) -> None:
    """Another is to be added to it for one of them, when one still has to read it."""
    leaf = world.leaf()
    late, early = world.node((3.0, leaf)), world.node((2.0, leaf))
    root = world.node((1.0, leaf), (1.0, late), (1.0, early))
    world.run(caller=lambda: world.backward(root))


@scenario()
def two_callers_share_a_graph(world: World) -> None:
    """Two passes at once run the same nodes, on the callers' threads only."""
    leaf = world.leaf()
    shared = world.node((2.0, leaf), (3.0, leaf))
    root = world.node((1.0, shared), (1.0, leaf))
    world.run(
        one=lambda: world.backward(root, 1.0),
        other=lambda: world.backward(shared, 10.0),
    )


@scenario()
def two_callers_share_a_device(world: World) -> None:
    """Two passes at once start the device's thread, and use its queue."""
    near, far = world.leaf(), world.leaf(SIM0)
    shared = world.node((2.0, far), (3.0, near), device=SIM0)
    root = world.node((1.0, shared))
    world.run(
        one=lambda: world.backward(root, 1.0),
        other=lambda: world.backward(shared, 10.0),
    )


@scenario()
def two_callers_start_two_devices(world: World) -> None:
    """One needs the second device's thread while the other starts the first's."""
    one = world.node((2.0, world.leaf(SIM0)))
    other = world.node((2.0, world.leaf(SIM1)))
    world.run(one=lambda: world.backward(one), other=lambda: world.backward(other))


@scenario()
def some_outputs_are_wanted(world: World) -> None:
    """``grad`` captures on two threads, and leaves out what leads to no output."""
    wanted, captured = world.leaf(), world.node(device=SIM0)
    unwanted = world.node((7.0, world.leaf()), device=SIM1)
    left = world.node((2.0, wanted), (3.0, captured), (1.0, unwanted), device=SIM0)
    root = world.node((1.0, left), (5.0, wanted), (1.0, captured))

    def call() -> None:
        gradients = world.backward(
            root, outputs=(wanted, captured), accumulate_grad=False
        )
        world.expect([gradient.value for gradient in gradients] == [7.0, 4.0])

    world.run(caller=call)
