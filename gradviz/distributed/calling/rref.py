"""References to values on another worker."""

import weakref
from typing import Any, Protocol

from gradviz.distributed.messaging.future import Future
from gradviz.distributed.messaging.kept import Kept


class Referrer(Protocol):
    """A worker as its references need it."""

    info: Any
    infos: Any
    kept: Kept

    def fetch(self, dst: int, rref: int, timeout: float | None) -> Future[Any]:
        """Fetch a value that another worker keeps."""

    def drop_later(self, owner: int, rref: int, fork: int) -> None:
        """Take note that a reference is gone."""


class RRef:
    """A reference to a value that a worker, its owner, keeps; see Note [References].

    `gradviz.distributed.rpc.remote` makes one, and it may be sent like a tensor.

    Args:
        home: The worker where the reference is.
        owner_rank: Rank of the owner.
        number: Number under which the owner keeps the value.
        fork: The id of this reference.
        created: Done when the owner has the value; None if that is not known here.

    Attributes:
        owner_rank: As given, like `number`.

    Source: torch.distributed.rpc.RRef.
    """

    def __init__(
        self,
        home: Referrer,
        owner_rank: int,
        number: int,
        fork: int,
        created: Future[None] | None,
    ) -> None:
        self._home = home
        self.owner_rank = owner_rank
        self.number = number
        self.created = created
        weakref.finalize(self, home.drop_later, owner_rank, number, fork).atexit = False

    def is_owner(self) -> bool:
        """Return whether the value is on this worker."""
        owner: int = self._home.info.id
        return owner == self.owner_rank

    def owner(self) -> Any:  # noqa: ANN401 - a WorkerInfo, whose module is above
        """Name and rank of the worker where the value is."""
        return self._home.infos[self.owner_rank]

    def owner_name(self) -> str:
        """Name of the worker where the value is."""
        name: str = self.owner().name
        return name

    def confirmed_by_owner(self) -> bool:
        """Return whether the owner is known to have the value."""
        return self.created is None or self.created.done()

    def local_value(self) -> Any:  # noqa: ANN401 - of any type
        """The value, on the worker where it is.

        Raises:
            RuntimeError: It is on another one.
        """
        if not self.is_owner():
            raise RuntimeError(
                f"Cannot call localValue() on a non-local reference: the value is on "
                f"{self.owner()}"
            )
        return self._home.kept.future(self.number).wait()

    def to_here(self, timeout: float | None = 60.0) -> Any:  # noqa: ANN401 - of any type
        """A copy of the value; in an autograd context, part of the graph.

        Raises:
            RemoteError: Making the value has failed.
            RpcError: The owner did not answer in time, or is gone.
        """
        if self.is_owner():
            return self._home.kept.future(self.number).wait(timeout)
        return self._home.fetch(self.owner_rank, self.number, timeout).wait()

    def __repr__(self) -> str:
        return f"RRef({self.number}, owner={self.owner_name()})"
