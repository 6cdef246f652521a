"""References of one worker to others' values, and of others to its values."""

from collections import deque
from collections.abc import Sequence

from gradviz.distributed.calling.notices import tell_until_understood
from gradviz.distributed.calling.rref import Referrer, RRef
from gradviz.distributed.messaging.ids import Ids
from gradviz.distributed.messaging.messages import Drop, Hold
from gradviz.distributed.messaging.values import Packed
from gradviz.distributed.transport.base import Transport


class References:
    """Makes, sends and receives references, and notifies owners of their end.

    Args:
        home: The worker.
        transport: The way to the others.
    """

    def __init__(
        self,
        home: Referrer,
        transport: Transport,
    ) -> None:
        self._home = home
        self._transport = transport
        self._ranks = range(transport.world_size)
        self._ids = Ids(transport.rank)
        #: Owner, id and fork of references that are gone. Finalizers append: in one
        #: step of C and past the seam, for they may strike anywhere.
        self._dropped: deque[tuple[int, int, int]] = deque()

    def new(self, owner: int) -> RRef:
        """Return a reference to a value that `owner` will keep under a new id."""
        number = self._ids.next()
        return RRef(self._home, owner, number, number, None)

    def drop_later(self, owner: int, rref: int, fork: int) -> None:
        """Take note that a reference is gone; a finalizer may call it anywhere."""
        self._dropped.append((owner, rref, fork))

    def drop(self) -> None:
        """Notify the owners of dropped references."""
        while True:
            try:  # in one step: another thread may be here too
                owner, rref, fork = self._dropped.popleft()
            except IndexError:
                return
            if owner == self._transport.rank:
                self._home.kept.drop(rref, fork)
            else:
                news = Drop(rref=rref, fork=fork)
                tell_until_understood(self._transport, owner, news)

    def pack(self, value: object, dst: int) -> Packed | None:
        """The form of a reference that is sent to `dst`; None for other values."""
        if not isinstance(value, RRef):
            return None
        if value.owner_rank == dst:
            return ["rref", value.owner_rank, value.number, -1]
        fork = self._ids.next()
        if value.owner_rank == self._transport.rank:
            self._home.kept.hold(value.number, fork)
        else:
            news = Hold(rref=value.number, fork=fork)
            told = tell_until_understood(self._transport, value.owner_rank, news)
            told.add_done_callback(lambda: _let_live(value))
        return ["rref", value.owner_rank, value.number, fork]

    def unpack(self, form: Sequence[Packed]) -> RRef:
        """The reference that has come.

        Raises:
            ValueError: It is none.
        """
        match form:
            case ["rref", int(owner), int(number), int(fork)] if owner in self._ranks:
                if fork < 0:
                    fork = self._ids.next()
                    self._home.kept.hold(number, fork)
                return RRef(self._home, owner, number, fork, None)
            case _:
                raise ValueError(f"not the form of a value: {form!r:.80}")


def _let_live(value: object) -> None:
    """Called when `value` may go: until then, the callback refers to it."""
    del value
