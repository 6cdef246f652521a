"""Recording of a program: the one place that joins the engine to a trace.

A recording begins when it is made and ends when it is closed. Any number may overlap,
each hears of every backward that begins while it is open, on any thread.
"""

import contextlib
import functools
import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias, get_args

from gradviz.capture.flight_recorder import REASONS, FlightRecorder, RingRecorder
from gradviz.capture.iterations import Iterations
from gradviz.capture.recorded_function import (
    Function,
    check_is_no_function,
    recorded_function,
)
from gradviz.capture.recording_options import RecordingOptions
from gradviz.errors import TraceError, UserError
from gradviz.program_hooks import after_step
from gradviz.pytorch.watching.importing import WhenImported
from gradviz.stream_check.stream_handovers import StreamHandovers
from gradviz.stream_check.stream_names import name_of_stream
from gradviz.trace import probe
from gradviz.trace.events import AnyEvent, TaskBegun
from gradviz.trace.format.kept_events import scope_of
from gradviz.trace.format.model import Trace
from gradviz.trace.format.scope import Action, Scope, StepSchedule, schedule
from gradviz.trace.recording.recorder import Recorder, alone
from gradviz.trace.recording.sink import FileSink, MemorySink, cannot_write
from gradviz.trace.recording.writer import Counts
from gradviz.trace.reporting.made_streams import made_at

if TYPE_CHECKING:
    from gradviz.drawing.page import Page
    from gradviz.drawing.picture import Picture, RecordedPass

__all__ = [
    "Counts",
    "Recording",
    "after_close",
    "record",
    "schedule",
    "start_from_environment",
    "start_recording",
]

#: The scope of a recording that keeps everything.
_EVERYTHING: Final = Scope()

#: Exceptions that are worth a dump if they leave a ``with`` block; SystemExit is no
#: failure.
_TELLING: Final = (Exception, KeyboardInterrupt)

#: Programs whose passes are recorded; see `record`.
Source: TypeAlias = Literal["gradviz", "torch", "torch if imported"]

#: Value of ``GRADVIZ_TRACE`` for a program that waits for ``gradviz attach``.
STANDBY: Final = "standby"

_NO_OPTIONS: Final = RecordingOptions()

#: Called with every recording once it is closed, for those who look after all of them.
after_close: Final[list[Callable[["Recording"], None]]] = []


