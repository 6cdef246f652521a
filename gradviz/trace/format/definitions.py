"""The JSON in a trace file: everything that is not an event.

One structure for each type of frame that holds JSON. A reader ignores fields that it
does not know, so later versions may add some; it never learns a type from the file.

Numbers that an event or another definition refers to are written beside what they
stand for, never counted, so that a lost frame shifts nothing.
"""

import operator
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, TypeVar

import msgspec

from gradviz._version import __version__
from gradviz.trace.format.clock import ClockPair
from gradviz.trace.format.frames import MAX_UNPACKED, DamageError
from gradviz.trace.format.model import Header, Integer
from gradviz.trace.format.scope import Scope
from gradviz.trace.format.strings import writable

#: Version of the format that this module writes: see docs/trace-format.md.
VERSION: Final = (1, 2)

#: Definitions whose JSON is longer are written as several frames.
_MAX_FRAME: Final = 1 << 19

#: The scope of a recording that keeps everything.
_ALL: Final = Scope()

Index = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]

#: Environment variable with what the processes of one run have in common; whoever
#: starts them draws it.
RUN_ID: Final = "GRADVIZ_RUN_ID"

_MAX_RUN_ID: Final = 100

#: File in which Linux says what `Header.boot_id` is.
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class VersionOnly(msgspec.Struct, frozen=True):
    """The version in a header, read before anything else is trusted."""

    version: tuple[int, int]


class NodeRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A node, written as an array.

    Attributes:
        id: Its id.
        name: Index into the strings.
        sequence_nr: -1 for 2**64 - 1.
        topological_nr: Length of the longest path to a leaf.
        device: Index into the strings.
        edges: Node id (-1: none) and input_nr by turns.
        inputs: An index into the inputs each, -1 for none.
        module: Index into the strings, -1 outside a model; older traces have none.
        parameter: Index into the strings: what the leaf of an AccumulateGrad is called,
            a line for each of its names; -1 if it has none, or in older traces.
        location: Index into the strings: the line that made it, where nobody reported
            when (`NodeCreated` has both); -1 if it is not known, or in older traces.
    """

    id: Integer
    name: Index
    sequence_nr: Integer
    topological_nr: Integer
    device: Index
    edges: tuple[Integer, ...]
    inputs: tuple[Integer, ...]
    module: Integer = -1
    parameter: Integer = -1
    location: Integer = -1


class InputRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Metadata of a node's input, as an array; `dtype` and `device` are strings."""

    index: Index
    shape: tuple[Integer, ...]
    dtype: Index
    device: Index


class QueueRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A ready queue, written as an array."""

    id: Integer
    name: str
    device: Integer


class ParameterRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A parameter of a model, written as an array.

    Attributes:
        names: Index into the strings: its names in this model, a line for each.
        shape: None where it has none yet.
        dtype: Index into the strings.
        device: Index into the strings.
        requires_grad: True if it required a gradient when its model was first seen.
    """

    names: Integer
    shape: tuple[Integer, ...] | None
    dtype: Integer
    device: Integer
    requires_grad: bool


class ModelRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A model and its parameters, written as an array.

    Attributes:
        name: Index into the strings.
        num_parameters: Number of its parameters; more than are listed if a recorder cut
            them.
        parameters: The parameters, in the order of the model.
    """

    name: Integer
    num_parameters: Integer
    parameters: tuple[ParameterRow, ...]


class ProcessRow(msgspec.Struct, frozen=True, array_like=True):
    """A process of a merged trace, written as an array; see `ProcessDefinition`."""

    pid: Integer
    rank: Integer
    host: str
    argv: list[str]
    threads: list[Index]
    clock_uncertainty_ns: Integer = 0


class Definitions(msgspec.Struct, frozen=True, omit_defaults=True):
    """Definitions that events of this and later frames refer to.

    Attributes:
        strings: Index and text.
        threads: Number and name.
        queues: Ready queues.
        inputs: Expected inputs of nodes.
        nodes: Nodes; the last definition of a node counts.
        models: Models whose parameters a pass may reach; the last definition counts.
        processes: Processes of a merged trace.
        problems: Messages on missing or doubtful parts.
    """

    strings: list[tuple[Index, str]] = []
    threads: list[tuple[Index, str]] = []
    queues: list[QueueRow] = []
    inputs: list[InputRow] = []
    nodes: list[NodeRow] = []
    models: list[ModelRow] = []
    processes: list[ProcessRow] = []
    problems: list[str] = []


class Lost(msgspec.Struct, frozen=True):
    """Events of a thread that the recorder dropped since the thread's last frame."""

    thread: Index
    events: Index


