"""``gradviz run``: a program as ``python`` would run it, its backwards recorded."""

import atexit
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import click

from gradviz.capture import Recording, load_trace, record_program
from gradviz.cli import program
from gradviz.cli.actor_traces import ActorTraces
from gradviz.cli.children import Children
from gradviz.cli.live import run_live
from gradviz.cli.notes import note, note_next
from gradviz.cli.options import force_option, open_option, quiet_option
from gradviz.cli.then import Words, opened, run_then
from gradviz.cli.workers import begin_worker, run_with_workers
from gradviz.cli.writing import STDOUT
from gradviz.engine import default_engine
from gradviz.errors import UserError
from gradviz.recording_options import RecordingOptions
from gradviz.render.text import count
from gradviz.stream_check import StreamCheck
from gradviz.trace.scope import STACKS

LONGEST_LABEL: Final = 100

#: Where the context keeps the arguments.
_ARGS: Final = "gradviz.arguments"

#: What a program exits with that ended well but for a race between its streams.
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
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The trace to write. [default: gradviz-<program>.<pid>.gvt here]",
)
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
    help="Show the trace in a browser while it is written, as 'gradviz view' does.",
)
@open_option
@click.option(
    "--workers",
    type=click.IntRange(1, 2**16),
    metavar="N",
    help="Run the program in N processes, workers of gradviz.distributed.rpc, each "
    "with a trace of its own beside FILE (.worker0 and so on), merged at the end.",
)
@click.option("--is-worker", is_flag=True, hidden=True, allow_from_autoenv=False)
@click.option("--no-then", is_flag=True, hidden=True, allow_from_autoenv=False)
@click.option(
    "-m", "module", is_flag=True, allow_from_autoenv=False, help="Run a module."
)
@click.option(
    "-c", "string", is_flag=True, allow_from_autoenv=False, help="Run a string."
)
@click.argument("target", metavar="(SCRIPT | -m MODULE | -c CODE)")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(  # noqa: C901, PLR0913, PLR0917 - Click hands over each option
    output: Path | None,
    force: bool,
    quiet: bool,
    watchdog: float,
    schedule: str,
    events: str,
    only: str,
    stacks: str,
    ring: str,
    dump_on: str,
    follow_children: bool,
    check_streams: bool,
    then: tuple[tuple[str, ...], ...],
    live: bool,
    is_opened: bool,
    workers: int | None,
    is_worker: bool,
    no_then: bool,
    module: bool,
    string: bool,
    target: str,
    args: tuple[str, ...],
) -> int:
    """Run a Python program and record its backward passes.

    The program runs as "python SCRIPT ARGS..." would run it, and so do -m and -c; its
    exit code becomes that of gradviz. Options of gradviz come first: what follows the
    script belongs to the script.

    Example:
        gradviz run -o first.gvt train.py --epochs 3
    """
    if module and string:
        raise click.UsageError("-m and -c exclude each other")
    if output == STDOUT:
        raise click.UsageError("a trace cannot go to stdout: that is the program's own")
    load, label = _loader(target, module=module, string=string)
    path = output or Path(f"gradviz-{label}.{os.getpid()}.gvt")
    if is_opened:
        then = opened(then)
    if workers and live:
        raise click.UsageError("--live shows one trace, and --workers makes several")
    if (then or live) and not (no_then or is_worker):
        args_of_run = click.get_current_context().meta[_ARGS]
        follow = run_live if live else run_then
        return follow(args_of_run, path, then, force=force)
    if is_worker:
        path = begin_worker(path)
    elif workers:
        args_of_run = click.get_current_context().meta[_ARGS]
        return run_with_workers(args_of_run, path, workers, force=force, quiet=quiet)
    check = StreamCheck() if check_streams else None
    options = RecordingOptions(schedule, events, only, stacks, ring, dump_on)
    try:
        options.scope(), options.reasons()
    except UserError as error:
        raise click.UsageError(str(error)) from None
    begin = partial(record_program, options=options, force=force)

    def start() -> None:
        _report_on_hangs(watchdog)  # first: the signal is for the recording, too
        recording = begin(path)
        children = Children(path, options, begin) if follow_children else None
        actors = ActorTraces(path, options, force=force)
        # The program's own exit handlers and its threads come to their end before
        # this handler, registered first, is called.
        atexit.register(
            _finish,
            recording,
            path,
            os.getpid(),
            children=children,
            actors=actors,
            is_scheduled=bool(schedule),
            quiet=quiet,
        )
        if check is not None:
            check.start()
            atexit.register(_tell_of_races, check, os.getpid())

    code = program.run(partial(load, target, args), before=start)
    return RACE if code == 0 and check is not None and check.races else code