class Recording:
    """A recording that goes on until `close`, or until the end of a ``with`` block.

    As a decorator it records each call of a function; see `__call__`.

    Attributes:
        path: The file it is written to, None if it is kept in memory.

    Args:
        path: A file to write; None keeps the recording in memory.
        force: Replace the file if there is one.
        scope: Choice of what to keep.
        dump_on: Reasons to write the file, if it is to keep a ring; see `record`.
        source: Engine whose passes are recorded; see `record`.

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
        check_is_no_function(path)
        # The program may change its folder: what is meant is where it is now.
        self.path = None if path is None else Path(path).absolute()
        self._begin_anew = functools.partial(
            type(self),
            self.path,
            force=force,
            scope=scope,
            dump_on=dump_on,
            source=source,
        )
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
        self._keeps_odd = scope.kept_steps is not None
        # Steps are counted as a schedule counts them, of which all are active.
        self._schedule = schedule(active=1) if self._keeps_odd else scope.schedule
        self._num_steps = 0
        self._is_closed = False
        self._handovers = StreamHandovers(self._recorder.handovers_heard)
        self._trace: Trace | None = None
        self._muted = self._recorder.muted()
        self._listener: probe.Probe | None = None
        self._first_pass: _FirstPass | None = None
        self._pytorch: WhenImported | None = None
        self._checks: Callable[[], None] | None = None
        try:
            self._pytorch = _watched(source, scope)
            self._checks = _own_checks() if scope.checks_finite else None
            if source != "torch":
                self._handovers.start()
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
        if not self._is_closed:
            self._stop()
            if self._flight is not None:
                self._flight.stop()
            for call in tuple(after_close):
                call(self)

    def _stop(self) -> None:
        """Stop listening, and write the rest, unless it is a ring."""
        self._is_closed = True
        if self._pytorch is not None:
            self._pytorch.tell_kept(self._recorder, always=self.is_of_program)
            self._pytorch.close()
        if self.is_of_program and "gradviz.ops" in sys.modules:
            _tell_own_graphs(self._recorder)
        if self._checks is not None:
            self._checks()
        for one in (self._recorder, self._muted, self._first_pass):
            if one is not None:
                probe.uninstall(one)
        self._handovers.stop()
        self._recorder.close()

    def flush(self) -> None:
        """Write everything that has happened so far, which close does as well."""
        self._recorder.flush()

    @property
    def problem(self) -> str:
        """Reason why passes of PyTorch are not recorded as asked; else empty."""
        problem = "" if self._pytorch is None else self._pytorch.problem
        return problem and f"no pass of PyTorch's own engine is recorded: {problem}"

    @property
    def counts(self) -> Counts:
        """Return the counts written so far; once closed, the final ones."""
        return self._recorder.counts

    @property
    def has_ring(self) -> bool:
        """True if it is a ring: it keeps the latest events and writes dumps of them."""
        return self._flight is not None

    @property
    def is_dumped(self) -> bool:
        """True if it is a ring, and a dump of it is in its file."""
        return self._flight is not None and self._flight.has_written

    @property
    def failure(self) -> Exception | None:
        """The error that stopped the writing; None without one."""
        if self._flight is not None and self._flight.failure is not None:
            return self._flight.failure
        return self._recorder.failure

    @property
    def trace(self) -> Trace:
        """The recorded trace, read back on first access.

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
                self._trace = _parsed(b"".join(frames))
            elif self.path is None:
                self._trace = _parsed(self._memory.contents())
            else:
                self._trace = self._load(self.path)
        return self._trace

    @property
    def passes(self) -> "tuple[RecordedPass, ...]":
        """Its backward passes, in the order in which they began; see `trace`."""
        drawing = importlib.import_module("gradviz.drawing.picture")
        passes: tuple[RecordedPass, ...] = drawing.recorded_passes(self.trace)
        return passes

    def graph(self, task: str | int = "last", *, collapse: bool = True) -> "Picture":
        """The graph of one of its passes, as `gradviz.draw` draws it.

        Args:
            task: The pass, as the option ``--pass`` has it.
            collapse: Draw parts of models as boxes where the graph is big.

        Raises:
            RuntimeError: The recording goes on.
            UserError: There is no such pass, or several are.
        """
        drawing = importlib.import_module("gradviz.drawing.picture")
        picture: Picture = drawing.draw(self, task=task, collapse=collapse)
        return picture

    def page(
        self, task: str | int = "last", *, height: int = 640, embed: bool = False
    ) -> "Page":
        """Make the interactive page of its passes, which a notebook shows in a frame.

        Args:
            task: The passes, as the option ``--pass`` has it.
            height: Height of the frame in pixels, 200 to 4,000.
            embed: Show a page of more than 4 MiB too, which a notebook is saved with.

        Raises:
            RuntimeError: The recording goes on.
            UserError: There is no such pass, or no frame of that height.
        """
        drawing = importlib.import_module("gradviz.drawing.page")
        page: Page = drawing.recorded_page(self.trace, task, height=height, embed=embed)
        return page

    def _load(self, path: Path) -> Trace:
        # Loaded when a trace is read: most programs only write theirs.
        from gradviz.trace.reading.reader import load_trace  # noqa: PLC0415 - see above

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
        first_pass = self._first_pass
        self._forget_first_pass()
        if first_pass is None or first_pass.has_begun:
            self.begin_next_step()

    def begin_next_step(self) -> None:
        """Begin the next step of a schedule, also if the last one had no pass."""
        if self._is_closed:
            return
        self._forget_first_pass()
        self._num_steps += 1
        if self._keeps_odd:
            self._recorder.end_step()
        self._begin_step()
        if self._keeps_odd and self._flight is not None:
            self._flight.refresh()

    def _forget_first_pass(self) -> None:
        first_pass, self._first_pass = self._first_pass, None
        if first_pass is not None:
            probe.uninstall(first_pass)

    def _begin_step(self) -> None:
        """Act on the schedule for the step number `_num_steps`."""
        assert self._schedule is not None
        action = self._schedule(self._num_steps)
        if action.records:
            self._hear_with(self._recorder)
            self._recorder.step_begun(self._num_steps)
        else:
            self._hear_with(None if action is Action.NONE else self._muted)

    def _hear_with(self, listener: probe.Probe | None) -> None:
        """Make `listener` the only one of ours, for everything that starts now.

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
        """Write a ring's contents now; return the path. Goes on; any thread.

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
        return self._flight.dump(None if path is None else Path(path).absolute())

    def __call__(self, function: Function) -> Function:
        """Record each call of a function, each in a recording of its own.

        For example::

            @gv.record("epoch.gvt", force=True)
            def train_one_epoch(): ...

        The recordings are made as this one was, which ends and leaves no file. So a
        second call finds the file of the first: it replaces that with ``force``, and
        raises `UserError` without. The function's attribute `recording` is the last.
        A coroutine is recorded to its end.

        Raises:
            TypeError: It is a generator, a class, or cannot be called.
            RuntimeError: The recording has ended.
        """
        if self._is_closed:
            raise RuntimeError("the recording has ended, and records no function")
        self._stop()
        if self._flight is not None:
            self._flight.discard()
        elif self.path is not None:
            self.path.unlink(missing_ok=True)
        return recorded_function(function, self._begin_anew)

    #: True if it records a whole program, whose last step is over when it ends.
    is_of_program = False

    #: The text of the RuntimeError that has left what is recorded; else empty.
    error_text = ""

    def error_left(self, error: BaseException) -> None:
        """Write a ring, if set to do so, for an `error` that leaves the recording.

        The text of an error of PyTorch's is kept, and nothing of its frames.
        """
        if type(error) is RuntimeError:
            self.error_text = str(error)
        if self._flight is not None and isinstance(error, _TELLING):
            self._flight.dump_because("exception")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.error_left(error)
        self.close()

    def _repr_svg_(self) -> str | None:
        """Return a timeline of its passes; None while it goes on, or without any."""
        if not self._is_closed or not self.counts.tasks:
            return None
        try:
            # Loaded where it is needed: it brings all that draws.
            picture: str = importlib.import_module(
                "gradviz.drawing.picture"
            ).timeline_picture(self.trace)
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

    def rows_reported(
        self, thread: int, name: str, rows: Mapping[Hashable, Sequence[int | str]]
    ) -> None:
        del thread, name
        self.has_begun |= TaskBegun in rows