class Closed(msgspec.Struct, frozen=True):
    """The last frame: how much the recorder wrote and dropped in all.

    Attributes:
        events: Events written.
        nodes: Definitions of nodes written.
        dropped: Events dropped.
        overwritten: Events before these, which a ring did not keep.
    """

    events: Integer
    nodes: Integer
    dropped: Integer
    overwritten: Integer = 0


class Stamped(msgspec.Struct, frozen=True):
    """The field that numbers a frame of JSON; older traces have none."""

    stamp: tuple[Index, Index] | None = None


JsonFrame = TypeVar("JsonFrame", bound=msgspec.Struct)


def encode_json(value: msgspec.Struct) -> bytes:
    """The JSON of one of the structures above."""
    # The hook: NumPy's integers, which a user may well put into a shape or an edge.
    return msgspec.json.encode(value, enc_hook=operator.index)


def decode_json(payload: bytes | memoryview, kind: type[JsonFrame]) -> JsonFrame:
    """The structure that a payload holds.

    Raises:
        DamageError: The payload is no JSON, nests too deep, or says something else.
    """
    try:
        return msgspec.json.decode(payload, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise DamageError(f"its JSON cannot be read ({error})") from None


def encode_definitions(definitions: Definitions) -> Iterator[bytes]:
    """The JSON of `definitions`, in as many pieces as it takes; none if it is empty."""
    if definitions == Definitions():
        return
    whole = encode_json(definitions)
    if len(whole) <= _MAX_FRAME:
        yield whole
        return
    for field in Definitions.__struct_fields__:
        yield from _pieces(field, getattr(definitions, field))


def describe_process(
    clock: ClockPair, recording: int = -1, scope: Scope = _ALL
) -> Header:
    """The header of a recording that begins now in this process."""
    return Header(
        version=VERSION,
        recording=recording,
        gradviz=__version__,
        python=platform.python_version(),
        packages=_versions(("numpy", "cupy", "torch")),
        platform=writable(f"{platform.system()} {platform.machine()}"),
        host=writable(platform.node()),
        boot_id=_boot_id(),
        pid=os.getpid(),
        rank=_rank(os.environ.get("RANK", "")),
        run_id=writable(os.environ.get(RUN_ID, ""))[:_MAX_RUN_ID],
        argv=tuple(map(writable, sys.argv)),
        clock=clock,
        scope=scope,
    )


def _boot_id() -> str:
    """Return Linux's boot id; containers on one machine have the same."""
    try:
        return BOOT_ID.read_text(encoding="utf-8").strip()[:_MAX_RUN_ID]
    except (OSError, ValueError):
        return ""


def _pieces(field: str, rows: list[object]) -> Iterator[bytes]:
    if not rows:
        return
    piece = encode_json(Definitions(**{field: rows}))  # type: ignore[arg-type]
    if len(piece) <= _MAX_FRAME or (len(rows) == 1 and len(piece) <= MAX_UNPACKED):
        yield piece
    elif len(rows) > 1:
        middle = len(rows) // 2
        yield from _pieces(field, rows[:middle])
        yield from _pieces(field, rows[middle:])
    # A single definition larger than any reader accepts is left out.


def _versions(names: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that are loaded."""
    loaded = (name for name in names if name in sys.modules)
    return {name: str(getattr(sys.modules[name], "__version__", "")) for name in loaded}


def _rank(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else -1
