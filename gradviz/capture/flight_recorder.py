"""Flight recorders: they keep the last events, and write them down when it matters.

There are reasons that it notices itself, and there is `FlightRecorder.dump`. Nothing of
it may harm the program: what fails is a warning, and where a signal handler strikes the
middle of a write, the dump waits until that is done.
"""

import atexit
import contextlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

from gradviz.errors import UserError
from gradviz.program_hooks import after_standstill
from gradviz.trace.events import TaskFailed
from gradviz.trace.format.atomic_file import FOR_OWNER, write_whole
from gradviz.trace.probe import Role
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.sink import cannot_write, exists_already

#: An error leaves a backward, or the recording's ``with`` block; SIGUSR1 comes; an
#: engine's watchdog finds no progress; the recording ends, and nothing was written yet.
REASONS: Final = ("exception", "signal", "timeout", "end")


#: A file is refreshed no earlier than so long after the last time, in nanoseconds, and
#: than so many times as long as writing it took.
_REFRESH_NS: Final = 60 * 10**9
_REFRESH_FACTOR: Final = 50


def reasons_of(names: Iterable[str]) -> frozenset[str]:
    """Some of `REASONS`.

    Raises:
        UserError: One of them is none.
    """
    reasons = frozenset(names)
    if wrong := reasons.difference(REASONS):
        raise UserError(
            f"dump_on has {min(wrong)!r}, expected some of {', '.join(REASONS)}"
        )
    return reasons


class RingRecorder(Recorder):
    """A recorder that says when an error has left a backward.

    Attributes:
        on_failure: Called then, on the thread that called backward.
    """

    on_failure: Callable[[], None] | None = None
    _has_failed = False

    def task_failed(self, task: int, node: int, error: str) -> None:
        """See `Probe.task_failed`, which is called with a lock held."""
        super().task_failed(task, node, error)
        self._has_failed = True

    def thread_exited(self, device: int, role: Role) -> None:
        """See `Probe.thread_exited`."""
        super().thread_exited(device, role)
        if role == Role.CALLER:
            self.call_returned()

    def rows_reported(
        self, thread: int, name: str, rows: Mapping[Hashable, Sequence[int | str]]
    ) -> None:
        """See `Probe.rows_reported`, which may be called with a lock held."""
        super().rows_reported(thread, name, rows)
        self._has_failed |= TaskFailed in rows

    def call_returned(self) -> None:
        """See `Probe.call_returned`."""
        if self._has_failed:
            self._has_failed = False
            if self.on_failure is not None:
                self.on_failure()


class FlightRecorder:
    """Writes the contents of a recorder's ring into a file on certain events.

    Each time the file is replaced as a whole.

    Attributes:
        failure: Error that kept the latest dump for a reason from being written; None
            if it was written, or there was none.
        has_written: True once a dump is in the file.

    Args:
        path: The file, None if there is none.
        reasons: Some of `REASONS`.
        force: Replace a file that is there already.

    Raises:
        UserError: There is no such reason, or the file exists and `force` is false, or
            its folder does not.
    """

    def __init__(
        self, path: Path | None, reasons: Iterable[str], *, force: bool
    ) -> None:
        self.failure: Exception | None = None
        self.has_written = False
        self._path = path
        self._reasons = reasons_of(reasons)
        if path is not None:
            if not force and os.path.lexists(path):
                raise exists_already(path)
            if not path.parent.is_dir():
                raise cannot_write(
                    path, NotADirectoryError(0, "there is no such folder")
                )
        self._refresh_at_ns = time.perf_counter_ns() + _REFRESH_NS
        self._recorder: RingRecorder | None = None
        self._before: Any = None  # the handler of the signal that was there
        self._handler: Callable[[int, FrameType | None], None] | None = None

    def start(self, recorder: RingRecorder) -> None:
        """Look for reasons from now on."""
        self._recorder = recorder
        atexit.register(self.stop)
        if self._path is None:
            return
        if "exception" in self._reasons:
            recorder.on_failure = self._raised
        if "timeout" in self._reasons:
            after_standstill.append(self._stood_still)
        is_main = threading.current_thread() is threading.main_thread()
        if "signal" in self._reasons and is_main and hasattr(signal, "SIGUSR1"):
            self._handler = self._signalled
            self._before = signal.signal(signal.SIGUSR1, self._handler)

    def stop(self) -> None:
        """Look for no more reasons; the recording ends, or never began."""
        if self._recorder is None:
            return
        atexit.unregister(self.stop)
        self._recorder.on_failure = None
        with contextlib.suppress(ValueError):
            after_standstill.remove(self._stood_still)
        handler, self._handler = self._handler, None
        # Of another thread the handler stays, and passes on what was before.
        with contextlib.suppress(ValueError):
            if handler and signal.getsignal(signal.SIGUSR1) == handler:
                signal.signal(signal.SIGUSR1, self._before)
        if not self.has_written:
            self.dump_because("end")

    def discard(self) -> None:
        """Look for no more reasons, and write nothing."""
        self._reasons = frozenset()
        self.stop()

    def dump(self, path: Path | None = None) -> Path:
        """Write the ring's contents now; return the path.

        Args:
            path: The file, which must be new; None for that of the recording.

        Raises:
            UserError: It cannot be written, or there is no file.
        """
        assert self._recorder is not None
        where = path or self._path
        if where is None:
            raise UserError("the recording has no file: name one, dump('x.gvt')")
        if path is not None and os.path.lexists(path):
            raise exists_already(path)
        failures: list[OSError] = []

        def write(frames: Iterable[bytes]) -> None:
            try:
                write_whole(where, frames, FOR_OWNER)
            except OSError as error:
                failures.append(error)
            else:
                self.has_written = self.has_written or path is None

        self._recorder.save(write)
        if failures:
            raise cannot_write(where, failures[0]) from failures[0]
        return where

    def dump_because(self, reason: str) -> None:
        """Write the ring's contents if `reason` is one to do so; never raises."""
        if self._path is None or reason not in self._reasons:
            return
        try:
            self.dump()
            self.failure = None
        except Exception as error:  # noqa: BLE001 - no dump is worth the program
            self.failure = error
            with contextlib.suppress(Exception):  # a warning filter may raise
                warnings.warn(str(error), RuntimeWarning, stacklevel=2)

    def refresh(self) -> None:
        """Write the ring's contents if the last write is old, in case of a kill.

        Does so only where the end of the recording is a reason to write, until there is
        another one: the file of the end replaces it.
        """
        began = time.perf_counter_ns()
        if self.has_written or began < self._refresh_at_ns:
            return
        self.dump_because("end")
        self.has_written = False
        now = time.perf_counter_ns()
        wait = max(_REFRESH_NS, _REFRESH_FACTOR * (now - began))
        self._refresh_at_ns = now + wait

    def _raised(self) -> None:
        self.dump_because("exception")

    def _stood_still(self) -> None:
        self.dump_because("timeout")

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self._handler is not None:
            self.dump_because("signal")
        if callable(self._before):
            self._before(number, frame)
