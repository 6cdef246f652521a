"""``gradviz run``: a program as ``python`` would run it, its backwards recorded."""

import atexit
import importlib
import os
import signal
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from gradviz.capture.recording_options import RecordingOptions
from gradviz.capture.session import STANDBY, Recording, record_program
from gradviz.cli.console.notes import note, note_next
from gradviz.cli.console.options import (
    force_option,
    open_option,
    quiet_option,
    recorded_output_option,
)
from gradviz.cli.console.output import STDOUT
from gradviz.cli.run import program
from gradviz.cli.run.actor_traces import ActorTraces
from gradviz.cli.run.children import Children, Unfollowed, follow_by_environment
from gradviz.cli.run.target import Target, target_of
from gradviz.cli.run.then import Words, opened, run_then
from gradviz.cli.run.workers import begin_worker, merge_launched, run_with_workers
from gradviz.errors import UserError
from gradviz.program_hooks import (
    WatchableEngine,
    after_default_engine,
    after_step,
)
from gradviz.render.words.text import count
from gradviz.trace.format.model import Trace
from gradviz.trace.format.scope import STACKS

try:
    import resource
except ModuleNotFoundError:  # on Windows
    resource = None  # type: ignore[assignment]

if TYPE_CHECKING:  # loaded where it is asked for
    from gradviz.stream_check.checker import StreamCheck

#: Key of the arguments in the context.
_ARGS: Final = "gradviz.arguments"

#: State of an engine that the program has not made.
IDLE: Final = "0 passes under way\n0 queues\n"

#: Maximum number of values told at the end that are not finite.
_MAX_NOT_FINITE: Final = 3

#: Exit code of a program that ended well but for a race between its streams.
RACE: Final = 1


class RunCommand(click.Command):
    """Remembers its arguments, for the process that it starts for ``--then``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep them in the context."""
        ctx.meta[_ARGS] = tuple(args)
        return super().parse_args(ctx, args)


