"""Recording what a program does: the one place that joins the engine to a trace.

A recording begins when it is made and ends when it is closed. Any number may overlap,
each hears of every backward that begins while it is open, on any thread.
"""

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, Self

from gradviz import thread_handovers
from gradviz.backends.stream import made_at
from gradviz.errors import TraceError, UserError
from gradviz.silent_locks import has_silent_lock
from gradviz.stream_names import name_of_stream
from gradviz.trace import probe
from gradviz.trace.events import AnyEvent
from gradviz.trace.model import Trace
from gradviz.trace.reader import load_trace, parse_trace
from gradviz.trace.recorder import Recorder
from gradviz.trace.sink import FileSink, MemorySink, cannot_write
from gradviz.trace.writer import Counts

__all__ = [
    "Counts",
    "Recording",
    "after_close",
    "load_trace",
    "record",
    "start_from_environment",
    "start_recording",
]

#: Called with every recording once it is closed, for those who look after all of them.
after_close: Final[list[Callable[["Recording"], None]]] = []


class Recording:
    """A recording that goes on until `close`, or until the end of a ``with`` block.

    Attributes:
        path: The file it is written to, None if it is kept in memory.

    Args:
        path: A file to write; None keeps the recording in memory.
        force: Replace the file if there is one.

    Raises:
        UserError: The file cannot be made, or exists and `force` is false.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, force: bool = False
    ) -> None:
        self.path = None if path is None else Path(path)
        self._memory = MemorySink()
        self._recorder = (
            Recorder(self._memory, describe_stream=_described)
            if self.path is None
            else _record_into(self.path, force=force)
        )
        self._num_steps = 0
        self._is_closed = False
        self._hears_handovers = False
        self._trace: Trace | None = None
        try:
            self._hears_handovers = not has_silent_lock(sys._getframe(1))
            if self._hears_handovers:
                thread_handovers.listen()
                self._recorder.handovers_heard()
            probe.install(self._recorder)
        except BaseException:  # an interrupt: nobody would ever close this
            self.close()
            raise

    def close(self) -> None:
        """End the recording; does nothing the second time.

        A backward that goes on, on another thread, is cut off in the trace.
        """
        if self._is_closed:
            return
        self._is_closed = True
        probe.uninstall(self._recorder)
        if self._hears_handovers:
            thread_handovers.unlisten()
        self._recorder.close()
        for call in tuple(after_close):
            call(self)

    def flush(self) -> None:
        """Write everything that has happened so far, which close does as well."""
        self._recorder.flush()

    @property
    def counts(self) -> Counts:
        """How much has been written so far; once closed, how much there is."""
        return self._recorder.counts

    @property
    def failure(self) -> Exception | None:
        """What kept it from being written to its end; None if nothing did."""
        return self._recorder.failure

    @property
    def trace(self) -> Trace:
        """What was recorded, read back when it is first asked for.

        Raises:
            RuntimeError: The recording goes on.
            TraceError: The file is not there any more, holds another recording by now,
                or is not readable.
        """
        if not self._is_closed:
            raise RuntimeError(
                "the recording goes on: close() it, or leave its with block, first"
            )
        if self._trace is None:
            self._trace = (
                parse_trace(self._memory.contents())
                if self.path is None
                else self._load(self.path)
            )
        return self._trace

    def _load(self, path: Path) -> Trace:
        trace = load_trace(path)
        if not self._recorder.is_in(trace):
            raise TraceError(
                f"{str(path)!r} holds another recording by now: this one was replaced"
            )
        return trace

    def events(self) -> Iterator[AnyEvent]:
        """Every event in its order; see `Trace.events` and `trace`."""
        return self.trace.events()

    def mark(self, text: str) -> None:
        """Note where the program is. Any thread."""
        if not self._is_closed:
            self._recorder.mark(text)

    def step(self) -> None:
        """Note that a training step begins; steps count from 0."""
        if not self._is_closed:
            self._recorder.step_begun(self._num_steps)
            self._num_steps += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "open"
        return f"<Recording {str(self.path) if self.path else 'in memory'!r}: {state}>"


def record(
    path: str | os.PathLike[str] | None = None, *, force: bool = False
) -> Recording:
    """Record every backward from here to the end of a ``with`` block.

    For example::

        with gv.record("step.gvt") as recording:
            loss.backward()
        for event in recording.events():
            print(event)

    Args:
        path: A file to write; None keeps the recording in memory.
        force: Replace the file if there is one.

    Raises:
        UserError: The file cannot be made, or exists and `force` is false.
    """
    return Recording(path, force=force)


def _described(stream: str, frame: FrameType) -> tuple[str, str]:
    return name_of_stream(stream, frame), made_at(stream)


def _record_into(path: Path, *, force: bool) -> Recorder:
    sink = FileSink(path, force=force)
    try:
        return Recorder(sink, describe_stream=_described)
    except OSError as error:  # a full disk takes an empty file, but no header
        with contextlib.suppress(OSError):
            sink.close()
        raise cannot_write(path, error) from None


def start_recording(
    path: str | os.PathLike[str] | None = None, *, force: bool = False
) -> Recording:
    """Record until the recording is closed, or the program ends; see `record`."""
    return Recording(path, force=force)


def start_from_environment() -> Recording | None:
    """Record the whole program if the variable ``GRADVIZ_TRACE`` asks for it.

    ``1`` records into ``gradviz-<program>.<pid>.gvt``, anything else but ``0`` is the
    path of a file. What prevents it is a warning: the program itself is not at fault.
    """
    wanted = os.environ.get("GRADVIZ_TRACE", "")
    if wanted in ("", "0"):
        return None
    program = re.sub(r"[^\w.-]+", "_", Path(sys.argv[0]).stem) or "python"
    path = f"gradviz-{program}.{os.getpid()}.gvt" if wanted == "1" else wanted
    try:
        return start_recording(path)
    except UserError as error:
        warnings.warn(f"GRADVIZ_TRACE={wanted}: {error}", RuntimeWarning, stacklevel=2)
        return None
