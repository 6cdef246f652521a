"""What scenarios have in common: how one is declared, and how its nodes fail."""

from collections.abc import Callable
from typing import Final, TypeAlias

from gradviz.testing.exploration import Scenario
from gradviz.testing.scheduler import Scheduler
from gradviz.testing.workload import Scaling
from gradviz.testing.world import World

Program: TypeAlias = Callable[[World], None]

#: Every scenario, by name.
SCENARIOS: Final[dict[str, Scenario]] = {}


def scenario(*, max_depth: int = 60) -> Callable[[Program], Program]:
    """Make a program two entries of `SCENARIOS`: with and without a listener.

    An engine that nobody listens to passes fewer points at which threads can meet.

    Args:
        max_depth: Nested calls on one thread before the pool takes over.
    """

    def add(program: Program) -> Program:
        for suffix in ("", "_unobserved"):

            def run(scheduler: Scheduler, *, is_observed: bool = not suffix) -> None:
                world = World(scheduler, max_depth=max_depth, is_observed=is_observed)
                program(world)
                world.finish()

            run.__name__ = program.__name__ + suffix
            SCENARIOS[run.__name__] = run
        return program

    return add


class Failure(Exception):  # noqa: N818 - not an error of ours
    """What nodes and callbacks raise here."""


def fail() -> None:
    """Raise what `backward_fails` expects.

    Raises:
        Failure: Always.
    """
    raise Failure("as the scenario wants it")


def backward_fails(world: World, root: Scaling) -> None:
    """Run a pass that must raise what its node raised."""
    try:
        world.backward(root)
    except Failure:
        return
    world.expect(False, f"the pass from {root} did not fail")
