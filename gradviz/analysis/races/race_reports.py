"""Races: reports on errors in the order of work on streams.

`happens_before` finds them.
"""

import msgspec


class NodeOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """A node, as a user knows it; `location` is where the forward pass made it."""

    name: str = ""
    location: str = ""
    module: str = ""


class StreamOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """A stream, as a user knows it.

    Attributes:
        name: The expression that has it where it is used, such as ``self.side``.
        location: ``path:line`` of the user's program that made it.
    """

    name: str = ""
    location: str = ""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Work on a stream that reads or writes memory, or the program itself.

    Attributes:
        action: Kind of work: the name of a kernel, ``allocation``, ``free`` or
            ``host``.
        stream: Stream that it was put on; the thread if it is the program's.
        writes: True if it writes.
        layout: Bytes that it uses, as ``offset;shape;strides;itemsize``.
        location: ``path:line`` of the user's program that launched it, if known.
        task: The backward pass it belongs to, -1 for none.
        node: The node that ran, -1 outside of a backward.
        index: Its place in the execution order of its pass; None where that is not
            known, as in a check of a program that still runs.
        origin: Origin of that node, as far as it is known.
        backward: ``path:line`` of the user's program that called that backward pass.
        stream_origin: Origin of the stream, as far as it is known.
        tensor: The expression that has the tensor in the program, if it is known.
    """

    action: str
    stream: str
    writes: bool
    layout: str
    location: str = ""
    task: int = -1
    node: int = -1
    index: int | None = None
    origin: NodeOrigin = NodeOrigin()
    backward: str = ""
    stream_origin: StreamOrigin = StreamOrigin()
    tensor: str = ""

    def __str__(self) -> str:
        does = {"allocation": "gets it", "free": "gives it back"}.get(
            self.action, "writes it" if self.writes else "reads it"
        )
        where = f", at {self.location}" if self.location else ""
        who = f"{self.action} on {self.stream}{self._stream()}"
        if self.is_hosts:
            who = f"the program, on {self.stream},"
        return f"{who} {does}{self._node()}{where}"

    @property
    def is_hosts(self) -> bool:
        """True if the program itself has read or written, and no device."""
        return self.action == "host"

    def _node(self) -> str:
        if self.node < 0:
            return ""
        made = f", made at {self.origin.location}" if self.origin.location else ""
        module = f" of {self.origin.module}" if self.origin.module else ""
        name = self.origin.name or "a node"
        if self.index is not None:
            name = f"#{self.index} {self.origin.name or 'of its pass'}"
        called = f", backward called at {self.backward}" if self.backward else ""
        return f" in {name}{module} (id {self.node} of task {self.task}{made}{called})"

    def _stream(self) -> str:
        origin = self.stream_origin
        made = f"made at {origin.location}" if origin.location else ""
        told = ", ".join(filter(None, (origin.name, made)))
        return f" ({told})" if told else ""


class Race(msgspec.Struct, frozen=True, kw_only=True):
    """Two accesses to the same bytes, at least one a write, that nothing orders.

    Attributes:
        memory: The allocation.
        first: The one that was launched first.
        second: The other one.
        remedy: The sync that is missing.
    """

    memory: int
    first: Access
    second: Access
    remedy: str

    def __str__(self) -> str:
        return (
            f"memory {self.memory} is used {self._by()} in no order:\n"
            f"  first:   {self.first}\n"
            f"  then:    {self.second}\n"
            f"  missing: {self.remedy}"
        )

    def _by(self) -> str:
        if self.first.is_hosts or self.second.is_hosts:
            return "by a stream and by the program"
        return "by two streams"


class NeedlessWait(msgspec.Struct, frozen=True, kw_only=True):
    """A wait of a stream for work that it was already ordered after.

    Attributes:
        stream: The one that waits.
        producer: The one it waits for.
        location: ``path:line`` of the user's program that asked for it, if known.
        task: The backward pass in which the engine asked for it, -1 for a program.
        node: The node that waits, -1 for none.
    """

    stream: str
    producer: str
    location: str = ""
    task: int = -1
    node: int = -1

    def __str__(self) -> str:
        where = f" at {self.location}" if self.location else ""
        return (
            f"{self.stream} need not wait for {self.producer}{where}: it does already"
        )


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """All findings.

    Attributes:
        races: Each once, in the order in which they were found, and how often.
        needless_waits: Each once, in that order, and how often.
        num_kernels: Number of kernels checked.
        num_unlisted: Races of other places than these, which are too many to list.
        num_unseen: Number of events not checked, to save time.
    """

    races: tuple[tuple[Race, int], ...] = ()
    needless_waits: tuple[tuple[NeedlessWait, int], ...] = ()
    num_kernels: int = 0
    num_unlisted: int = 0
    num_unseen: int = 0

    def __str__(self) -> str:
        lines = []
        if self.races:
            lines.append(
                f"races between streams: {len(self.races) + self.num_unlisted}"
            )
            for number, (race, times) in enumerate(self.races, 1):
                often = f" ({times} times)" if times > 1 else ""
                lines.append(f"{number}. {race}{often}")
        users = [(wait, times) for wait, times in self.needless_waits if wait.task < 0]
        if users:
            lines.append(f"waits that were not needed: {len(users)}")
            lines += [f"- {wait} ({times} times)" for wait, times in users]
        return "\n".join(lines)


def missing_sync(first: Access, second: Access) -> str:
    """Return user code that orders the second access after the first."""
    early, late = first.stream, second.stream
    if first.is_hosts:
        return (
            f"the thread that launches this must be told that {early} is done with the "
            f"memory: by a queue, an event, a lock or a join"
        )
    if second.is_hosts:
        stream, _ = _variables(first, first)
        return (
            f"the program must wait for {early} before this: {stream}.synchronize(), "
            f"or that of an event recorded after {first.action}"
        )
    one, other = _variables(first, second)
    if second.action == "free":
        return (
            f"{late} may give the memory to others while {early} still uses it: "
            f"call {first.tensor or 'tensor'}.record_stream({one}) where {early} uses "
            f"it, or have {late} wait for {early} before the tensor goes"
        )
    return f"{late} must wait for {early} before this: {other}.wait_stream({one})"


def _variables(first: Access, second: Access) -> tuple[str, str]:
    """Return a program's names for two streams, or ``s1`` and ``s2``."""
    one, other = map(_variable, (first, second))
    if one == other and first.stream != second.stream:
        return "earlier", "later"
    return one, other


def _variable(access: Access) -> str:
    device, _, number = access.stream.rpartition("/")
    if number == "0":
        return access.stream_origin.name or f'gv.default_stream("{device}")'
    return access.stream_origin.name or f"s{number}"
