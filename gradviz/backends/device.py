"""Names of places where arrays live: ``cpu``, ``sim:0``, ``cuda:1``."""

import re
from contextvars import ContextVar
from types import TracebackType
from typing import Final, Self

from gradviz.modes import Mode

_NAME: Final = re.compile(r"([a-z][a-z0-9_]*)(?::(0|[1-9]\d*))?")

#: The device given to `set_default_device`, then the devices whose ``with`` blocks the
#: calling context is in, the innermost last. Replaced, never mutated.
_CHOSEN: Final[Mode[tuple["Device | None", ...]]] = Mode(
    "chosen devices", default=(None,)
)

#: The device of a type that its name without an index means, where that is not 0.
_CURRENT: Final[ContextVar[dict[str, int]]] = ContextVar("devices", default={})  # noqa: B039


class Device:
    """A kind of device and the index of one of them.

    As a context manager it says where tensors are made for which nothing else is said:

    >>> with Device("sim:1"):
    ...     x = gv.zeros(3)

    Devices are interned: equal devices are the same object, so that the engine
    compares them with ``is`` and uses them as keys at no cost.

    Args:
        type: A backend's name, perhaps with an index: ``"cpu"``, ``"sim"``,
            ``"cuda:1"``; or a device.
        index: Index among the devices of its kind, from 0, if the name does not say.
            The current one of the calling context if neither does.

    Attributes:
        type: ``"cpu"``, ``"sim"``, ``"cuda"`` or the name of another backend.
        number: Index among the devices of its kind, from 0; -1 for the CPU, which has
            no index.
        runs_on_caller: True if its backward work runs on the thread that called
            ``backward`` (CPU, meta) instead of on a device thread.

    Raises:
        RuntimeError: The text is not a device name. Whether such a device exists is for
            its backend to say, once it is used.
        TypeError: The name is not a string.

    Source: torch.device. Differs: a name without an index becomes the current device
    when the object is made, not each time it is used.
    """

    __slots__ = ("number", "runs_on_caller", "type")

    type: str
    number: int
    runs_on_caller: bool

    _known: "dict[tuple[str, int], Device]" = {}  # noqa: RUF012 - filled by __new__

    def __new__(  # noqa: PYI034 - interned: there are no subclasses
        cls,
        type: "str | Device",  # noqa: A002 - PyTorch's name
        index: int | None = None,
    ) -> "Device":
        """The one device of that type and index."""
        if isinstance(type, Device):
            return type
        type, number = _parsed(type, index)  # noqa: A001 - PyTorch's name
        runs_on_caller = type in CALLER_TYPES
        key = (type, -1 if runs_on_caller else number)
        known = cls._known.get(key)
        if known is None:
            known = super().__new__(cls)
            known.type, known.number = key
            known.runs_on_caller = runs_on_caller
            # setdefault: of two threads that race, both get the first one's object.
            known = cls._known.setdefault(key, known)
        return known

    @property
    def index(self) -> int | None:
        """Index among its kind; None for the CPU."""
        return None if self.runs_on_caller else self.number

    def __enter__(self) -> Self:
        """Make tensors here until the block is left, if nothing else is said."""
        _CHOSEN.set((*_CHOSEN.get(), self))
        return self

    def __exit__(
        self,
        kind: object,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _CHOSEN.set(_CHOSEN.get()[:-1])

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[object, tuple[str, int | None]]:
        return Device, (self.type, self.index)


#: Types whose backward work the caller's thread does. PyTorch: CPU, Meta, Lazy.
#: Source: torch/csrc/autograd/engine.cpp, should_run_in_cpu_ready_queue (L6).
CALLER_TYPES: Final = frozenset({"cpu", "meta"})


def get_default_device() -> Device:
    """Return the device of new tensors for which the program names none.

    Source: torch.get_default_device.
    """
    return chosen_device() or CPU


def chosen_device() -> Device | None:
    """Return the default device, None if the program has not chosen any."""
    return _CHOSEN.get()[-1]


def set_default_device(device: str | Device | None) -> None:
    """Say where tensors are made for which nothing else is said; None for the CPU.

    It holds for the calling context, outside of ``with device:`` blocks.
    """
    chosen = None if device is None else Device(device)
    _CHOSEN.set((chosen, *_CHOSEN.get()[1:]))


def is_named(type: str) -> bool:  # noqa: A002 - as Device has it
    """Return whether any code in this process has named a device of a type."""
    return any(kind == type for kind, _ in tuple(Device._known))


def current_index(type: str) -> int:  # noqa: A002 - as Device has it
    """Return the index that a device type without one stands for here."""
    return _CURRENT.get().get(type, 0)


def set_current_index(type: str, index: int) -> None:  # noqa: A002 - as Device has it
    """Let a type's name without an index mean that device, in the calling context.

    Differs: PyTorch keeps it for the thread; a coroutine here has its own.
    """
    _CURRENT.set({**_CURRENT.get(), type: index})


def _parsed(name: object, index: object) -> tuple[str, int]:
    """The type and the number in a name and an index."""
    if not isinstance(name, str):
        raise TypeError(
            f"device(): argument 'type' must be a str or a device, not "
            f"{type(name).__name__}: say 'cpu', 'sim:0' or 'cuda:1'"
        )
    match = _NAME.fullmatch(name)
    if match is None:
        raise RuntimeError(
            f"Invalid device string: {name!r}: expected a backend's name and perhaps "
            f"an index, such as 'cpu', 'sim:0' or 'cuda:1'"
        )
    if index is None:
        return match[1], current_index(match[1]) if match[2] is None else int(match[2])
    if match[2] is not None:
        raise RuntimeError(
            f"type (string) must not include an index because index was passed "
            f"explicitly: {name}"
        )
    if not isinstance(index, int):
        raise TypeError(
            f"device(): argument 'index' must be an int, not {type(index).__name__}"
        )
    if index < 0:
        raise RuntimeError(f"Device index must not be negative, got {index}")
    return match[1], index


CPU: Final = Device("cpu")  # here, because making it needs what is above