@click.command(
    "run",
    cls=RunCommand,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@recorded_output_option("<program>")
@force_option
@quiet_option
@click.option(
    "--watchdog",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Say where everything stands if no backward pass makes progress for so long; "
    "0 never does. SIGUSR1 makes the same report at any time.",
)
@click.option(
    "--schedule",
    default="",
    metavar="wait=N,warmup=N,active=N,repeat=N",
    help="Record only the active steps, as torch.profiler does. A step ends with the "
    "step() of an optimizer.",
)
@click.option(
    "--events",
    default="",
    metavar="KIND,...",
    help="Record only these kinds of events, as 'node_*'; or all but those that begin "
    "with !, as '!tensor_saved'.",
)
@click.option(
    "--only",
    default="",
    metavar="NODE,...",
    help="Record the events of only these nodes: names or modules, as 'encoder.*'.",
)
@click.option(
    "--stacks",
    type=click.Choice(STACKS),
    default="leaf",
    show_default=True,
    help="Keep the line of the program that made each node, the lines too that led to "
    "it, or none.",
)
@click.option(
    "--ring",
    default="",
    metavar="SIZE",
    help="Keep only what happened last, as much as SIZE (64MB), until there is reason "
    "to write it.",
)
@click.option(
    "--keep-odd",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Of all steps keep only the N whose duration is farthest from the median, a "
    "sample of N, the first and the last, in a ring (256MB).",
)
@click.option(
    "--dump-on",
    default="",
    metavar="REASON,...",
    help="When to write the ring: exception, signal, timeout, end. [default: all]",
)
@click.option(
    "--follow-children",
    is_flag=True,
    help="Record the processes that the program starts too, each into a trace beside "
    "this one.",
)
@click.option(
    "--check-streams",
    is_flag=True,
    help="Report work on two streams that uses the same memory in no order, and exit "
    "with 1 if there was any by the last line of a program that ends well.",
)
@click.option(
    "--check-finite",
    is_flag=True,
    help="Check results of the forward and gradients for NaN and infinity, and say at "
    "the end which op or node made the first. Slows the program down.",
)
@click.option(
    "--then",
    type=Words(),
    multiple=True,
    metavar="COMMAND",
    help="Run a command of gradviz afterwards, such as 'render graph --open', on the "
    "trace. May be given several times.",
)
@click.option(
    "--live",
    is_flag=True,
    help="Show steps on stderr as they end, and the trace in a browser while it is "
    "written, as 'gradviz view' does.",
)
@open_option
@click.option(
    "--workers",
    type=click.IntRange(1, 2**16),
    metavar="N",
    help="Run the program in N processes, workers of gradviz.distributed.rpc, each "
    "with a trace of its own beside FILE (.worker0 and so on), merged at the end.",
)
@click.option(
    "--standby",
    is_flag=True,
    help="Record nothing until 'gradviz attach' asks this process for it.",
)
@click.option("--is-worker", is_flag=True, hidden=True, allow_from_autoenv=False)
@click.option("--no-then", is_flag=True, hidden=True, allow_from_autoenv=False)
@click.option(
    "-m", "module", is_flag=True, allow_from_autoenv=False, help="Run a module."
)
@click.option(
    "-c", "string", is_flag=True, allow_from_autoenv=False, help="Run a string."
)
@click.argument("target", metavar="(SCRIPT | -m MODULE | -c CODE | COMMAND)")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(  # noqa: PLR0913, PLR0917 - Click hands over each option
    output: Path | None,
    force: bool,
    quiet: bool,
    watchdog: float,
    schedule: str,
    events: str,
    only: str,
    stacks: str,
    ring: str,
    keep_odd: int | None,
    dump_on: str,
    follow_children: bool,
    check_streams: bool,
    check_finite: bool,
    then: tuple[tuple[str, ...], ...],
    live: bool,
    is_opened: bool,
    workers: int | None,
    standby: bool,
    is_worker: bool,
    no_then: bool,
    module: bool,
    string: bool,
    target: str,
    args: tuple[str, ...],
) -> int:
    """Run a Python program and record its backward passes.

    The program runs as "python SCRIPT ARGS..." would run it, and so do -m and -c; its
    exit code becomes that of gradviz. Options of gradviz come first: those after the
    script belong to the script. COMMAND may be "python ..." or a command that is a
    Python script, such as pytest. If it is torchrun or accelerate launch, gradviz
    records the processes that it starts and merges their traces into one.

    GRADVIZ_TRACE=FILE records a program without this command, once it imports gradviz.
    A program that imports only PyTorch needs this command, or the PYTHONPATH that
    "gradviz doctor" names.

    Example:
        gradviz run -o first.gvt train.py --epochs 3
    """
    if module and string:
        raise click.UsageError("-m and -c exclude each other")
    if output == STDOUT:
        raise click.UsageError("a trace cannot go to stdout: that is the program's own")
    wanted = target_of(target, args, module=module, string=string)
    _heed(wanted, quiet=quiet or no_then or is_worker)
    if standby:
        is_followed = follow_children or wanted.is_launcher
        return _run_in_standby(wanted, watchdog, is_followed=is_followed, quiet=quiet)
    path = output or Path(f"gradviz-{wanted.label}.{os.getpid()}.gvt")
    if is_opened:
        then = opened(then)
    if workers and live:
        raise click.UsageError("--live shows one trace, and --workers makes several")
    if (then or live) and not (no_then or is_worker):
        args_of_run = click.get_current_context().meta[_ARGS]
        follow = _run_live() if live else run_then
        return follow(args_of_run, path, then, force=force)
    if is_worker:
        path = begin_worker(path)
    elif workers:
        args_of_run = click.get_current_context().meta[_ARGS]
        return run_with_workers(args_of_run, path, workers, force=force, quiet=quiet)
    odd = "" if keep_odd is None else str(keep_odd)
    checks = "1" if check_finite else ""
    options = RecordingOptions(
        schedule, events, only, stacks, ring, dump_on, odd, checks
    )
    _check_options(options)
    follows = follow_children or wanted.is_launcher
    return _run_recorded(
        *(wanted, path, options, watchdog),
        force=force,
        quiet=quiet,
        follows=follows,
        checks_streams=check_streams,
        shows_steps=live and not quiet,
    )


def _run_recorded(  # noqa: PLR0913 - all but the first four are options
    wanted: Target,
    path: Path,
    options: RecordingOptions,
    watchdog: float,
    *,
    force: bool,
    quiet: bool,
    follows: bool,
    checks_streams: bool,
    shows_steps: bool,
) -> int:
    """Run a program in this process and record it.

    Args:
        wanted: The program.
        path: The trace.
        options: Options that say what it keeps.
        watchdog: See the option, as for the next two.
        force: Replace a trace that is there.
        quiet: Say only what went wrong.
        follows: Record the processes that it starts, too.
        checks_streams: Report races between its streams.
        shows_steps: Say on stderr when a step has ended.

    Returns:
        Its exit code, `RACE` if it ended well but for a race.

    Raises:
        UserError: There is no such program, or the trace cannot be written.
    """
    where = path.absolute()  # the program may change its folder
    check = _stream_check() if checks_streams else None
    begin = partial(record_program, options=options, force=force)

    recordings: list[Recording] = []

    def start() -> None:
        _report_on_hangs(watchdog)  # first: the signal is for the recording, too
        recording = begin(where)
        recordings.append(recording)
        children = Children(where, options, begin) if follows else None
        actors = ActorTraces(where, options, force=force)
        # The program's own exit handlers and its threads come to their end before
        # this handler, registered first, is called.
        atexit.register(
            _finish,
            recording,
            path,
            os.getpid(),
            children=children,
            others=None if children else Unfollowed(),
            actors=actors,
            is_launcher=wanted.is_launcher,
            options=options,
            quiet=quiet,
        )
        if shows_steps:
            _show_steps(recording)
        if check is not None:
            check.start()
            atexit.register(_tell_of_races, check, os.getpid())

    def failed(error: BaseException) -> None:
        for recording in recordings:
            recording.error_left(error)

    code = program.run(wanted.program, before=start, failed=failed)
    return RACE if code == 0 and check is not None and check.races else code


#: Parameters of this command that a program in standby has a use for.
_OF_STANDBY: Final = frozenset(
    {"standby", "quiet", "force", "watchdog", "follow_children"}
    | {"module", "string", "target", "args"}
)


def _run_in_standby(
    wanted: Target, watchdog: float, *, is_followed: bool, quiet: bool
) -> int:
    """Run a program that waits for ``gradviz attach``; its exit code.

    Args:
        wanted: The program.
        watchdog: See the option.
        is_followed: Have the programs that it starts wait, too.
        quiet: Do not say how to attach.

    Raises:
        UserError: It cannot wait.
    """
    # Loaded where it is asked for.
    from gradviz.capture.standby import start_standby  # noqa: PLC0415

    _check_standby()

    def start() -> None:
        _report_on_hangs(watchdog)
        start_standby()
        if is_followed:
            follow_by_environment(STANDBY)
        if not quiet:
            note(f"process {os.getpid()} waits for 'gradviz attach {os.getpid()}'")

    return program.run(wanted.program, before=start)


def _check_standby() -> None:
    """Refuse options of a recording, for none begins.

    Raises:
        click.UsageError: There is one.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in _OF_STANDBY and context.get_parameter_source(name) in {
            ParameterSource.COMMANDLINE,
            ParameterSource.ENVIRONMENT,
        }:
            raise click.UsageError(
                f"--standby records nothing by itself, so {parameter.opts[-1]} has no "
                f"effect: 'gradviz attach' says what is recorded, and where"
            )


def _run_live() -> Callable[..., int]:
    """Return `run_live`, which loads a server and all that draws a page."""
    from gradviz.cli.run.live import run_live  # noqa: PLC0415 - see above

    return run_live


def _show_steps(recording: Recording) -> None:
    """Have a line written for each step, and for the last ones as the program ends."""
    # Loaded where it is asked for.
    from gradviz.cli.run.live_steps import LiveSteps, interval_s  # noqa: PLC0415

    pid = os.getpid()

    def num_nodes() -> int:
        recording.flush()
        return recording.counts.nodes

    def tell_rest() -> None:
        if os.getpid() == pid:
            steps.tell()

    steps = LiveSteps(num_nodes, interval_s())
    after_step.append(steps)
    atexit.register(tell_rest)


def _stream_check() -> "StreamCheck":
    """Return a new check, whose analysis of races is loaded only then."""
    from gradviz.stream_check.checker import StreamCheck  # noqa: PLC0415 - see above

    return StreamCheck()


def _check_options(options: RecordingOptions) -> None:
    """Refuse options that make no sense before the program begins."""
    try:
        options.scope(), options.reasons()
    except UserError as error:
        raise click.UsageError(str(error)) from None


def _report_on_hangs(seconds: float) -> None:
    """Have the state of the engine written to stderr: on a standstill, on SIGUSR1."""
    write, watched = sys.stderr.write, list[WatchableEngine]()

    def watch(engine: WatchableEngine) -> None:
        engine.watch(seconds, write)
        watched.append(engine)

    # A program of PyTorch's never makes an engine of ours, and need not load it.
    if (engine := sys.modules.get("gradviz.engine")) is not None:
        watch(engine.default_engine())
    else:
        after_default_engine.append(watch)
        # Exit handlers run in reverse: the threads of an engine that is made later are
        # still to end after `_finish`. `weakref` ends them, by a handler that it
        # registers with the first finaliser of the process.
        weakref.finalize(watch, _do_nothing)
    if hasattr(signal, "SIGUSR1"):  # not on Windows
        signal.signal(
            signal.SIGUSR1,
            lambda *_: sys.stderr.write(watched[0].dump_state() if watched else IDLE),
        )


def _do_nothing() -> None:
    """Finalize nothing."""


def _tell_of_races(check: "StreamCheck", pid: int) -> None:
    """Write what was found to stderr, in threads and exit handlers too."""
    if os.getpid() != pid:  # a forked child may have found its parent at work on it
        return
    check.stop()
    for line in str(check.findings).splitlines():
        note(line)


def _heed(wanted: Target, *, quiet: bool) -> None:
    """Say what is to be known, and become a Python with the options it was given."""
    if wanted.note and not quiet:
        note(wanted.note)
    if not wanted.flags:
        return
    context = click.get_current_context()
    options = context.meta[_ARGS][: -1 - len(context.params["args"])]
    if options and options[-1] == "--":
        options = options[:-1]
    command = [*wanted.flags, "-m", "gradviz", "run", *options, *wanted.words()]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *command])


def _finish(  # noqa: PLR0913 - all that a run has begun
    recording: Recording,
    path: Path,
    pid: int,
    *,
    children: Children | None,
    others: Unfollowed | None,
    actors: ActorTraces,
    is_launcher: bool,
    options: RecordingOptions,
    quiet: bool,
) -> None:
    """Close the trace and say what is in it.

    What is said has the path as the user wrote it, for the folder of the command: the
    program may have changed its own.
    """
    if os.getpid() != pid:  # a forked child leaves its parent's trace alone
        return
    with warnings.catch_warnings():  # what it says is part of what is said below
        warnings.filterwarnings("ignore", "cannot write a trace", RuntimeWarning)
        recording.close()
    if recording.failure is not None:
        note(f"warning: {_lost(recording, recording.failure, path)}")
        return
    tasks, nodes = recording.counts[:2]
    if actors.parts:
        actors.merge(has_own=tasks + nodes > 0, quiet=quiet)
        return
    ranks = children.traces() if is_launcher and children and not tasks else ()
    if merge_launched(ranks, recording.path or path, quiet=quiet) or quiet:
        return
    _tell(recording, path, children, others, options)


def _tell(
    recording: Recording,
    path: Path,
    children: Children | None,
    others: Unfollowed | None,
    options: RecordingOptions,
) -> None:
    """Say what a trace holds, where else passes may be, and what is of use next."""
    tasks = recording.counts.tasks
    for line in _recorded(recording, path, options):
        note(line)
    if children is not None:
        for trace in children.traces():
            note(f"another process wrote {trace}")
    else:
        had_others = not tasks or (others is not None and others.has_started)
        for hint in _elsewhere(recording, had_others=had_others):
            note(hint)
    if recording.error_text:
        # Loaded where a program failed.
        from gradviz.cli.run.failure import causes  # noqa: PLC0415

        for sentence in causes(recording):
            note(sentence)
    if tasks and _is_there(recording):
        note_next("show order", path)


def _recorded(
    recording: Recording, path: Path, options: RecordingOptions
) -> Iterator[str]:
    """Yield lines on the trace's contents, or on why there is nothing."""
    tasks, nodes, events, dropped = recording.counts
    if "gradviz.distributed" in sys.modules and not recording.has_ring:
        tasks = _num_passes(recording, tasks)
    if not _is_there(recording):
        yield f"nothing triggered a dump; {path} was not written"
    elif recording.has_ring:
        yield f"{_left(recording, path)}, of {count(tasks, 'backward')} in all"
    elif tasks:
        yield (
            f"recorded {count(tasks, 'backward')}, {count(nodes, 'node')}, "
            f"{count(events, 'event')} ({dropped:,} dropped) in {path}"
        )
    else:
        yield f"no backward pass was recorded; {path} is a trace without passes"
        if options.schedule:
            yield "a step of --schedule ends with the step() of an optimizer"
    if options.check_finite:
        yield from _not_finite(recording)


def _not_finite(recording: Recording) -> Iterator[str]:
    """Say which values were the first that are not finite."""
    if not _is_there(recording) or recording.path is None:
        return
    values = importlib.import_module("gradviz.analysis.training.not_finite")
    words = importlib.import_module("gradviz.render.words.not_finite_text")
    try:
        found = values.not_finite_values(_read(recording.path), _MAX_NOT_FINITE)
    except UserError:  # said elsewhere
        return
    if not found:
        yield "all checked values are finite"
    for place, one in enumerate(found):
        yield f"{'then' if place else 'not finite:'} {words.not_finite_text(one)}"


def _num_passes(recording: Recording, tasks: int) -> int:
    """Number of passes, each counted once however many workers ran parts of it.

    `tasks` if the file does not say.
    """
    parts = importlib.import_module("gradviz.analysis.tables.worker_parts")
    if recording.path is None:
        return tasks
    try:
        trace = _read(recording.path)
    except UserError:
        return tasks
    return len(parts.numbers_of(trace, trace.tasks))


def _read(path: Path) -> Trace:
    from gradviz.trace.reading.reader import load_trace  # noqa: PLC0415 - seldom needed

    return load_trace(path)


def _is_there(recording: Recording) -> bool:
    return recording.path is not None and recording.path.exists()


def _lost(recording: Recording, failure: Exception, path: Path) -> str:
    """Say in words what a trace lacks that could not be written to its end."""
    if not recording.has_ring:
        return f"the trace is incomplete: {_left(recording, path)}"
    reason = getattr(failure.__cause__, "strerror", None) or failure
    lost = f"{path} could not be written: {reason}"
    if recording.is_dumped:
        return f"{lost}; an earlier dump is kept: {_left(recording, path)}"
    kept = "; the file that was there is kept" if _is_there(recording) else ""
    return f"{lost}{kept}"


def _left(recording: Recording, path: Path) -> str:
    """Contents of the file of a recording, whatever was recorded besides."""
    if not _is_there(recording):
        return f"{path} could not be written: {recording.failure}"
    try:
        trace = _read(recording.path or path)
    except UserError as error:
        return str(error)
    return (
        f"{path} holds {count(len(trace.tasks), 'backward')}, "
        f"{count(len(trace.nodes), 'node')} and {count(trace.num_events, 'event')}"
    )


def _elsewhere(recording: Recording, *, had_others: bool) -> Iterator[str]:
    """Yield lines on where the missing passes may have been."""
    if recording.problem:
        yield recording.problem
    if had_others and _had_children():
        yield (
            "the program started other processes, whose passes are not recorded; "
            "--follow-children records them"
        )


def _had_children() -> bool:
    """Return True if a process that this one started has ended, as far as known."""
    return (
        resource is not None
        and resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0
    )