def record(  # noqa: PLR0913 - all but the first are options
    path: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    schedule: StepSchedule | None = None,
    events: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
    stacks: str = "leaf",
    ring: int | str | None = None,
    keep_odd: int | None = None,
    dump_on: Iterable[str] = REASONS,
    source: Source = "gradviz",
    check_finite: bool = False,
) -> Recording:
    """Record every backward from here to the end of a ``with`` block.

    For example::

        with gv.record("step.gvt") as recording:
            loss.backward()
        for event in recording.events():
            print(event)

    As a decorator, ``@gv.record("step.gvt")``, it records each call of a function.

    Args:
        path: A file to write; None keeps the recording in memory.
        force: Replace the file if there is one.
        schedule: The steps to record, which `Recording.step` counts; see
            `gradviz.schedule`. None for everything.
        events: Kinds of events to keep, as ``"node_*"``; one that begins with ``!`` is
            left out, as ``"!tensor_saved"``. The start and the end of a pass are always
            kept. None for all kinds.
        only: Names or modules, as ``"MulBackward0"`` or ``"encoder.*"``, of those nodes
            whose events are kept. None for all nodes.
        stacks: ``"leaf"`` keeps the line of the program that made a node, ``"full"``
            the lines that led to it too (`StackTaken`), ``"none"`` looks for nothing.
        ring: Number of bytes to keep of what happened last, as ``"64 MB"``: a flight
            recorder. It keeps them in memory, with what they refer to, until there is a
            reason to write them to the file.
        keep_odd: Number of steps to keep of those whose duration is farthest from the
            median, with a sample of as many, the first step and the last, in a ring of
            256 MB if `ring` does not say. `Recording.step` counts the steps, as with a
            schedule.
        dump_on: The reasons, some of: ``"exception"``, an error leaves a backward or
            the ``with`` block; ``"signal"``, SIGUSR1 comes (for a recording that the
            main thread begins); ``"timeout"``, a watchdog of the engine finds that
            nothing happens; ``"end"``, the recording ends and nothing was written
            before. Each replaces what was written. See also `Recording.dump`.
        source: ``"torch"`` records the passes of PyTorch's engine beside those of
            ours, see docs/pytorch-reference.md; ``"torch if imported"`` does so from
            when the program imports it, if it ever does.
        check_finite: Check results of the forward and gradients for NaN and infinity,
            and keep the first of each as `NotFinite`. Each check reads the whole array;
            on a GPU it waits for that.

    Raises:
        UserError: The file cannot be made, or exists and `force` is false; or what is
            to be kept makes no sense; or there is no PyTorch that can be watched.
    """
    scope = scope_of(
        events=events,
        only=only,
        stacks=stacks,
        schedule=schedule,
        ring=ring,
        keep_odd=keep_odd,
        check_finite=check_finite,
    )
    return Recording(path, force=force, scope=scope, dump_on=dump_on, source=source)


