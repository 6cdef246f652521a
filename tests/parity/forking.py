"""A process that forks before and after its engine has made threads; see G14.

Run as ``python -m tests.parity.forking``; prints what became of each child, first of
PyTorch's engine and then of ours.
"""

import os

from tests.parity.worlds import GRADVIZ, TORCH, World


def nest(world: World, depth: int) -> None:
    """A backward inside a backward, `depth` deep."""

    def descend(grads):
        if depth:
            with world.lib.enable_grad():
                nest(world, depth - 1)
        return grads

    leaf = world.tensor([1.0, 2.0], requires_grad=True)
    (output,) = world.step(descend, 1, [leaf])
    world.lib.autograd.backward(output, world.tensor([1.0, 1.0]))


def in_child(world: World) -> str:
    """Return the outcome of a backward in a fork of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            nest(world, 0)
            ending = "fine"
        except RuntimeError as error:
            ending = str(error)
        os.write(writing, ending.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        return pipe.read()


def main() -> None:
    for world in (TORCH, GRADVIZ):
        nest(world, 0)
        print(in_child(world))  # noqa: T201 - the answer
        nest(world, 61)
        print(in_child(world))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
