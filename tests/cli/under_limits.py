"""Runs reading commands over files, each in a child with little memory and time.

``python -m tests.cli.under_limits FILE...`` prints a line of JSON for each run. All
children are forks of one process that has loaded everything.
"""

import importlib
import json
import math
import os
import resource
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import click

from gradviz.cli.console.lazy import LazyGroup
from gradviz.cli.main import gradviz
from tests.campaigns import IS_FULL

MEMORY_BYTES = 512 << 20

#: A view may take as much processor time as so many counts to `_COUNTED`, some eight
#: seconds: a limit of its own on each machine. The slowest take half of that.
_NUM_COUNTS = 30
_COUNTED = 5_000_000

#: An export leaves nothing out, a merge neither.
EXPORT_CPU_S = 120

COMMANDS = (
    ("show", "summary"),
    ("show", "summary", "--json"),
    ("show", "summary", "--by", "line"),
    ("show", "summary", "--by", "module", "--json"),
    ("show", "order", "--json", "--pass", "all"),
    ("show", "critical", "--pass", "all"),
    ("show", "critical", "--json"),
    ("show", "memory", "--pass", "all"),
    ("show", "memory", "--json", "--pass", "all"),
    ("show", "order", "--predicted", "--pass", "all"),
    ("show", "events"),
    ("show", "events", "--json"),
    ("show", "order", "--sort", "module", "--filter", "line=*"),
    ("show", "queues", "--json", "--pass", "all"),
    ("show", "utilization", "--pass", "all"),
    ("show", "utilization", "--json"),
    ("show", "collectives"),
    ("show", "collectives", "--json"),
    ("show", "parameters"),
    ("show", "parameters", "--json", "--pass", "all"),
    ("simulate", "--policy", "fifo", "--device-threads", "3", "--pass", "all"),
    ("show", "timeline", "--pass", "all"),
    ("show", "timeline", "--step", "slowest"),
    ("show", "timeline", "--json", "--pass", "all"),
    ("render", "graph", "--engine", "own", "-o", "-"),
    ("render", "graph", "--engine", "own", "-o", "-", "--no-collapse", "--critical"),
    ("render", "timeline", "-o", "-", "--pass", "all"),
    ("render", "timeline", "-o", "-", "--step", "all"),
    ("render", "report", "-o", "-", "--pass", "all"),
    ("render", "queues", "-o", "-", "--pass", "all"),
    ("render", "memory", "-o", "-", "--pass", "all"),
    ("render", "replay", "-o", "-"),
    ("check",),
    ("check", "--json"),
    ("check", "--advice"),
    ("replay", "--plain"),
    ("replay", "--json", "--pass", "all"),
    ("explain", "TRACE", "MulBackward0"),
    ("diff", "TRACE", "TRACE"),
    ("diff", "TRACE", "TRACE", "--json"),
    ("diff", "TRACE", "TRACE", "--fail-on", "order,hooks,saved,sync,memory,time"),
)

#: What writes all of a trace; see `commands_for`.
WRITERS = (
    ("export", "-t", "perfetto", "-o", "-"),
    ("export", "-t", "chrome", "-o", "-"),
    ("export", "-t", "speedscope", "-o", "-"),
    ("export", "-t", "jsonl", "-o", "-"),
    ("export", "-t", "sqlite", "-o", "-"),
    ("export", "-t", "csv", "-o", "-"),
    ("merge", "-o", "-"),
)


def commands_for(number: int) -> tuple[tuple[str, ...], ...]:
    """A sixth of all views and one of the writers for each file, in turns.

    All of them with ``FULL=1``.
    """
    if IS_FULL:
        return COMMANDS + WRITERS
    return (*COMMANDS[number % 6 :: 6], WRITERS[number % len(WRITERS)])


@cache
def view_cpu_s() -> int:
    """Return the processor time that a view may take on this machine, in seconds."""
    begun = time.process_time()
    total = 0
    for one in range(_COUNTED):
        total += one
    return max(5, math.ceil(_NUM_COUNTS * (time.process_time() - begun)))


def run(command: tuple[str, ...], path: Path) -> dict[str, object]:
    """Run a command on a file; return its end, its output and its use of resources."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as told:
        child = os.fork()
        if not child:
            _become(command, path, told.fileno(), said.fileno())
        _, status, usage = os.wait4(child, 0)
        said.seek(0)
        return {
            "file": path.name,
            "command": " ".join(command),
            "exit_code": os.waitstatus_to_exitcode(status),
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "memory_bytes": usage.ru_maxrss << 10,
            "output_bytes": told.seek(0, os.SEEK_END),
            "stderr": said.read(2_000).decode(),
        }


def _become(command: tuple[str, ...], path: Path, out: int, err: int) -> None:
    os.dup2(out, 1)
    os.dup2(err, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    cpu_s = EXPORT_CPU_S if command[0] in {"export", "merge"} else view_cpu_s()
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    code = 99
    try:
        words = command if "TRACE" in command else (*command, "TRACE")
        words = [str(path) if word == "TRACE" else word for word in words]
        gradviz.main(words)
    except SystemExit as exit_:
        code = exit_.code or 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    for name in ("numpy.ma", "rich.cells", "tomllib"):
        importlib.import_module(name)
    view_cpu_s()  # here, so that no child counts
    context = click.Context(gradviz)
    for name, *words in COMMANDS + WRITERS:
        command = gradviz.get_command(context, name)
        if isinstance(command, LazyGroup):
            command.get_command(context, words[0])
    for number, path in enumerate(map(Path, sys.argv[1:])):
        for command in commands_for(number):
            sys.stdout.write(json.dumps(run(command, path)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
