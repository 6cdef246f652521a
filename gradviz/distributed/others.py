"""What the distributed engine of one worker asks of those of the others."""

from collections.abc import Mapping
from typing import Protocol

from gradviz.distributed.waits import Waits


class Others(Protocol):
    """What the engine asks of the other workers."""

    def tell_of_failure(
        self, peer: int, context_id: int, pass_id: int, reason: str
    ) -> None:
        """Have a pass of a context fail there."""

    def why_down(self, peer: int) -> str | None:
        """Why a worker is down; None if it is not known to be."""

    def waits_elsewhere(self, context_id: int, pass_id: int) -> Mapping[int, Waits]:
        """What they still wait for in a pass, by worker."""
