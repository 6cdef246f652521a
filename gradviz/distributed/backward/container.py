"""The contexts of one worker, and which of them a thread is in."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from gradviz.distributed.backward.context import DistAutogradContext
from gradviz.distributed.messaging.ids import Ids, worker_of
from gradviz.engine.graph.sync import Sync

#: Number of ids that a worker remembers of contexts that are gone.
MAX_TOMBSTONES: Final = 10_000

#: The context that this thread is in, with the container that has it; None for none.
#: Context variables belong to a thread, and to each task of an event loop.
_CURRENT: Final[ContextVar["tuple[DistAutogradContainer, int] | None"]] = ContextVar(
    "gradviz.distributed.autograd_context", default=None
)


class DistAutogradContainer:
    """All contexts that one worker knows.

    Note [Tombstones]
    ~~~~~~~~~~~~~~~~~
    No order of messages is promised. So the message that ends a context may overtake a
    call that was made in it, and that call would create the context again, on a worker
    that nobody would ever tell to release it. So a worker remembers the last ids that
    it was told to release, known or not, and creates no context with such an id.

    Args:
        worker: The worker's rank.
        sync: The seam.

    Attributes:
        worker: As given.
        after_release: Called with each context that is gone, before others are told.

    Source: torch/csrc/distributed/autograd/context/container.h (D12).
    """

    def __init__(self, worker: int, sync: Sync) -> None:
        self.worker = worker
        self._sync = sync
        self._context_ids = Ids(worker)
        self._message_ids = Ids(worker)
        #: Guards what follows.
        self._mutex = sync.lock()
        self._contexts: dict[int, DistAutogradContext] = {}
        self._tombstones: OrderedDict[int, None] = OrderedDict()
        self.after_release: Callable[[DistAutogradContext], object] | None = None

    # --- making and finding -----------------------------------------------------

    def new_context(self) -> DistAutogradContext:
        """A new context, which the calling thread is in from now on.

        Raises:
            RuntimeError: The thread is in one already.
        """
        if self.current_id() is not None:
            raise RuntimeError("Already have an autograd context id for this thread.")
        context = DistAutogradContext(self._context_ids.next(), self._sync)
        with self._mutex:
            self._contexts[context.context_id] = context
        _CURRENT.set((self, context.context_id))
        return context

    def get_or_create_context(self, context_id: int) -> DistAutogradContext:
        """The context of that id, made if it is not here yet.

        Raises:
            RuntimeError: It is gone; see Note [Tombstones].
        """
        with self._mutex:
            found = self._contexts.get(context_id)
            if found is None:
                if context_id in self._tombstones or self._is_own(context_id):
                    raise RuntimeError(
                        f"autograd context {context_id} was released before a call "
                        f"that was made in it came to node {self.worker}"
                    )
                found = DistAutogradContext(context_id, self._sync)
                self._contexts[context_id] = found
            return found

    def _is_own(self, context_id: int) -> bool:
        """Return whether a context was made by this worker and not by a message."""
        return worker_of(context_id) == self.worker

    def retrieve_context(self, context_id: int) -> DistAutogradContext:
        """The context of that id.

        Raises:
            RuntimeError: There is none.
        """
        found = self.find_context(context_id)
        if found is None:
            raise RuntimeError(f"Could not find autograd context with id: {context_id}")
        return found

    def find_context(self, context_id: int) -> DistAutogradContext | None:
        """The context of that id, None if there is none."""
        with self._mutex:
            return self._contexts.get(context_id)

    def contexts(self) -> list[DistAutogradContext]:
        """Return all contexts here."""
        with self._mutex:
            return [*self._contexts.values()]

    def __len__(self) -> int:
        with self._mutex:
            return len(self._contexts)

    def new_message_id(self) -> int:
        """A number for a message that has tensors of a graph."""
        return self._message_ids.next()

    # --- releasing ----------------------------------------------------------------

    def release_context_if_present(self, context_id: int) -> None:
        """Forget a context, here and wherever it was sent.

        Of one that is not here, only remember that it is gone.

        Workers that know each other tell each other: so it must end at the second time.
        """
        with self._mutex:
            context = self._contexts.pop(context_id, None)
            self._tombstones[context_id] = None
            while len(self._tombstones) > MAX_TOMBSTONES:
                self._tombstones.popitem(last=False)
        if _CURRENT.get() == (self, context_id):
            _CURRENT.set(None)
        if context is None:
            return
        context.release()
        if self.after_release is not None:
            self.after_release(context)

    # --- the context of a thread --------------------------------------------------

    def current_id(self) -> int | None:
        """The id of the context that the calling thread is in."""
        current = _CURRENT.get()
        return current[1] if current is not None and current[0] is self else None

    def current_context(self) -> DistAutogradContext:
        """The context that the calling thread is in.

        Raises:
            RuntimeError: It is in none; or that one is gone.
        """
        context_id = self.current_id()
        if context_id is None:
            raise RuntimeError(
                "Current thread doesn't have a valid autograd context. Please wrap "
                "your code using: `with gradviz.distributed.autograd.context() as "
                "context_id` to generate a valid context"
            )
        return self.retrieve_context(context_id)

    @contextmanager
    def inside(self, context_id: int | None) -> Iterator[None]:
        """Have the calling thread be in a context; in none, if it is None."""
        token = _CURRENT.set(None if context_id is None else (self, context_id))
        try:
            yield
        finally:
            _CURRENT.reset(token)
