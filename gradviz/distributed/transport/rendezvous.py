"""The place where the workers of a program on one machine find each other."""

import contextlib
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, Self

from gradviz.distributed.messaging.ids import MAX_WORKER
from gradviz.distributed.transport.handshake import Address
from gradviz.errors import UserError

#: The variables of PyTorch's launcher; traces are named by the first.
_RANK: Final = "RANK"
_WORLD_SIZE: Final = "WORLD_SIZE"

_PLACE: Final = "GRADVIZ_WORKERS_AT"
_KEY: Final = "GRADVIZ_WORKERS_KEY"
_PARENT: Final = "GRADVIZ_WORKERS_PARENT"

_MIN_KEY_BYTES: Final = 16

_LAST_PORT: Final = 65535


class Rendezvous(NamedTuple):
    """Facts that all workers of a program share.

    Attributes:
        world_size: Number of workers.
        place: A folder, for Unix sockets, or ``127.0.0.1:PORT``, the port of worker 0;
            the others have those that follow.
        key: Secret without which a peer is not let in.
        parent: The process that started them and learns how they end; None without
            one.
    """

    world_size: int
    place: str
    key: bytes
    parent: int | None = None

    @classmethod
    def made_at(cls, place: str, world_size: int) -> Self:
        """One with a new key, of workers that this process starts."""
        return cls(world_size, place, secrets.token_bytes(32), os.getpid())

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> tuple[int, Self] | None:
        """The rank and the rendezvous of this process; None if it is no worker.

        Raises:
            UserError: The variables say something that cannot be.
        """
        if _PLACE not in environment:
            return None
        world_size = _number(environment, _WORLD_SIZE, 1, MAX_WORKER + 1)
        rank = _number(environment, _RANK, 0, world_size - 1)
        place = environment[_PLACE]
        port = re.fullmatch(r"127\.0\.0\.1:([0-9]{1,5})", place)
        if port and int(port[1]) + world_size - 1 > _LAST_PORT:
            raise UserError(
                f"{_PLACE}={place}: there are no {world_size} ports from there on"
            )
        if not port and not Path(place).is_dir():
            raise UserError(
                f"{_PLACE}={place}: expected a folder that exists, or 127.0.0.1:PORT"
            )
        try:
            key = bytes.fromhex(environment.get(_KEY, ""))
        except ValueError:
            key = b""
        if len(key) < _MIN_KEY_BYTES:
            raise UserError(
                f"{_KEY} is no key: expected {2 * _MIN_KEY_BYTES} hexadecimal digits "
                f"or more, the same for all workers; 'openssl rand -hex 32' makes one"
            )
        parent = os.getppid()
        is_ours = environment.get(_PARENT) == str(parent)
        return rank, cls(world_size, place, key, parent if is_ours else None)

    def variables(self, rank: int) -> dict[str, str]:
        """Return the environment variables of a worker."""
        return {
            _RANK: str(rank),
            _WORLD_SIZE: str(self.world_size),
            _PLACE: self.place,
            _KEY: self.key.hex(),
            _PARENT: "" if self.parent is None else str(self.parent),
        }

    def address(self, rank: int) -> Address:
        """Return the address of a worker."""
        host, _, port = self.place.rpartition(":")
        if host == "127.0.0.1":
            return host, int(port) + rank
        return str(Path(self.place, f"{rank}"))

    def report_exit(self, rank: int, reason: str) -> None:
        """Leave the reason why a worker's process ended, for those that wait."""
        if self._note(rank).parent.is_dir():
            self._note(rank).write_text(reason)

    def exit_reason(self, rank: int) -> str | None:
        """Return the reason why a worker will never come; None if it may."""
        try:
            return self._note(rank).read_text() or None
        except OSError:
            return None

    def tell_error(self, rank: int, text: str) -> None:
        """Leave a worker's error for its parent process."""
        with contextlib.suppress(OSError):  # nobody is there any more to be told
            self._error(rank).write_text(text, errors="backslashreplace")

    def error(self, rank: int) -> str:
        """Error that a worker raised, with its traceback; empty if none is known."""
        try:
            return self._error(rank).read_text(errors="replace")
        except OSError:
            return ""

    def is_abandoned(self) -> bool:
        """Return whether the process that started this one is gone."""
        return self.parent is not None and os.getppid() != self.parent

    def _note(self, rank: int) -> Path:
        return Path(self.place, f"{rank}.ended")

    def _error(self, rank: int) -> Path:
        return Path(self.place, f"{rank}.error")


def _number(environment: Mapping[str, str], name: str, first: int, last: int) -> int:
    text = environment.get(name, "")
    if text.isdecimal() and len(text) < 10 and first <= int(text) <= last:
        return int(text)
    raise UserError(f"{name} is {text!r}: expected a number from {first} to {last}")
