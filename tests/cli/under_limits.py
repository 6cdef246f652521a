"""Runs reading commands over files, each in a child with little memory and time.

``python -m tests.cli.under_limits FILE...`` prints a line of JSON for each run. All
children are forks of one process that has loaded everything.
"""

import importlib.util
import json
import os
import resource
import sys
import tempfile
from pathlib import Path

MEMORY_BYTES = 512 << 20
CPU_S = 5

#: An export leaves nothing out, a merge neither.
EXPORT_CPU_S = 120

COMMANDS = (
    ("show", "summary"),
    ("show", "summary", "--json"),
    ("show", "summary", "--by", "source"),
    ("show", "summary", "--by", "module", "--json"),
    ("show", "order", "--json", "--task", "all"),
    ("show", "critical", "--task", "all"),
    ("show", "critical", "--json"),
    ("show", "memory", "--task", "all"),
    ("show", "memory", "--json", "--task", "all"),
    ("show", "order", "--predicted", "--task", "all"),
    ("show", "events"),
    ("show", "events", "--json"),
    ("show", "order", "--sort", "module", "--filter", "source=*"),
    ("show", "queues", "--json", "--task", "all"),
    ("show", "utilisation", "--task", "all"),
    ("show", "utilisation", "--json"),
    ("simulate", "--policy", "fifo", "--device-threads", "3", "--task", "all"),
    ("show", "timeline", "--task", "all"),
    ("show", "timeline", "--step", "slowest"),
    ("show", "timeline", "--json", "--task", "all"),
    ("render", "graph", "--engine", "own", "-o", "-"),
    ("render", "graph", "--engine", "own", "-o", "-", "--no-collapse", "--critical"),
    ("render", "timeline", "-o", "-", "--task", "all"),
    ("render", "timeline", "-o", "-", "--step", "all"),
    ("render", "report", "-o", "-", "--task", "all"),
    ("render", "queues", "-o", "-", "--task", "all"),
    ("render", "memory", "-o", "-", "--task", "all"),
    ("check",),
    ("check", "--json"),
    ("check", "--advice"),
    ("replay", "--plain"),
    ("replay", "--json", "--task", "all"),
    ("explain", "TRACE", "MulBackward0"),
    ("diff", "TRACE", "TRACE"),
    ("diff", "TRACE", "TRACE", "--json"),
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
    """All views, and of what writes all of a trace one for each file, in turns.

    With ``FULL=1`` each of them: an export of the largest files takes ten seconds.
    """
    if os.environ.get("FULL") == "1":
        return COMMANDS + WRITERS
    return (*COMMANDS, WRITERS[number % len(WRITERS)])


def run(command: tuple[str, ...], path: Path) -> dict[str, object]:
    """What a command did with a file: how it ended, what it said, what it took."""
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
    cpu_s = EXPORT_CPU_S if command[0] in {"export", "merge"} else CPU_S
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    code = 99
    try:
        words = command if "TRACE" in command else (*command, "TRACE")
        words = [str(path) if word == "TRACE" else word for word in words]
        importlib.import_module("gradviz.cli.main").gradviz.main(words)
    except SystemExit as exit_:
        code = exit_.code or 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    for group, *words in COMMANDS + WRITERS:
        for name in (group, "_".join((group, *words[:1]))):
            if importlib.util.find_spec(f"gradviz.cli.{name}"):
                importlib.import_module(f"gradviz.cli.{name}")
    for name in ("gradviz.cli.main", "numpy.ma", "rich.cells", "tomllib"):
        importlib.import_module(name)
    for number, path in enumerate(map(Path, sys.argv[1:])):
        for command in commands_for(number):
            sys.stdout.write(json.dumps(run(command, path)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