def _tell_own_graphs(listener: probe.Probe) -> None:
    """Tell a listener which graphs of our engine a program keeps.

    Does nothing while other threads run; see `alone`. No failure reaches the program.
    """
    with contextlib.suppress(Exception), alone() as is_alone:
        if is_alone:
            of_ours = importlib.import_module("gradviz.diagnostics.piled_up_graphs")
            of_ours.tell_piled_up(listener)


def _own_checks() -> Callable[[], None]:
    """Check values of our own engine; returns the function that ends that."""
    # Loaded where it is asked for: it brings the engine.
    checks = importlib.import_module("gradviz.diagnostics.finite_checks")
    stop: Callable[[], None] = checks.start()
    return stop


def _watched(source: Source, scope: Scope) -> WhenImported | None:
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
    watched = WhenImported(scope.stacks, checks_finite=scope.checks_finite)
    if watched.problem and source == "torch":
        raise UserError(watched.problem)
    return watched


def _parsed(data: bytes) -> Trace:
    from gradviz.trace.reading.reader import parse_trace  # noqa: PLC0415 - as in _load

    return parse_trace(data)


def _described(stream: str, frame: FrameType) -> tuple[str, str]:
    return name_of_stream(stream, frame), made_at(stream)


def _record_into(path: Path, scope: Scope, *, force: bool) -> Recorder:
    sink = FileSink(path, force=force)
    try:
        return Recorder(sink, describe_stream=_described, scope=scope)
    except OSError as error:  # a full disk takes an empty file, but no header
        with contextlib.suppress(OSError):
            sink.discard()
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
    recorded, they are the iterations that optimizers tell of; see `Iterations`.

    Raises:
        UserError: The file cannot be made, or exists and `force` is false; or the
            options make no sense.
    """
    scope, reasons = options.scope(), options.reasons()
    followed: list[Recording] = []
    if scope.schedule is not None or scope.kept_steps is not None:
        _follow_optimizers(followed)
    recording = start_recording(
        path, force=force, scope=scope, dump_on=reasons, source="torch if imported"
    )
    recording.is_of_program = True
    followed.append(recording)
    return recording


def _follow_optimizers(recordings: list[Recording]) -> None:
    """Begin a step of some recordings wherever optimizers end an iteration."""
    iterations = Iterations()

    def stepped(optimizer: object) -> None:
        for _ in range(iterations.ended_by(optimizer)):
            for recording in recordings:
                recording.begin_next_step()

    after_step[:] = [stepped]


def start_from_environment() -> Recording | None:
    """Record the program from here on if the variable ``GRADVIZ_TRACE`` asks for it.

    ``1`` records into ``gradviz-<program>.<pid>.gvt``, ``standby`` waits for ``gradviz
    attach``, anything else but ``0`` is the
    path of a file, where ``{pid}`` stands for the number of the process. The variables
    that set the options of ``gradviz run`` say what is kept. What prevents it is a
    warning: the program itself is not at fault.
    """
    wanted = os.environ.get("GRADVIZ_TRACE", "")
    if wanted in ("", "0"):
        return None
    if wanted == STANDBY:
        _stand_by()
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


def _stand_by() -> None:
    """Wait for ``gradviz attach``; a failure is a warning."""
    standby = importlib.import_module("gradviz.capture.standby")  # it records by this
    try:
        standby.start_standby()
    except UserError as error:
        warnings.warn(f"GRADVIZ_TRACE={STANDBY}: {error}", RuntimeWarning, stacklevel=3)
