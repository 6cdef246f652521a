"""Recording what a program does: the one place that joins the engine to a trace.

A recording begins when it is made and ends when it is closed. Any number may overlap,
each hears of every backward that begins while it is open, on any thread.
"""

import contextlib
import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias, get_args

from gradviz import thread_handovers
from gradviz.backends.stream import made_at
from gradviz.errors import TraceError, UserError
from gradviz.flight_recorder import REASONS, FlightRecorder, RingRecorder
from gradviz.pytorch import optimizers
from gradviz.pytorch.importing import WhenImported
from gradviz.recording_options import RecordingOptions
from gradviz.silent_locks import has_silent_lock
from gradviz.stream_names import name_of_stream
from gradviz.trace import probe
from gradviz.trace.events import AnyEvent
from gradviz.trace.model import Trace
from gradviz.trace.reader import load_trace, parse_trace
from gradviz.trace.recorder import Recorder
from gradviz.trace.schedule import Action, StepSchedule, schedule
from gradviz.trace.scope import Scope, scope_of
from gradviz.trace.sink import FileSink, MemorySink, cannot_write
from gradviz.trace.writer import Counts

if TYPE_CHECKING:
    from gradviz.drawing import Picture, RecordedPass

__all__ = [
    "Counts",
    "Recording",
    "after_close",
    "load_trace",
    "record",
    "schedule",
    "start_from_environment",
    "start_recording",
]

#: The scope of a recording that keeps everything.
_EVERYTHING: Final = Scope()

#: What is worth a dump if it leaves a ``with`` block; SystemExit is no failure.
_TELLING: Final = (Exception, KeyboardInterrupt)

#: Whose passes are recorded; see `record`.
Source: TypeAlias = Literal["gradviz", "torch", "torch if imported"]

_NO_OPTIONS: Final = RecordingOptions()

#: Called with every recording once it is closed, for those who look after all of them.
after_close: Final[list[Callable[["Recording"], None]]] = []


