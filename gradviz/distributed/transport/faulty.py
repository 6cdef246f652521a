"""A transport on which things go wrong, by chance that a seed repeats; for tests.

It goes over any other transport, and whoever uses it cannot tell them apart but by what
gets lost.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from gradviz.backends.base import Array
from gradviz.distributed.messaging.future import Future
from gradviz.distributed.transport.base import (
    HEARTBEAT_SECONDS,
    Handler,
    OnPeerDown,
    Parcel,
    Transport,
)

#: Messages that run a user's function; they are delivered at most once, as every
#: transport promises.
_ONCE: Final = frozenset({"Call", "Fetch"})

#: Messages by which workers meet and part: faults leave them alone, unless a worker is
#: gone.
_SPARED: Final = frozenset({"Greet", "Leave"})

#: Round what goes over the inner transport, which must not take pings for its own.
_WRAPPED: Final = "faulty"


@dataclass(frozen=True)
class Faults:
    """Probabilities of faults of a message.

    Attributes:
        drop: It is lost without notice.
        drop_answer: Its answer is lost.
        duplicate: It arrives twice, unless it runs a user's function.
        delay: It takes up to `longest_delay_s`; later ones may overtake it.
        reorder: It waits until the next one of this worker has been sent.
        longest_delay_s: See `delay`; nothing waits longer for the next one, either.
        kinds: Only messages of these kinds; None for all.
        kill_at: Number of the worker's own message, from 1, at which it is gone.
    """

    drop: float = 0.0
    drop_answer: float = 0.0
    duplicate: float = 0.0
    delay: float = 0.0
    reorder: float = 0.0
    longest_delay_s: float = 0.5
    kinds: frozenset[str] | None = None
    kill_at: int | None = None


class _Fate(NamedTuple):
    """Fate of one message.

    Attributes:
        pauses: Pause before each time that it is sent.
        is_unheard: It is sent at once, and its answer is lost.
        is_held: It is sent after the next one.
        is_last: The worker is gone instead.
    """

    pauses: tuple[float, ...]
    is_unheard: bool = False
    is_held: bool = False
    is_last: bool = False


class FaultyTransport(Transport):
    """One worker's way to the others, not to be relied on.

    Args:
        inner: The way that its messages go.
        faults: Faults that happen; may be changed at any time.
        seed: The same seed, messages and schedule have the same faults.
        die: Action at `Faults.kill_at`; closes `inner`, if it is None.
        heartbeat_seconds: See Note [Heartbeats]; faults happen to them, too.

    Attributes:
        faults: As given.
        num_sent: Number of messages that faults might have happened to.
    """

    def __init__(
        self,
        inner: Transport,
        faults: Faults,
        seed: int,
        *,
        die: Callable[[], object] | None = None,
        heartbeat_seconds: float | None = HEARTBEAT_SECONDS,
    ) -> None:
        super().__init__(inner.rank, inner.world_size, inner.sync, heartbeat_seconds)
        self.faults = faults
        self.num_sent = 0
        self._inner = inner
        self._die = die or (lambda: inner.close(graceful=False))
        #: Guarded by `_mutex`, like what follows.
        self._random = random.Random(f"{seed} {inner.rank}")
        self._held: list[Callable[[], None]] = []
        self._is_unplugged = False

    def start(self, handler: Handler, on_peer_down: OnPeerDown) -> None:
        """Take requests from now on."""
        self._on_peer_down = on_peer_down

        def take(
            src: int, meta: dict[str, Any], arrays: Sequence[Array]
        ) -> Future[Parcel]:
            if self._is_cut_off():
                return Future(self.sync)  # which nobody will ever answer
            return self.answer(handler, src, meta[_WRAPPED], arrays)

        self._inner.start(take, self.lose)

    def unplug(self) -> None:
        """Stop all messages in both directions, without notice."""
        with self._mutex:
            self._is_unplugged = True

    def close(self, *, graceful: bool = True, timeout: float = 5.0) -> None:
        """Close the inner one."""
        self._inner.close(graceful=graceful, timeout=timeout)
        self.give_up("this worker has been shut down")

    def deliver(
        self,
        dst: int,
        meta: dict[str, Any],
        arrays: Sequence[Array],
        future: Future[Parcel],
    ) -> None:
        """Bring a request to a worker, if chance has it."""

        def send(*, is_heard: bool = True) -> None:
            if self._is_cut_off():
                return
            answer = self._inner.request(dst, {_WRAPPED: meta}, arrays)
            if is_heard:
                answer.add_done_callback(lambda: self._hear(answer, future))

        fate = self._fate(str(meta.get("type")))
        with self._mutex:
            held, self._held = self._held, []
            if fate.is_held:
                self._held.append(send)
        if fate.is_last:
            self._die()
            self.give_up("this worker is gone")
            return
        if fate.is_unheard:
            send(is_heard=False)
        if fate.is_held:
            self.timers.after(self.faults.longest_delay_s, self._let_go)
        for pause in fate.pauses:
            self._later(pause, send)
        for one in held:
            one()

    def _fate(self, kind: str) -> "_Fate":
        """Return the fate of a message of that kind."""
        if kind in _SPARED:
            return _Fate((0.0,))
        with self._mutex:
            self.num_sent += 1
            faults, chance = self.faults, self._random.random
            if self.num_sent == faults.kill_at:
                return _Fate((), is_last=True)
            if faults.kinds is not None and kind not in faults.kinds:
                return _Fate((0.0,))
            if chance() < faults.drop:
                return _Fate(())
            if chance() < faults.drop_answer:
                return _Fate((), is_unheard=True)
            if chance() < faults.reorder:
                return _Fate((), is_held=True)
            number = 2 if chance() < faults.duplicate and kind not in _ONCE else 1
            return _Fate(
                tuple(
                    chance() * faults.longest_delay_s
                    if chance() < faults.delay
                    else 0.0
                    for _ in range(number)
                )
            )

    def _later(self, pause: float, send: Callable[[], None]) -> None:
        if pause:
            self.timers.after(pause, send)
        else:
            send()

    def _let_go(self) -> None:
        with self._mutex:
            held, self._held = self._held, []
        for one in held:
            one()

    def _is_cut_off(self) -> bool:
        with self._mutex:
            return self._is_unplugged

    def _hear(self, answer: Future[Parcel], future: Future[Parcel]) -> None:
        if self._is_cut_off():
            return
        if answer.error is not None:
            future.set_error(answer.error)
        else:
            future.set_result(answer.value())
