"""Requests of one worker's distributed engine to those of the others."""

from collections.abc import Mapping
from typing import Protocol

from gradviz.distributed.messaging.waits import Waits


class Others(Protocol):
    """The other workers, as the engine needs them."""

    def tell_of_failure(
        self, peer: int, context_id: int, pass_id: int, reason: str
    ) -> None:
        """Have a pass of a context fail there."""

    def why_down(self, peer: int) -> str | None:
        """Return why a worker is down; None if it is not known to be."""

    def waits_elsewhere(self, context_id: int, pass_id: int) -> Mapping[int, Waits]:
        """Return what the other workers still wait for in a pass, by worker."""