class Recording:
    """A recording that goes on until `close`, or until the end of a ``with`` block.

    Attributes:
        path: The file it is written to, None if it is kept in memory.

    Args:
        path: A file to write; None keeps the recording in memory.
        force: Replace the file if there is one.
        scope: What to keep.
        dump_on: When the file is written, if it is to keep a ring; see `record`.
        source: Whose passes are recorded; see `record`.

    Raises:
        UserError: The file cannot be made, or exists and `force` is false; or there
            is no such source, or it cannot be watched.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        force: bool = False,
        scope: Scope = _EVERYTHING,
        dump_on: Iterable[str] = REASONS,
        source: Source = "gradviz",
    ) -> None:
        self.path = None if path is None else Path(path)
        self._memory = MemorySink()
        self._flight: FlightRecorder | None = None
        self._recorder: Recorder
        if scope.ring_bytes:
            self._flight = FlightRecorder(self.path, dump_on, force=force)
            self._recorder = RingRecorder(
                self._memory, describe_stream=_described, scope=scope
            )
        elif self.path is None:
            self._recorder = Recorder(
                self._memory, describe_stream=_described, scope=scope
            )
        else:
            self._recorder = _record_into(self.path, scope, force=force)
        self._schedule = scope.schedule
        self._num_steps = 0
        self._is_closed = False
        self._hears_handovers = False
        self._trace: Trace | None = None
        self._muted = self._recorder.muted()
        self._listener: probe.Probe | None = None
        self._first_pass: _FirstPass | None = None
        self._pytorch: WhenImported | None = None
        try:
            self._pytorch = _watched(source)
            self._hears_handovers = not has_silent_lock(sys._getframe(1))
            if self._hears_handovers:
                thread_handovers.listen()
                self._recorder.handovers_heard()
            if self._schedule is None:
                self._hear_with(self._recorder)
            else:
                self._first_pass = _FirstPass()
                probe.install(self._first_pass)
                self._begin_step()
            if self._flight is not None and isinstance(self._recorder, RingRecorder):
                self._flight.start(self._recorder)
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
        if self._pytorch is not None:
            self._pytorch.close()
        for one in (self._recorder, self._muted, self._first_pass):
            if one is not None:
                probe.uninstall(one)
        if self._hears_handovers:
            thread_handovers.unlisten()
        self._recorder.close()
        if self._flight is not None:
            self._flight.stop()
        for call in tuple(after_close):
            call(self)

    def flush(self) -> None:
        """Write everything that has happened so far, which close does as well."""
        self._recorder.flush()

    @property
    def problem(self) -> str:
        """Why PyTorch's passes are not recorded though they should; else empty."""
        return "" if self._pytorch is None else self._pytorch.problem

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
            if self._flight is not None:  # the file, if any, holds an earlier moment
                frames: list[bytes] = []
                self._recorder.save(frames.extend)
                self._trace = parse_trace(b"".join(frames))
            elif self.path is None:
                self._trace = parse_trace(self._memory.contents())
            else:
                self._trace = self._load(self.path)
        return self._trace

    @property
    def passes(self) -> "tuple[RecordedPass, ...]":
        """Its backward passes, in the order in which they began; see `trace`."""
        drawing = importlib.import_module("gradviz.drawing")
        passes: tuple[RecordedPass, ...] = drawing.recorded_passes(self.trace)
        return passes

    def graph(self, task: str | int = "last", *, collapse: bool = True) -> "Picture":
        """The graph of one of its passes, as `gradviz.draw` draws it.

        Args:
            task: Which pass, as the option ``--task`` has it.
            collapse: Draw parts of models as boxes where the graph is big.

        Raises:
            RuntimeError: The recording goes on.
            UserError: There is no such pass, or several are.
        """
        drawing = importlib.import_module("gradviz.drawing")
        picture: Picture = drawing.draw(self, task=task, collapse=collapse)
        return picture

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
        """Note where the program is, unless this step is not recorded. Any thread."""
        if not self._is_closed and self._listener is self._recorder:
            self._recorder.mark(text)

    def step(self) -> None:
        """Note that a training step begins; steps count from 0.

        Without a schedule the first call begins step 0. With one, step 0 begins with
        the recording, and each call begins the next step, as in PyTorch; a first call
        that no pass went before leaves it at step 0. So the call may stand at the end
        of a loop's body or at its beginning.
        """
        if self._is_closed:
            return
        if self._schedule is None:
            self._recorder.step_begun(self._num_steps)
            self._num_steps += 1
            return
        first_pass, self._first_pass = self._first_pass, None
        if first_pass is not None:
            probe.uninstall(first_pass)
            if not first_pass.has_begun:
                return
        self._num_steps += 1
        self._begin_step()

    def _begin_step(self) -> None:
        """Do what the schedule says of the step whose number is `_num_steps`."""
        assert self._schedule is not None
        action = self._schedule(self._num_steps)
        if action.records:
            self._hear_with(self._recorder)
            self._recorder.step_begun(self._num_steps)
        else:
            self._hear_with(None if action is Action.NONE else self._muted)

    def _hear_with(self, listener: probe.Probe | None) -> None:
        """Have what begins from now on report to `listener`, and to no other of ours.

        A pass reports to its end to whom it found when it began: so passes that are
        under way when a step ends are in the trace as a whole, or not at all.
        """
        before, self._listener = self._listener, listener
        if before is listener:
            return
        if listener is not None:
            probe.install(listener)
        if before is not None:
            probe.uninstall(before)

    def dump(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write what a ring holds now, and say where; it goes on. Any thread.

        Args:
            path: The file, which must be new. None for that of the recording, which is
                replaced.

        Raises:
            UserError: The recording has no ring, or the file cannot be written.
        """
        if self._flight is None:
            raise UserError(
                "only a recording with a ring is dumped, record(ring='64 MB'); this "
                "one is written all the time, see flush()"
            )
        return self._flight.dump(None if path is None else Path(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._flight is not None and isinstance(error, _TELLING):
            self._flight.dump_because("exception")
        self.close()

    def _repr_svg_(self) -> str | None:
        """What threads did in its passes; None while it goes on, or without any."""
        if not self._is_closed or not self.counts.tasks:
            return None
        try:
            # Loaded where it is needed: it brings all that draws.
            picture: str = importlib.import_module("gradviz.drawing").timeline_picture(
                self.trace
            )
        except UserError:  # the file is gone, say: a notebook shows the text
            return None
        return picture

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "open"
        return f"<Recording {str(self.path) if self.path else 'in memory'!r}: {state}>"


class _FirstPass(probe.Probe):
    """Hears whether a pass has begun."""

    has_begun = False

    def task_begun(self, task: int, **fields: object) -> None:
        del task, fields
        self.has_begun = True


def record(  # noqa: PLR0913 - all but the first are options
    path: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    schedule: StepSchedule | None = None,
    events: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
    stacks: str = "leaf",
    ring: int | str | None = None,
    dump_on: Iterable[str] = REASONS,
    source: Source = "gradviz",
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
        schedule: The steps to record, which `Recording.step` counts; see
            `gradviz.schedule`. None for everything.
        events: Kinds of events to keep, as ``"node_*"``; one that begins with ``!`` is
            left out, as ``"!tensor_saved"``. The begin and the end of a pass are always
            kept. None for all kinds.
        only: Names or modules, as ``"MulBackward0"`` or ``"encoder.*"``, of those nodes
            whose events are kept. None for all nodes.
        stacks: ``"leaf"`` keeps the line of the program that made a node, ``"full"``
            the lines that led to it too (`StackTaken`), ``"none"`` looks for nothing.
        ring: How many bytes to keep of what happened last, as ``"64 MB"``: a flight
            recorder. It keeps them in memory, with what they refer to, until there is
            a reason to write them to the file.
        dump_on: The reasons, some of: ``"exception"``, an error leaves a backward or
            the ``with`` block; ``"signal"``, SIGUSR1 comes (for a recording that the
            main thread begins); ``"timeout"``, a watchdog of the engine finds that
            nothing happens; ``"end"``, the recording ends and nothing was written
            before. Each replaces what was written. See also `Recording.dump`.
        source: ``"torch"`` records the passes of PyTorch's engine beside those of
            ours, see docs/pytorch.md; ``"torch if imported"`` does so from when the
            program imports it, if it ever does.

    Raises:
        UserError: The file cannot be made, or exists and `force` is false; or what is
            to be kept makes no sense; or there is no PyTorch that can be watched.
    """
    scope = scope_of(
        events=events, only=only, stacks=stacks, schedule=schedule, ring=ring
    )
    return Recording(path, force=force, scope=scope, dump_on=dump_on, source=source)


def _watched(source: Source) -> WhenImported | None:
    """Watch PyTorch, if it is asked for.

    Raises:
        UserError: There is none, or it cannot be watched; or no such source.
    """
    if source not in get_args(Source):
        raise UserError(
            f"got {source!r} as the source of a recording, expected one of "
            f"{', '.join(map(repr, get_args(Source)))}"
        )
    if source == "gradviz":
        return None
    if source == "torch":
        try:
            importlib.import_module("torch")
        except ImportError as error:
            raise UserError(
                f"cannot record PyTorch's passes: import torch fails, {error}; "
                f"pip install 'gradviz[torch]' installs it"
            ) from None
    watched = WhenImported()
    if watched.problem and source == "torch":
        raise UserError(watched.problem)
    return watched


def _described(stream: str, frame: FrameType) -> tuple[str, str]:
    return name_of_stream(stream, frame), made_at(stream)


def _record_into(path: Path, scope: Scope, *, force: bool) -> Recorder:
    sink = FileSink(path, force=force)
    try:
        return Recorder(sink, describe_stream=_described, scope=scope)
    except OSError as error:  # a full disk takes an empty file, but no header
        with contextlib.suppress(OSError):
            sink.close()
        raise cannot_write(path, error) from None


def start_recording(
    path: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    scope: Scope = _EVERYTHING,
    dump_on: Iterable[str] = REASONS,
    source: Source = "gradviz",
) -> Recording:
    """Record until the recording is closed, or the program ends; see `record`."""
    return Recording(path, force=force, scope=scope, dump_on=dump_on, source=source)


def record_program(
    path: str | os.PathLike[str],
    options: RecordingOptions = _NO_OPTIONS,
    *,
    force: bool = False,
) -> Recording:
    """Record a program that does not know of it, until it ends.

    PyTorch's passes are recorded too, from when it imports that. If only some steps are
    recorded, each that an optimizer makes ends one.

    Raises:
        UserError: The file cannot be made, or exists and `force` is false; or the
            options make no sense.
    """
    scope, reasons = options.scope(), options.reasons()
    recording = start_recording(
        path, force=force, scope=scope, dump_on=reasons, source="torch if imported"
    )
    if scope.schedule is not None:
        # Loaded where it is needed: it brings tensors and all their operations.
        optimizer = importlib.import_module("gradviz.optim.optimizer")
        optimizer.after_step[:] = [recording.step]
        optimizers.after_step[:] = [recording.step]
    return recording


def start_from_environment() -> Recording | None:
    """Record the whole program if the variable ``GRADVIZ_TRACE`` asks for it.

    ``1`` records into ``gradviz-<program>.<pid>.gvt``, anything else but ``0`` is the
    path of a file, where ``{pid}`` stands for the number of the process. The variables
    that set the options of ``gradviz run`` say what is kept. What prevents it is a
    warning: the program itself is not at fault.
    """
    wanted = os.environ.get("GRADVIZ_TRACE", "")
    if wanted in ("", "0"):
        return None
    program = re.sub(r"[^\w.-]+", "_", Path(sys.argv[0]).stem) or "python"
    path = f"gradviz-{program}.{{pid}}.gvt" if wanted == "1" else wanted
    path = path.replace("{pid}", str(os.getpid()))
    options = RecordingOptions.of_environment()
    try:
        return record_program(path, options)
    except UserError as error:
        warnings.warn(f"GRADVIZ_TRACE={wanted}: {error}", RuntimeWarning, stacklevel=2)
        return None