def _report_on_hangs(seconds: float) -> None:
    """Have the state of the engine written to stderr: on a standstill, on SIGUSR1."""
    engine = default_engine()
    engine.watch(seconds, sys.stderr.write)
    if hasattr(signal, "SIGUSR1"):  # not on Windows
        signal.signal(signal.SIGUSR1, lambda *_: sys.stderr.write(engine.dump_state()))


def _tell_of_races(check: StreamCheck, pid: int) -> None:
    """Write what was found to stderr, in threads and exit handlers too."""
    if os.getpid() != pid:  # a forked child may have found its parent at work on it
        return
    check.stop()
    for line in str(check.findings).splitlines():
        note(line)


Loader = Callable[[str, Sequence[str]], program.Program]


def _loader(target: str, *, module: bool, string: bool) -> tuple[Loader, str]:
    """How to load the program, and what its trace is called by."""
    if module:
        return program.load_module, _slug(target)
    if string:
        return program.load_string, "string"
    return program.load_script, _slug(Path(target).stem)


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)[:LONGEST_LABEL]


def _finish(
    recording: Recording,
    path: Path,
    pid: int,
    *,
    children: Children | None,
    actors: ActorTraces,
    is_scheduled: bool,
    quiet: bool,
) -> None:
    """Close the trace and say what is in it."""
    if os.getpid() != pid:  # a forked child leaves its parent's trace alone
        return
    recording.close()
    if recording.failure is not None:
        note(f"warning: the trace is incomplete: {_left(path)}")
        return
    tasks, nodes = recording.counts[:2]
    if actors.parts:
        actors.merge(has_own=tasks + nodes > 0, quiet=quiet)
        return
    if quiet:
        return
    for line in _recorded(recording, path, is_scheduled=is_scheduled):
        note(line)
    if children is not None:
        for trace in children.traces():
            note(f"another process has left {trace}")
    else:
        for hint in _elsewhere(recording, tasks):
            note(hint)
    if tasks and path.exists():
        note_next("show order", path)


def _recorded(recording: Recording, path: Path, *, is_scheduled: bool) -> Iterator[str]:
    """What is in the trace, or why there is nothing."""
    tasks, nodes, events, dropped = recording.counts
    if not path.exists():
        yield f"there was no reason to write {path}, and it is not there"
    elif tasks:
        yield (
            f"recorded {count(tasks, 'backward')}, {count(nodes, 'node')}, "
            f"{count(events, 'event')} ({dropped:,} dropped) in {path}"
        )
    else:
        yield f"no backward pass was recorded; {path} is a trace without one"
        if is_scheduled:
            yield "a step of --schedule ends with the step() of an optimizer"


def _left(path: Path) -> str:
    """What is in the file of a recording that could not be written to its end."""
    try:
        trace = load_trace(path)
    except UserError as error:
        return str(error)
    return (
        f"{path} holds {count(len(trace.tasks), 'backward')}, "
        f"{count(len(trace.nodes), 'node')} and {count(trace.num_events, 'event')}"
    )


def _elsewhere(recording: Recording, tasks: int) -> Iterator[str]:
    """Where the passes may have been that a user misses."""
    if recording.problem:
        yield f"no pass of PyTorch's own engine is recorded: {recording.problem}"
    if not tasks and _had_children():
        yield (
            "the program had other processes: no pass of theirs is recorded; "
            "--follow-children does that"
        )


def _had_children() -> bool:
    """Whether a process that this one started has come to its end."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0
