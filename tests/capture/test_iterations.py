"""Ends of iterations, as the steps of optimizers tell them."""

import pytest

from gradviz.capture.iterations import Iterations


class Optimizer:
    """Something that can be stepped."""


class Loop:
    """A training loop: ``a`` is a backward, and a step of optimizer a; ``A`` a step."""

    def __init__(self) -> None:
        self.num_passes = 0
        self.iterations = Iterations(lambda: self.num_passes)
        self.optimizers: dict[str, Optimizer] = {}

    def ended_by(self, steps: str) -> list[int]:
        """Number of iterations that had ended after each of some steps."""
        counts, total = [], 0
        for name in steps:
            self.num_passes += name.islower()
            optimizer = self.optimizers.setdefault(name.lower(), Optimizer())
            total += self.iterations.ended_by(optimizer)
            counts.append(total)
        return counts


@pytest.mark.parametrize(
    ("steps", "counts"),
    [
        ("aaa", [1, 2, 3]),
        # One loss, several optimizers; an optimizer that calls another.
        ("aBaBaB", [1, 1, 1, 2, 2, 3]),
        # A GAN: from the second iteration on it is known that b is the last.
        ("abababab", [1, 1, 1, 2, 2, 3, 3, 4]),
        ("abcabcabc", [1, 1, 1, 1, 1, 2, 2, 2, 3]),
        # One that steps in every third iteration only.
        ("aaabaaabaa", [1, 2, 3, 3, 3, 5, 6, 6, 6, 8]),
        # Steps before any backward, so that optimizers have a state.
        ("ABabab", [0, 0, 1, 1, 1, 2]),
        # Adam, then LBFGS.
        ("aaabbb", [1, 2, 3, 3, 5, 6]),
        # One stops.
        ("ababaaa", [1, 1, 1, 2, 2, 4, 5]),
    ],
)
def test_an_iteration_ends_with_the_last_of_its_optimizers(steps, counts):
    assert Loop().ended_by(steps) == counts


def test_an_optimizer_that_is_made_anew_each_time_ends_each():
    loop = Loop()
    counts = []
    for _ in range(3):
        counts += loop.ended_by("a")
        loop.optimizers.clear()

    assert counts == [1, 1, 1]
