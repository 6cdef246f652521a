"""Notices that must arrive: repeated until they are confirmed."""

from typing import Final

from gradviz.distributed.messaging.failures import PeerDownError
from gradviz.distributed.messaging.future import Future
from gradviz.distributed.messaging.messages import Message, as_meta
from gradviz.distributed.transport.base import Transport

#: Number of times that a worker is told, if it does not answer. Source:
#: torch/csrc/distributed/autograd/context/container.cpp.
MAX_RETRIES: Final = 20

#: Time that an answer may take; there is nothing to compute.
ANSWER_SECONDS: Final = 5.0

_FIRST_PAUSE_SECONDS: Final = 0.05
_LAST_PAUSE_SECONDS: Final = 5.0


def tell_until_understood(
    transport: Transport, peer: int, message: Message
) -> Future[None]:
    """Send a worker a notice until it confirms; do not wait.

    It may be told twice, for the answer may be what was lost: so what the message asks
    for must be the same if it is done twice.

    Returns:
        Done when it has answered, is down, or was told `MAX_RETRIES` times.
    """
    heard: Future[None] = Future(transport.sync)
    _tell(transport, peer, message, 0, heard)
    return heard


def _tell(
    transport: Transport, peer: int, message: Message, attempt: int, heard: Future[None]
) -> None:
    told = transport.request(peer, as_meta(message), (), ANSWER_SECONDS)

    def check() -> None:
        is_over = told.error is None or isinstance(told.error, PeerDownError)
        if is_over or attempt == MAX_RETRIES:
            heard.set_result(None)
            return
        pause = min(_FIRST_PAUSE_SECONDS * 2**attempt, _LAST_PAUSE_SECONDS)
        transport.timers.after(
            pause, lambda: _tell(transport, peer, message, attempt + 1, heard)
        )

    told.add_done_callback(check)
