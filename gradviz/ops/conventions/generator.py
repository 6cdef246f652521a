"""The generator of all random numbers of tensors and layers."""

from typing import Any, Final

import numpy as np


class Generator:
    """A seedable source of random numbers.

    Attributes:
        random: NumPy's generator, which draws.
    """

    def __init__(self) -> None:
        self.seed()

    def manual_seed(self, seed: int) -> "Generator":
        """Restart from `seed`."""
        self._seed = seed
        self.random = np.random.default_rng(seed % 2**64)
        return self

    def seed(self) -> int:
        """Restart from a random seed; return it."""
        self.manual_seed(int(np.random.SeedSequence().generate_state(1)[0]))
        return self._seed

    def initial_seed(self) -> int:
        """The seed that the numbers began with."""
        return self._seed

    def get_state(self) -> dict[str, Any]:
        """Return the state that makes `set_state` repeat the same numbers."""
        return dict(self.random.bit_generator.state)

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from where `get_state` was called."""
        self.random.bit_generator.state = state


#: That of everything for which no other is named.
default_generator: Final = Generator()
