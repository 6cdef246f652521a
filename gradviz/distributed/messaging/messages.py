"""Messages between workers: frozen values, which JSON can carry.

A message goes beside the arrays that it has; Note [Packed values] says how it names
them.
"""

from typing import Any, TypeAlias

import msgspec

from gradviz.distributed.messaging.values import Packed


class Message(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """Base of all messages."""


class AutogradMetadata(msgspec.Struct, frozen=True):
    """Metadata that makes a message part of a graph (D12).

    Attributes:
        context_id: The context in which it was sent.
        message_id: The send and the receive have this number.
        grad_enabled: The sender's grad mode. If it is off, neither this message nor the
            answer to it is recorded, on either side.
    """

    context_id: int
    message_id: int
    grad_enabled: bool = True


class Greet(Message, frozen=True):
    """First word to a worker; answered with `Greeting`."""


class Greeting(Message, frozen=True):
    """Answer to `Greet`: the name of the worker that is there, too."""

    name: str


class AskClock(Message, frozen=True):
    """Request for a clock reading. Answered at once, with `ClockReading`."""


class ClockReading(Message, frozen=True):
    """This, in nanoseconds: the clock of the events of a trace."""

    now_ns: int


class Leave(Message, frozen=True):
    """I am done; answered when all workers are. Sent to the first that lives."""


class Call(Message, frozen=True):
    """Run a function; answered with `Result`.

    Attributes:
        function: Its registered name.
        arguments: A tuple and a dict, in a tuple.
        autograd: None outside of all contexts.
        rref: Keep what it returns under this id, and do not send it.
    """

    function: str
    arguments: Packed
    autograd: AutogradMetadata | None = None
    rref: int | None = None


class Fetch(Message, frozen=True):
    """Request for a value kept under an id; answered with `Result`."""

    rref: int
    autograd: AutogradMetadata | None = None


class Hold(Message, frozen=True):
    """Notice that another worker has a reference to a value kept under an id."""

    rref: int
    fork: int


class Drop(Message, frozen=True):
    """Someone no longer has one."""

    rref: int
    fork: int


class Result(Message, frozen=True):
    """Result of a function.

    Attributes:
        value: Its form.
        autograd: None if nothing in it needs a gradient.
    """

    value: Packed
    autograd: AutogradMetadata | None = None


class PropagateGradients(Message, frozen=True):
    """Go on with a backward pass, with these gradients, which are the arrays.

    Attributes:
        context_id: Id of the context.
        message_id: Id of the message whose gradients they are.
        pass_id: Id of the pass: its root's worker and the number of passes that this
            one has begun before.
        retain_graph: Keep what the graph has saved.
    """

    context_id: int
    message_id: int
    pass_id: int
    retain_graph: bool


class AbortPass(Message, frozen=True):
    """A backward pass has failed: wait for nothing of it any more."""

    context_id: int
    pass_id: int
    reason: str


class ReleaseContext(Message, frozen=True):
    """Notice to release a context, and to notify its other receivers."""

    context_id: int


class JoinContext(Message, frozen=True):
    """Request for a notice of a context's end. Sent to the context's maker."""

    context_id: int


class AskUnfed(Message, frozen=True):
    """Request for the gradients a pass still waits for. Answered with `Unfed`."""

    context_id: int
    pass_id: int


class Unfed(Message, frozen=True):
    """Gradients and answers that a worker's part of a pass waits for; see `Waits`.

    Attributes:
        unfed: For each message sent whose gradients have not arrived, its number and a
            description.
        unanswered: As in `Waits`, like what follows.
    """

    unfed: tuple[tuple[int, str], ...] = ()
    unanswered: tuple[int, ...] = ()
    awaited: tuple[int, ...] = ()
    has_begun: bool = True
    has_ended: bool = False


class Done(Message, frozen=True):
    """Understood, and done."""


AnyMessage: TypeAlias = (
    Greet
    | Greeting
    | AskClock
    | ClockReading
    | Leave
    | Call
    | Fetch
    | Hold
    | Drop
    | Result
    | PropagateGradients
    | AbortPass
    | ReleaseContext
    | JoinContext
    | AskUnfed
    | Unfed
    | Done
)


class _Envelope(msgspec.Struct, frozen=True):
    """A union in a class: of a bare one msgspec would look at the parts each time."""

    message: AnyMessage


# It inspects a class once, on first use; threads that do that at the same time crash
# the process. So it is done here.
msgspec.convert({"message": {"type": "Done"}}, _Envelope)


def as_meta(message: Message) -> dict[str, Any]:
    """A message as a transport takes it."""
    meta: dict[str, Any] = msgspec.to_builtins(message)
    return meta


def from_meta(meta: object) -> AnyMessage:
    """The message that came.

    Raises:
        ValueError: It is none.
    """
    try:
        return msgspec.convert({"message": meta}, _Envelope).message
    except msgspec.ValidationError as error:
        raise ValueError(f"not a message: {error}") from None
