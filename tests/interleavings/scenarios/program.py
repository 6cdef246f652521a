"""Common parts of scenarios: their declaration, and failures of nodes."""

from collections.abc import Callable
from typing import Final, TypeAlias

from gradviz.testing.exploration import Scenario
from gradviz.testing.scheduler import Scheduler
from tests.interleavings.workload import Scaling
from tests.interleavings.world import World

Program: TypeAlias = Callable[[World], None]

#: Every scenario, by name.
SCENARIOS: Final[dict[str, Scenario]] = {}


def scenario(*, max_depth: int = 60) -> Callable[[Program], Scenario]:
    """Make a program two scenarios, which are entries of `SCENARIOS`.

    The second, ``.unobserved`` of the first, has no listener: an engine that nobody
    listens to passes fewer points at which threads can meet.

    Args:
        max_depth: Nested calls on one thread before the pool takes over.
    """

    def add(program: Program) -> Scenario:
        def run(scheduler: Scheduler, *, is_observed: bool = True) -> None:
            world = World(scheduler, max_depth=max_depth, is_observed=is_observed)
            program(world)
            world.finish()

        def unobserved(scheduler: Scheduler) -> None:
            run(scheduler, is_observed=False)

        name = program.__name__
        vars(run)["unobserved"] = unobserved
        for one, place in ((run, name), (unobserved, f"{name}.unobserved")):
            one.__module__, one.__qualname__ = program.__module__, place
            SCENARIOS[place] = one
        return run

    return add


class Failure(Exception):  # noqa: N818 - not an error of ours
    """Exception of nodes and callbacks."""


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
