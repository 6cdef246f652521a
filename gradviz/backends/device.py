"""Names of places where arrays live: ``cpu``, ``sim:0``, ``cuda:1``."""

import re
from typing import Final

_NAME: Final = re.compile(r"([a-z][a-z0-9_]*)(?::(\d+))?")


class Device:
    """A kind of device and the index of one of them.

    Devices are interned: equal devices are the same object, so that the engine
    compares them with ``is`` and uses them as keys at no cost.

    Attributes:
        type: ``"cpu"``, ``"sim"``, ``"cuda"`` or the name of another backend.
        index: Which one of its kind, from 0; -1 for the CPU, which has no index.
        runs_on_caller: Whether its backward work runs on the thread that called
            ``backward`` (CPU, meta) instead of on a device thread.
    """

    __slots__ = ("index", "runs_on_caller", "type")

    type: str
    index: int
    runs_on_caller: bool

    _known: "dict[tuple[str, int], Device]" = {}  # noqa: RUF012 - filled by __new__

    def __new__(  # noqa: PYI034 - interned: there are no subclasses
        cls,
        type: str,  # noqa: A002 - PyTorch's name
        index: int = 0,
    ) -> "Device":
        """The one device of that type and index."""
        runs_on_caller = type in CALLER_TYPES
        key = (type, -1 if runs_on_caller else index)
        known = cls._known.get(key)
        if known is None:
            known = super().__new__(cls)
            known.type, known.index = key
            known.runs_on_caller = runs_on_caller
            # setdefault: of two threads that race, both get the first one's object.
            known = cls._known.setdefault(key, known)
        return known

    def __repr__(self) -> str:
        return f"device({str(self)!r})"

    def __str__(self) -> str:
        return self.type if self.index < 0 else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[object, tuple[str, int]]:
        return Device, (self.type, max(self.index, 0))


#: Types whose backward work the caller's thread does. PyTorch: CPU, Meta, Lazy.
#: Source: torch/csrc/autograd/engine.cpp, should_run_in_cpu_ready_queue (L6).
CALLER_TYPES: Final = frozenset({"cpu", "meta"})

CPU: Final = Device("cpu")


def parse_device(name: "str | Device") -> Device:
    """The device of a name such as ``"cpu"`` or ``"sim:1"``; no index means 0.

    Raises:
        ValueError: The text is no device name. Whether such a device exists is for
            its backend to say.
    """
    if isinstance(name, Device):
        return name
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(
            f"invalid device {name!r}: expected a backend's name and perhaps an "
            f"index, such as 'cpu', 'sim:0' or 'cuda:1'"
        )
    return Device(match[1], int(match[2] or 0))
