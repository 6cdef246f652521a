"""``gradviz merge``."""

from collections.abc import Sequence
from pathlib import Path

import click

from gradviz.cli.console.notes import note
from gradviz.cli.console.options import complete_trace, force_option, quiet_option
from gradviz.cli.console.output import STDOUT, check_output, write_parts
from gradviz.cli.console.trace_argument import read_trace
from gradviz.render.words.text import count
from gradviz.trace.format.atomic_file import FOR_OWNER
from gradviz.trace.format.model import Trace
from gradviz.trace.merging.collective_order import uneven_in_words
from gradviz.trace.merging.merged_file import merged
from gradviz.trace.merging.message_order import early_in_words
from gradviz.trace.merging.placement import place


@click.command("merge")
@click.argument(
    "trace_paths",
    metavar="TRACE...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    shell_complete=complete_trace,
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="The trace to write, - for stdout.",
)
@force_option
@quiet_option
def command(
    trace_paths: tuple[Path, ...], output: Path, force: bool, quiet: bool
) -> None:
    """Put the traces of several processes into one, side by side.

    Processes of one machine share a clock. Workers of several machines have compared
    theirs, and ranks meet in collectives. Other traces are placed by the time of day,
    with a warning. Names of threads, queues and streams start with their process.

    Example:
        gradviz merge -o both.gvt first.gvt second.gvt
    """
    check_output(output, force=force)
    merge([read_trace(path) for path in trace_paths], output, quiet=quiet)


def merge(traces: Sequence[Trace], output: Path, *, quiet: bool) -> None:
    """Write the trace of several processes, and say on stderr whose they are.

    Args:
        traces: Theirs.
        output: Path of the new trace.
        quiet: Say only what is doubtful.

    Raises:
        UserError: They do not fit into one, or it cannot be written.
    """
    placed = place(traces)
    write_parts(output, merged(placed), FOR_OWNER)
    for one in placed:
        if one.doubt:
            note(f"warning: {one.trace.path}: {one.doubt}")
    for problem in early_in_words([(one.trace, one.clock) for one in placed]):
        note(f"warning: {problem}")
    for problem in uneven_in_words([(one.label, one.trace) for one in placed]):
        note(f"warning: {problem}")
    if quiet:
        return
    for one in placed:
        for process in one.trace.processes:
            who = f"pid {process.pid} on {process.host}"
            note(f"{one.label or 'named before'}: {who}: {' '.join(process.argv)}")
        if one.clock.uncertainty_ns:
            within = f"{one.clock.uncertainty_ns / 1e3:,.3g} us"
            note(f"{one.label}: its clock is placed within {within}")
    if output != STDOUT:
        num_events = sum(one.trace.num_events for one in placed)
        note(f"merged {count(len(placed), 'trace')}: {count(num_events, 'event')}")
