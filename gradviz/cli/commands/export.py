"""``gradviz export``."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Final, NamedTuple, cast

import click

from gradviz.analysis.tables.passes import select_task
from gradviz.cli.console.notes import note, working
from gradviz.cli.console.options import (
    force_option,
    output_option,
    quiet_option,
    tasks_option,
    trace_argument,
)
from gradviz.cli.console.output import STDOUT, check_output, write_parts
from gradviz.cli.console.trace_argument import find_trace, read_trace
from gradviz.export.excerpt import excerpt
from gradviz.export.tables import TABLES
from gradviz.trace.format.atomic_file import FOR_OWNER


class FileFormat(NamedTuple):
    """A format of files.

    Attributes:
        suffixes: Suffixes of its files, the usual one first.
        is_table: True if a file holds one table.
    """

    suffixes: tuple[str, ...]
    is_table: bool = False


#: By the name of their module in `gradviz.export`. Of two suffixes of which one ends
#: with the other the longer one comes first.
FORMATS: Final = {
    "speedscope": FileFormat((".speedscope.json",)),
    "chrome": FileFormat((".json",)),
    "perfetto": FileFormat((".pftrace", ".perfetto-trace")),
    "jsonl": FileFormat((".jsonl",)),
    "parquet": FileFormat((".parquet",), is_table=True),
    "csv": FileFormat((".csv",), is_table=True),
    "sqlite": FileFormat((".sqlite", ".db")),
}

_DEFAULT_TABLE: Final = "runs"


@click.command("export")
@trace_argument
@click.option(
    "-t",
    "--to",
    type=click.Choice(list(FORMATS)),
    help="The format, if the name of the output does not say it.",
)
@output_option("<trace>.<format>")
@force_option
@tasks_option("all", "Which backward passes.")
@click.option(
    "--table",
    type=click.Choice(list(TABLES)),
    help=f"The table to write as csv or parquet.  [default: {_DEFAULT_TABLE}]",
)
@quiet_option
def command(
    trace_path: Path | None,
    to: str | None,
    output: Path | None,
    force: bool,
    task: str,
    table: str | None,
    quiet: bool,
) -> None:
    """Write a trace as a file that other tools read.

    Timelines: perfetto for ui.perfetto.dev, chrome for chrome://tracing, speedscope for
    speedscope.app. Tables: sqlite, a database of all of them, parquet and csv, one.
    Events: jsonl, one a line.

    Example:
        gradviz export -o first.csv --table runs first.gvt
    """
    name = to or _format_of(output)
    if table is not None and not FORMATS[name].is_table:
        raise click.UsageError(
            f"--table is for csv and parquet; {name} holds all tables"
        )
    trace_path = find_trace(trace_path)
    output = output or Path(trace_path.stem + FORMATS[name].suffixes[0])
    check_output(output, force=force)
    trace = read_trace(trace_path)
    if task != "all":
        trace = excerpt(trace, select_task(trace, task))
    module = importlib.import_module(f"gradviz.export.{name}")
    parts = cast("Callable[..., Iterator[bytes]]", module.parts)
    arguments = (table or _DEFAULT_TABLE,) if FORMATS[name].is_table else ()
    with working(f"writing {output}") if output != STDOUT else nullcontext():
        write_parts(output, parts(trace, *arguments), FOR_OWNER)
    if not quiet and output != STDOUT:
        note(f"wrote {output}: {output.stat().st_size:,} bytes")


def _format_of(output: Path | None) -> str:
    """The format that a name ends with.

    Raises:
        click.UsageError: There is no name, or it ends with none of them.
    """
    if output is None or output == STDOUT:
        raise click.UsageError(f"which format? -t {'|'.join(FORMATS)}")
    for name, format_ in FORMATS.items():
        if output.name.lower().endswith(format_.suffixes):
            return name
    known = ", ".join(one for known in FORMATS.values() for one in known.suffixes)
    raise click.UsageError(
        f"cannot tell the format of {output}: expected one of {known}, or -t"
    )
