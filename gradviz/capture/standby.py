"""Standby: a program that records nothing until ``gradviz attach`` asks it to.

A thread waits on a Unix socket in the private folder of the user. It takes one request
of JSON, records until the request is fulfilled or whoever asked has left, and answers
with what was recorded. Until then it sleeps in the kernel, and nothing of the program
is watched.
"""

import atexit
import contextlib
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gradviz.capture.iterations import Iterations
from gradviz.capture.private_folder import make_private_folder, socket_of
from gradviz.capture.recording_options import RecordingOptions
from gradviz.capture.session import Recording, record_program
from gradviz.capture.standby_messages import (
    LONGEST_MESSAGE,
    Request,
    StandbyAnswer,
    decoded,
    encoded,
)
from gradviz.errors import UserError
from gradviz.posix import at_fork, posix_needed
from gradviz.program_hooks import after_step

#: So long the other side may take to send its request.
_REQUEST_SECONDS: Final = 10.0


class Standby:
    """Waits for requests on a thread of its own, and fulfills one at a time.

    Only that thread uses what is here, but for `stop`, which any thread may call.

    Args:
        only_once: Stop after the first recording.

    Raises:
        UserError: The private folder or the socket cannot be made.
    """

    def __init__(self, *, only_once: bool = False) -> None:
        if not hasattr(socket, "AF_UNIX"):
            raise UserError(posix_needed("standby"))
        self._path = socket_of(make_private_folder(), os.getpid())
        self._only_once = only_once
        self._pid = os.getpid()
        self._path.unlink(missing_ok=True)  # of a process that had this id
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            self._listener.bind(os.fspath(self._path))
            self._listener.listen()
        except OSError as error:
            self._listener.close()
            raise UserError(
                f"cannot listen at {self._path}: {error.strerror or error}"
            ) from None
        # The end of a recording (`stop`, the last step) wakes the thread by a byte.
        self._awoken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._is_stopped = False
        self._thread = threading.Thread(
            target=self._serve, name="gradviz-standby", daemon=True
        )
        self._thread.start()
        atexit.register(self.stop)
        at_fork(after_in_child=self._forget)

    @property
    def is_waiting(self) -> bool:
        """True in the process that made it, until it is stopped."""
        return self._pid == os.getpid() and not self._is_stopped

    def stop(self) -> None:
        """End a recording that goes on, and listen no more."""
        if not self.is_waiting:
            return
        self._is_stopped = True
        atexit.unregister(self.stop)
        self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # it has been woken often, or has ended
            self._waker.send(b"\0")

    def _forget(self) -> None:
        """Close the socket that a forked child has inherited without its thread."""
        for one in (self._listener, self._awoken, self._waker):
            one.close()

    # --- on the thread ---------------------------------------------------------------

    def _serve(self) -> None:
        try:
            while not self._is_stopped:
                connection = self._next()
                if connection is None:
                    continue
                with connection:
                    self._fulfill(connection)
        finally:
            self._path.unlink(missing_ok=True)
            for one in (self._listener, self._awoken, self._waker):
                one.close()

    def _next(self) -> socket.socket | None:
        """Wait for a client; None if woken instead."""
        ready = _ready([self._listener, self._awoken], None)
        if self._listener not in ready:
            self._awoken.recv(1 << 12)
            return None
        with contextlib.suppress(OSError):  # left at once
            return self._listener.accept()[0]
        return None

    def _fulfill(self, connection: socket.socket) -> None:
        """Record for one connection; any failure leaves the program running."""
        before = tuple(after_step)
        try:
            request = _received(connection)
            recording = _begin(request)
        except (UserError, OSError) as error:
            _send(connection, StandbyAnswer("refused", str(error)))
            return
        except Exception as error:  # noqa: BLE001 - the program has not asked for it
            _send(connection, StandbyAnswer("refused", f"internal error: {error!r}"))
            return
        counter = _StepCounter(request.steps or 0, self._wake)
        if request.steps is not None:
            after_step.append(counter)
        try:
            _send(connection, StandbyAnswer("recording"))
            self._wait(connection, request.seconds, counter)
        finally:
            after_step[:] = before
            answer = _ended(recording)
        _send(connection, answer)
        self._is_stopped |= self._only_once

    def _wait(
        self, connection: socket.socket, seconds: float | None, counter: "_StepCounter"
    ) -> None:
        """Return when it is time to end, or when the client has left."""
        end = None if seconds is None else time.monotonic() + seconds
        while not self._is_stopped and not counter.has_ended:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return
            ready = _ready([self._listener, self._awoken, connection], left)
            if connection in ready:  # it says nothing more: it has left
                return
            if self._awoken in ready:
                self._awoken.recv(1 << 12)
            if self._listener in ready:
                with contextlib.suppress(OSError):
                    other = self._listener.accept()[0]
                    with other:
                        reason = f"process {self._pid} is already recorded"
                        _send(other, StandbyAnswer("refused", reason))


class _StepCounter:
    """Called as optimizers step, on the program's threads; calls `then` at the last.

    The step that is under way at the beginning is not counted.
    """

    def __init__(self, num_steps: int, then: Callable[[], None]) -> None:
        self._left = num_steps + 1
        self._then = then
        self._iterations = Iterations()

    @property
    def has_ended(self) -> bool:
        """True once all steps have ended."""
        return self._left <= 0

    def __call__(self, optimizer: object) -> None:
        self._left -= self._iterations.ended_by(optimizer)
        if self.has_ended:
            self._then()


def _begin(request: Request) -> Recording:
    schedule = ""
    if request.steps is not None:
        schedule = f"skip_first=1,active={request.steps},repeat=1"
    options = RecordingOptions(schedule=schedule)
    return record_program(Path(request.path), options, force=request.force)


def _ended(recording: Recording) -> StandbyAnswer:
    """Close a recording, and describe its contents.

    What it warns of is not held back: filters of warnings are the whole program's, and
    it may be using them on another thread.
    """
    recording.close()
    tasks, nodes, events, dropped = recording.counts[:4]
    failure = recording.failure
    reason = str(failure) if failure is not None else recording.problem
    return StandbyAnswer("done", reason, tasks, nodes, events, dropped)


def _received(connection: socket.socket) -> Request:
    """Receive a request.

    Raises:
        UserError: It does not come, or is none.
        OSError: Nobody is there any more.
    """
    connection.settimeout(_REQUEST_SECONDS)
    with connection.makefile("rb") as file:
        return decoded(file.readline(LONGEST_MESSAGE), Request)


def _send(connection: socket.socket, answer: StandbyAnswer) -> None:
    with contextlib.suppress(OSError):  # whoever asked has left
        connection.sendall(encoded(answer))


def _ready(sockets: list[socket.socket], seconds: float | None) -> list[object]:
    with selectors.DefaultSelector() as selector:
        for one in sockets:
            selector.register(one, selectors.EVENT_READ)
        return [key.fileobj for key, _ in selector.select(seconds)]


#: The one of this process, once it has been started.
_started: Final[list[Standby]] = []


def start_standby(*, only_once: bool = False) -> None:
    """Put this process into standby, unless it is; stops as the program ends.

    Args:
        only_once: Leave it after the first recording.

    Raises:
        UserError: See `Standby`.
    """
    if not any(one.is_waiting for one in _started):
        _started[:] = [Standby(only_once=only_once)]
