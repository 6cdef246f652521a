"""Messages between ``gradviz attach`` and a program in standby: lines of JSON."""

from typing import Annotated, Final, TypeVar

import msgspec

from gradviz.errors import UserError

#: So long may a message be, with the line break that ends it.
LONGEST_MESSAGE: Final = 64 * 1024


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request of ``gradviz attach``.

    Attributes:
        path: The trace to write, absolute.
        force: Replace it if it exists.
        seconds: Record for so long; None for no limit.
        steps: Record so many whole steps; None for no limit.
    """

    path: str
    force: bool = False
    seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    steps: Annotated[int, msgspec.Meta(ge=1)] | None = None


class StandbyAnswer(msgspec.Struct, frozen=True):
    """The answer of the program: one as the recording begins, one as it has ended.

    Attributes:
        state: ``recording``, ``done`` or ``refused``.
        reason: Reason for a refusal, or what is missing in the trace.
        tasks: Passes in the trace.
        nodes: Nodes in it.
        events: Events in it.
        dropped: Events that could not be kept.
    """

    state: str
    reason: str = ""
    tasks: int = 0
    nodes: int = 0
    events: int = 0
    dropped: int = 0


#: Names of messages in errors.
_NAMES: Final = {Request: "request", StandbyAnswer: "answer"}

Message = TypeVar("Message", Request, StandbyAnswer)


def encoded(message: Request | StandbyAnswer) -> bytes:
    """Return the line of a message."""
    return msgspec.json.encode(message) + b"\n"


def decoded(line: bytes, kind: type[Message]) -> Message:
    """Return the message of a line.

    Raises:
        UserError: It is none, cut off, or longer than any.
    """
    try:
        if line.endswith(b"\n"):
            return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UserError(f"the message is no {_NAMES[kind]}: {error}") from None
    raise UserError(f"the {_NAMES[kind]} is too long, or cut off")
